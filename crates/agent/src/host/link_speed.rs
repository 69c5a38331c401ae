// SPDX-License-Identifier: Apache-2.0
//! The rate of an interface's link, as the driver tells it.
//!
//! By the ioctl and not by /sys/class/net, which shows the interfaces of the network namespace
//! that it was mounted in, not of this process.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// `ETHTOOL_GSET` (`linux/ethtool.h`): old, and known to every driver since.
const GET_SETTINGS: u32 = 1;

/// `struct ethtool_cmd` in words. The speed's lower half is in the fourth, its upper in the
/// eighth, each in the first two bytes.
type Settings = [u32; 11];

/// Bits per second; none if the link is down, or of a kind without a rate.
pub fn rate_bps(interface: &str) -> Option<u64> {
    let mut settings: Settings = [0; 11];
    settings[0] = GET_SETTINGS;
    // SAFETY: the request is zeroed, its name stays terminated, and its data is as long as the
    // kernel writes.
    let status = unsafe {
        let socket = match libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) {
            -1 => return None,
            socket => OwnedFd::from_raw_fd(socket),
        };
        let mut request: libc::ifreq = std::mem::zeroed();
        if interface.len() >= request.ifr_name.len() {
            return None;
        }
        for (to, byte) in request.ifr_name.iter_mut().zip(interface.bytes()) {
            *to = byte as libc::c_char;
        }
        request.ifr_ifru.ifru_data = (&raw mut settings).cast();
        libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL, &raw mut request)
    };
    if status == 0 { speed(&settings) } else { None }
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
    fn what_has_no_link_has_no_rate() {
        assert_eq!(rate_bps("lo"), None);
        assert_eq!(rate_bps("no-interface-has-such-a-name"), None);
    }
}
