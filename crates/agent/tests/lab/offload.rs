// SPDX-License-Identifier: Apache-2.0
//! What `ethtool -K INTERFACE tx off` does.

use std::net::UdpSocket;
use std::os::fd::AsRawFd;

/// include/uapi/linux/sockios.h and ethtool.h.
const SIOCETHTOOL: libc::c_ulong = 0x8946;
const ETHTOOL_STXCSUM: u32 = 0x17;

/// Has the kernel sum up what leaves by an interface of this thread's namespace. A veth would
/// leave that out, as packets never leave the machine.
pub fn sum_in_software(interface: &str) {
    let mut value = [ETHTOOL_STXCSUM, 0];
    // SAFETY: zero is valid for all of it.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(interface.bytes()) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_data = value.as_mut_ptr().cast();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    // SAFETY: a request of the type that the number stands for.
    let status = unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL, &raw mut request) };
    assert_eq!(
        status,
        0,
        "{interface}: {}",
        std::io::Error::last_os_error()
    );
}
