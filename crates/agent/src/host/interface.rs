// SPDX-License-Identifier: Apache-2.0
//! The network interfaces of this network namespace.

use std::ffi::{CStr, CString};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use anyhow::{Result, anyhow};
use penstock_scenario::{Buffer, nearest};

use crate::host::qdisc::{self, Limit};

/// The index of the interface `name`.
///
/// # Errors
/// There is no such interface; the message names the nearest.
pub fn index(name: &str) -> Result<u32> {
    if let Some(index) = find(name) {
        return Ok(index);
    }
    let all = names();
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    let hint = match nearest(name, &all) {
        Some(near) => format!("did you mean {near}?"),
        None => format!("there are: {}", all.join(", ")),
    };
    Err(anyhow!(
        "no interface {name} in this network namespace; {hint}"
    ))
}

/// The index of the interface `name`, if there is one now.
pub fn find(name: &str) -> Option<u32> {
    let name = CString::new(name).ok()?;
    // SAFETY: a valid C string.
    match unsafe { libc::if_nametoindex(name.as_ptr()) } {
        0 => None,
        index => Some(index),
    }
}

/// The names of all interfaces.
pub fn names() -> Vec<String> {
    // SAFETY: the array ends with a zero index and is freed once.
    unsafe {
        let all = libc::if_nameindex();
        if all.is_null() {
            return Vec::new();
        }
        let mut names = Vec::new();
        let mut next = all;
        while (*next).if_index != 0 {
            let name = CStr::from_ptr((*next).if_name);
            names.push(name.to_string_lossy().into_owned());
            next = next.add(1);
        }
        libc::if_freenameindex(all);
        names
    }
}

/// Size of the interface's queue: as its qdisc reports (tbf, bfifo, pfifo), else the length of its
/// transmit queue.
///
/// # Errors
/// Neither is known.
pub fn buffer(name: &str, index: u32) -> Result<Buffer> {
    let qdisc = qdisc::of(index)?;
    match qdisc.limit {
        Some(Limit::Bytes(bytes)) if bytes > 0 => return Ok(Buffer::Bytes(bytes.into())),
        Some(Limit::Packets(packets)) if packets > 0 => return Ok(Buffer::Packets(packets)),
        _ => {}
    }
    match queue_packets(name) {
        Some(packets) if packets > 0 && qdisc.kind != "noqueue" => Ok(Buffer::Packets(packets)),
        _ => Err(anyhow!(
            "the qdisc of {name} ({}) does not report its size; give it: --buffer \"128 kB\"",
            qdisc.kind
        )),
    }
}

/// Length of the transmit queue, packets; the limit of a pfifo_fast.
fn queue_packets(name: &str) -> Option<u32> {
    let answer = ask(name, libc::SIOCGIFTXQLEN)?;
    // SAFETY: any bytes are a number; `ifr_qlen` is the same word as `ifr_metric`.
    Some(unsafe { answer.ifr_ifru.ifru_metric } as u32)
}

/// Whether packets have no Ethernet header, as those of tun or wireguard.
pub fn is_bare(name: &str) -> bool {
    ask(name, libc::SIOCGIFHWADDR).is_some_and(|answer| {
        // SAFETY: any bytes are a number.
        let kind = unsafe { answer.ifr_ifru.ifru_hwaddr.sa_family };
        !matches!(kind, libc::ARPHRD_ETHER | libc::ARPHRD_LOOPBACK)
    })
}

/// An ioctl about an interface (netdevice(7)). /sys would show the network namespace in which it
/// was mounted.
fn ask(name: &str, question: libc::Ioctl) -> Option<libc::ifreq> {
    // SAFETY: all zeros is a valid `ifreq`; the name is shorter than its field, and ends with zero.
    unsafe {
        let mut request: libc::ifreq = std::mem::zeroed();
        if name.len() >= request.ifr_name.len() {
            return None;
        }
        for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
            *to = from as libc::c_char;
        }
        let fd = libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0);
        if fd < 0 {
            return None;
        }
        let socket = OwnedFd::from_raw_fd(fd);
        let status = libc::ioctl(socket.as_raw_fd(), question, &raw mut request);
        (status == 0).then_some(request)
    }
}
