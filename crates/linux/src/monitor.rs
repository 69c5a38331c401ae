// SPDX-License-Identifier: Apache-2.0
//! Changes of network interfaces as they happen.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType};

use crate::{Error, Result};

/// The group of RTM_NEWLINK and RTM_DELLINK (`linux/rtnetlink.h`).
const RTMGRP_LINK: u32 = 1;

/// A socket that becomes readable when an interface of its network namespace appears, disappears, is
/// renamed, or changes otherwise. It stays in the namespace it was opened in.
#[derive(Debug)]
pub struct LinkMonitor(OwnedFd);

impl LinkMonitor {
    /// Monitors the calling thread's network namespace.
    ///
    /// # Errors
    /// The kernel refuses the socket.
    pub fn open() -> Result<LinkMonitor> {
        let open = || -> std::io::Result<OwnedFd> {
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            let family = AddressFamily::NETLINK;
            let socket = rustix::net::socket_with(family, SocketType::RAW, flags, None)?;
            rustix::net::bind(&socket, &SocketAddrNetlink::new(0, RTMGRP_LINK))?;
            Ok(socket)
        };
        open()
            .map(LinkMonitor)
            .map_err(|reason| Error::refused("monitor the interfaces", reason))
    }

    /// Takes all reported changes; whether there was any. Reports lost for want of room count as one.
    pub fn take(&self) -> bool {
        let mut room = [0; 1 << 15];
        let mut has_changed = false;
        loop {
            match rustix::net::recv(&self.0, &mut room[..], RecvFlags::DONTWAIT) {
                Ok(_) => has_changed = true,
                Err(error) if error == rustix::io::Errno::NOBUFS => has_changed = true,
                Err(error) if error == rustix::io::Errno::INTR => (),
                Err(_) => return has_changed,
            }
        }
    }
}

impl AsFd for LinkMonitor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
