// SPDX-License-Identifier: Apache-2.0
//! The one question to rtnetlink that libbpf does not ask: has anybody a filter at clsact?

use std::io::{Error, Result};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// `linux/pkt_sched.h`: clsact's major number, then the minor ones of ingress and egress.
const PARENTS: [u32; 2] = [0xffff_fff2, 0xffff_fff3];

/// A request with its `tcmsg` (`linux/rtnetlink.h`), which `libc` does not have.
#[repr(C)]
struct Request {
    header: libc::nlmsghdr,
    family: u8,
    padding: [u8; 3],
    interface: i32,
    handle: u32,
    parent: u32,
    info: u32,
}

/// Whether any filter is at the clsact qdisc of an interface.
pub fn has_filters(interface: u32) -> Result<bool> {
    for parent in PARENTS {
        if count(interface, parent)? > 0 {
            return Ok(true);
        }
    }
    Ok(false)
}

fn count(interface: u32, parent: u32) -> Result<usize> {
    let request = Request {
        header: libc::nlmsghdr {
            nlmsg_len: size_of::<Request>() as u32,
            nlmsg_type: libc::RTM_GETTFILTER,
            nlmsg_flags: (libc::NLM_F_REQUEST | libc::NLM_F_DUMP) as u16,
            nlmsg_seq: 1,
            nlmsg_pid: 0,
        },
        family: libc::AF_UNSPEC as u8,
        padding: [0; 3],
        interface: interface as i32,
        handle: 0,
        parent,
        info: 0,
    };
    // SAFETY: the descriptor is ours; the request is a plain struct of the length told.
    let socket = unsafe {
        let fd = libc::socket(
            libc::AF_NETLINK,
            libc::SOCK_RAW | libc::SOCK_CLOEXEC,
            libc::NETLINK_ROUTE,
        );
        if fd < 0 {
            return Err(Error::last_os_error());
        }
        let socket = OwnedFd::from_raw_fd(fd);
        if libc::send(fd, (&raw const request).cast(), size_of::<Request>(), 0) < 0 {
            return Err(Error::last_os_error());
        }
        socket
    };
    let mut found = 0;
    let mut answer = vec![0u8; 1 << 16];
    loop {
        // SAFETY: the buffer is as long as told.
        let length = unsafe {
            libc::recv(
                socket.as_raw_fd(),
                answer.as_mut_ptr().cast(),
                answer.len(),
                0,
            )
        };
        if length <= 0 {
            return Err(Error::last_os_error());
        }
        let mut rest = &answer[..length as usize];
        while let [a, b, c, d, kind_low, kind_high, ..] = *rest {
            match u16::from_ne_bytes([kind_low, kind_high]) {
                kind if i32::from(kind) == libc::NLMSG_DONE => return Ok(found),
                // A dump of a qdisc that is not there.
                kind if i32::from(kind) == libc::NLMSG_ERROR => return Ok(found),
                libc::RTM_NEWTFILTER => found += 1,
                _ => {}
            }
            let step = (u32::from_ne_bytes([a, b, c, d]) as usize).next_multiple_of(4);
            rest = rest.get(step.max(16)..).unwrap_or_default();
        }
    }
}
