// SPDX-License-Identifier: Apache-2.0
//! The root qdisc of an interface: replaced and deleted by rtnetlink.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// Parent of a root qdisc (`linux/pkt_sched.h`).
const ROOT: u32 = u32::MAX;

/// `linux/rtnetlink.h`.
const TCA_KIND: u16 = 1;

/// Makes a new qdisc of `kind` the root, whatever is there.
///
/// # Errors
/// The kernel refuses.
pub fn replace(index: u32, kind: &str) -> io::Result<()> {
    let flags = libc::NLM_F_CREATE | libc::NLM_F_REPLACE;
    ask(&message(libc::RTM_NEWQDISC, flags, index, Some(kind)))
}

/// Deletes the root; the kernel's default takes its place.
///
/// # Errors
/// The kernel refuses.
pub fn delete(index: u32) -> io::Result<()> {
    ask(&message(libc::RTM_DELQDISC, 0, index, None))
}

fn message(command: u16, flags: libc::c_int, index: u32, kind: Option<&str>) -> Vec<u8> {
    let flags = (libc::NLM_F_REQUEST | libc::NLM_F_ACK | flags) as u16;
    let mut message = 0u32.to_ne_bytes().to_vec(); // length, below
    message.extend(command.to_ne_bytes());
    message.extend(flags.to_ne_bytes());
    message.extend([0; 8]); // sequence, port
    message.extend([0; 4]); // struct tcmsg: family
    for word in [index, 0, ROOT, 0] {
        message.extend(word.to_ne_bytes()); // interface, handle, parent, info
    }
    if let Some(kind) = kind {
        message.extend((4 + kind.len() as u16 + 1).to_ne_bytes());
        message.extend(TCA_KIND.to_ne_bytes());
        message.extend(kind.bytes());
        message.push(0);
        message.resize(message.len().next_multiple_of(4), 0);
    }
    let length = message.len() as u32;
    message[..4].copy_from_slice(&length.to_ne_bytes());
    message
}

/// Sends a request and takes the kernel's answer.
fn ask(message: &[u8]) -> io::Result<()> {
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
    let mut answer = [0u8; 4096];
    // SAFETY: the descriptor is new and ours; the buffers are as long as told.
    let length = unsafe {
        let fd = libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_ROUTE);
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        let socket = OwnedFd::from_raw_fd(fd);
        let fd = socket.as_raw_fd();
        if libc::send(fd, message.as_ptr().cast(), message.len(), 0) < 0 {
            return Err(io::Error::last_os_error());
        }
        libc::recv(fd, answer.as_mut_ptr().cast(), answer.len(), 0)
    };
    if length < 0 {
        return Err(io::Error::last_os_error());
    }
    // struct nlmsghdr is 16 bytes; an acknowledgment is an error of code 0.
    match answer[16..20].try_into().map(i32::from_ne_bytes) {
        Ok(0) => Ok(()),
        Ok(code) => Err(io::Error::from_raw_os_error(-code)),
        Err(_) => Err(io::ErrorKind::InvalidData.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_that_is_not_there_is_told() {
        let refusal = replace(u32::MAX >> 1, "pfifo").unwrap_err();
        assert!(
            [libc::ENODEV, libc::EINVAL, libc::EPERM].contains(&refusal.raw_os_error().unwrap()),
            "{refusal}"
        );
    }

    #[test]
    fn messages_tell_their_length_and_kind() {
        let bytes = message(libc::RTM_NEWQDISC, 0, 7, Some("hcf_1"));
        assert_eq!(bytes.len(), 48);
        assert_eq!(bytes[..4], 48u32.to_ne_bytes());
        assert_eq!(bytes[36..38], 10u16.to_ne_bytes());
        assert_eq!(&bytes[40..46], b"hcf_1\0");
    }
}
