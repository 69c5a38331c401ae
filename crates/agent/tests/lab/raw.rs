// SPDX-License-Identifier: Apache-2.0
//! Whole frames in and out of an interface, past the TCP of its host; before each stands what the
//! kernel has to know of it, above all whether its checksum is still to be filled in.

use std::io::Error;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

use penstock_linux::{link, socket};

/// A packet socket on one interface of the namespace in which it was made.
pub struct Raw(OwnedFd);

impl Raw {
    /// # Panics
    /// There is no such interface, or the caller lacks CAP_NET_RAW.
    pub fn new(interface: &str) -> Raw {
        let protocol = (libc::ETH_P_ALL as u16).to_be();
        // SAFETY: a new descriptor, owned by no one else.
        let raw = unsafe {
            let fd = libc::socket(
                libc::AF_PACKET,
                libc::SOCK_RAW | libc::SOCK_CLOEXEC,
                protocol.into(),
            );
            assert!(fd >= 0, "a packet socket: {}", Error::last_os_error());
            Raw(OwnedFd::from_raw_fd(fd))
        };
        let address = libc::sockaddr_ll {
            sll_family: libc::AF_PACKET as u16,
            sll_protocol: protocol,
            sll_ifindex: link::get(interface).unwrap().index as i32,
            sll_hatype: 0,
            sll_pkttype: 0,
            sll_halen: 0,
            sll_addr: [0; 8],
        };
        // SAFETY: an address of the length given.
        let status = unsafe {
            libc::bind(
                raw.0.as_raw_fd(),
                (&raw const address).cast(),
                size_of_val(&address) as u32,
            )
        };
        assert_eq!(status, 0, "{interface}: {}", Error::last_os_error());
        let set = |level, name, value| socket::set_number(&raw.0, level, name, value).unwrap();
        set(libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, 1);
        set(libc::SOL_PACKET, libc::PACKET_VNET_HDR, 1);
        set(libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, 8 << 20);
        raw
    }

    /// A frame of a test's own, whose checksums are in place.
    pub fn send_whole(&self, frame: &[u8]) {
        self.send(&[&[0; 10], frame].concat());
    }

    /// Sends what was received, or as [`Raw::send_whole`] has it; one that finds no room in the interface's queue is lost.
    pub fn send(&self, frame: &[u8]) {
        // SAFETY: a buffer of the length given.
        unsafe {
            libc::send(
                self.0.as_raw_fd(),
                frame.as_ptr().cast(),
                frame.len(),
                libc::MSG_DONTWAIT,
            )
        };
    }

    /// The length of the next frame, written to `buffer`; none within `time`.
    pub fn receive(&self, buffer: &mut [u8], time: Duration) -> Option<usize> {
        let mut poll = libc::pollfd {
            fd: self.0.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        let time = libc::timespec {
            tv_sec: 0,
            tv_nsec: time.as_nanos() as i64,
        };
        // SAFETY: one descriptor, a valid time, and a buffer of the length given.
        unsafe {
            if libc::ppoll(&raw mut poll, 1, &raw const time, std::ptr::null()) <= 0 {
                return None;
            }
            let length = libc::recv(
                self.0.as_raw_fd(),
                buffer.as_mut_ptr().cast(),
                buffer.len(),
                libc::MSG_DONTWAIT,
            );
            usize::try_from(length).ok()
        }
    }
}
