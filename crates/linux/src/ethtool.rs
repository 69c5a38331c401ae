// SPDX-License-Identifier: Apache-2.0
//! An interface's speed, by the ethtool ioctl: older than its netlink form, and known to
//! every driver.

use std::ffi::c_void;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::ioctl::{Ioctl, IoctlOutput, Opcode};
use rustix::net::{AddressFamily, SocketFlags, SocketType};

use crate::{Error, Result};

// `linux/ethtool.h`.
const ETHTOOL_GSET: u32 = 0x01;

/// `struct ethtool_cmd` in words. The speed's lower half is in the fourth, its upper in the eighth,
/// each in the first two bytes.
type Settings = [u32; 11];

/// Speed of the link in bits per second; none if it is down, or of a kind without a speed.
///
/// # Errors
/// There is no such interface.
pub fn speed_bps(interface: &str) -> Result<Option<u64>> {
    let mut settings: Settings = [0; 11];
    settings[0] = ETHTOOL_GSET;
    match call(interface, &mut settings) {
        Ok(()) => Ok(speed(&settings)),
        Err(Errno::OPNOTSUPP) => Ok(None),
        Err(reason) => Err(Error::refused(
            format!("read the speed of {interface}"),
            reason,
        )),
    }
}

fn speed(settings: &Settings) -> Option<u64> {
    let half = |word: u32| {
        let bytes = word.to_ne_bytes();
        u32::from(u16::from_ne_bytes([bytes[0], bytes[1]]))
    };
    match half(settings[3]) | half(settings[7]) << 16 {
        // SPEED_UNKNOWN, also as the 16 bits of old drivers.
        0 | u32::MAX | 0xffff => None,
        megabits => Some(u64::from(megabits) * 1_000_000),
    }
}

/// `ioctl(SIOCETHTOOL)` with the command and arguments in `words`, which the answer replaces.
pub(crate) fn call<const N: usize>(
    interface: &str,
    words: &mut [u32; N],
) -> rustix::io::Result<()> {
    let socket: OwnedFd = rustix::net::socket_with(
        AddressFamily::INET,
        SocketType::DGRAM,
        SocketFlags::CLOEXEC,
        None,
    )?;
    // SAFETY: zero is valid for every field of `ifreq`.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    // The name must end with a zero.
    if interface.len() >= request.ifr_name.len() {
        return Err(Errno::NODEV);
    }
    for (target, byte) in request.ifr_name.iter_mut().zip(interface.bytes()) {
        *target = byte as libc::c_char;
    }
    request.ifr_ifru.ifru_data = words.as_mut_ptr().cast();
    // SAFETY: `Call` passes the request that SIOCETHTOOL expects, and the commands used here write at
    // most the words they were given.
    unsafe { rustix::ioctl::ioctl(&socket, Call(request)) }
}

struct Call(libc::ifreq);

// SAFETY: the opcode takes a pointer to `struct ifreq`, and the kernel writes only there and where
// `ifru_data` points to.
unsafe impl Ioctl for Call {
    type Output = ();
    const IS_MUTATING: bool = true;

    fn opcode(&self) -> Opcode {
        libc::SIOCETHTOOL as Opcode
    }

    fn as_ptr(&mut self) -> *mut c_void {
        (&raw mut self.0).cast()
    }

    unsafe fn output_from_ptr(_: IoctlOutput, _: *mut c_void) -> rustix::io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_halves_of_the_speed_count() {
        let mut settings: Settings = [0; 11];
        settings[3] = 10_000;
        assert_eq!(speed(&settings), Some(10_000_000_000));
        (settings[3], settings[7]) = (0x86a0, 1);
        assert_eq!(speed(&settings), Some(100_000_000_000));
        (settings[3], settings[7]) = (0xffff, 0xffff);
        assert_eq!(speed(&settings), None);
    }

    #[test]
    fn the_loopback_has_no_speed() {
        assert_eq!(speed_bps("lo").unwrap(), None);
    }

    #[test]
    fn an_absent_interface_is_an_error() {
        for name in ["absent", "a-name-that-is-too-long-for-an-interface"] {
            let refusal = speed_bps(name).unwrap_err();
            assert_eq!(refusal.errno(), Some(libc::ENODEV), "{refusal}");
        }
    }
}
