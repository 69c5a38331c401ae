// SPDX-License-Identifier: Apache-2.0
//! A connection to the kernel's rtnetlink: one request at a time, each with its answers.
//!
//! The kernel ends each answer by an acknowledgement, an error or the end of a dump, and a receive
//! timeout bounds the wait for it.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_DUMP, NLM_F_DUMP_INTR, NLM_F_REQUEST, NLMSG_DONE, NLMSG_ERROR, NetlinkBuffer,
    NetlinkMessage, NlaBuffer, NlasIterator,
};
use netlink_packet_route::RouteNetlinkMessage;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};

use crate::socket;
use crate::{Error, Result};

/// Longest wait for an answer: the kernel's lock of all links may be held for seconds.
const PATIENCE: Duration = Duration::from_secs(10);

/// Room for one datagram of the kernel, which fills at most 32 kB in a dump, bytes.
const ROOM: usize = 1 << 16;

/// How many dumps are tried, where changes interrupt one after another.
const ATTEMPTS: usize = 16;

/// Attributes of an error message (`linux/netlink.h`): the explanation in English.
const NLMSGERR_ATTR_MSG: u16 = 1;
/// The header of a request, which an error message repeats, bytes.
const HEADER: usize = 16;

/// An open rtnetlink socket. It stays in the network namespace it was opened in.
pub struct Rtnetlink {
    socket: OwnedFd,
    sequence: u32,
    room: Vec<u8>,
}

/// A failed request: the error, and the kernel's explanation if it gave one.
pub struct Failure {
    reason: io::Error,
    detail: Option<String>,
}

impl Failure {
    /// The error of `action`, which is a verb with its object.
    pub fn of(self, action: impl Into<String>) -> Error {
        Error::Refused {
            action: action.into(),
            reason: self.reason,
            detail: self.detail,
        }
    }

    /// The kernel's error number.
    pub fn errno(&self) -> Option<i32> {
        self.reason.raw_os_error()
    }
}

impl<E: Into<io::Error>> From<E> for Failure {
    fn from(error: E) -> Failure {
        Failure {
            reason: error.into(),
            detail: None,
        }
    }
}

impl Rtnetlink {
    /// A socket in the calling thread's network namespace.
    pub fn open() -> Result<Rtnetlink> {
        Rtnetlink::try_open().map_err(|reason| Error::refused("open an rtnetlink socket", reason))
    }

    fn try_open() -> io::Result<Rtnetlink> {
        let socket = rustix::net::socket_with(
            AddressFamily::NETLINK,
            SocketType::RAW,
            SocketFlags::CLOEXEC,
            None, // NETLINK_ROUTE is protocol 0.
        )?;
        set_socket_timeout(&socket, Timeout::Recv, Some(PATIENCE))?;
        // Explanations are welcome, and errors need not repeat the whole request.
        socket::set_number(&socket, libc::SOL_NETLINK, libc::NETLINK_EXT_ACK, 1)?;
        socket::set_number(&socket, libc::SOL_NETLINK, libc::NETLINK_CAP_ACK, 1)?;
        Ok(Rtnetlink {
            socket,
            sequence: 0,
            room: vec![0; ROOM],
        })
    }

    /// Asks for a change; `flags` besides request and acknowledgement.
    pub fn change(
        &mut self,
        message: RouteNetlinkMessage,
        flags: u16,
    ) -> std::result::Result<(), Failure> {
        self.query(message, flags, |_| ())
    }

    /// Asks one question; `on_reply` takes the payload of each message that answers it.
    pub fn query(
        &mut self,
        message: RouteNetlinkMessage,
        flags: u16,
        on_reply: impl FnMut(&[u8]),
    ) -> std::result::Result<(), Failure> {
        self.exchange(message, NLM_F_ACK | flags, on_reply)?;
        Ok(())
    }

    /// Asks for all objects of a kind; returns what `decode` makes of each. It is an error that changes
    /// interrupt each attempt.
    pub fn dump<T>(
        &mut self,
        message: RouteNetlinkMessage,
        mut decode: impl FnMut(&[u8]) -> Option<T>,
    ) -> std::result::Result<Vec<T>, Failure> {
        first_consistent(|| {
            let mut objects = Vec::new();
            let is_consistent = self.exchange(message.clone(), NLM_F_DUMP, |payload| {
                objects.extend(decode(payload));
            })?;
            Ok(is_consistent.then_some(objects))
        })
    }

    /// Sends a request and takes its answers; whether nothing changed meanwhile.
    fn exchange(
        &mut self,
        message: RouteNetlinkMessage,
        flags: u16,
        mut on_reply: impl FnMut(&[u8]),
    ) -> std::result::Result<bool, Failure> {
        self.sequence = self.sequence.wrapping_add(1);
        let mut request = NetlinkMessage::from(message);
        request.header.flags = NLM_F_REQUEST | flags;
        request.header.sequence_number = self.sequence;
        request.finalize();
        let mut bytes = vec![0; request.buffer_len()];
        request.serialize(&mut bytes);
        rustix::net::send(&self.socket, &bytes, SendFlags::empty())?;
        let mut is_consistent = true;
        loop {
            let (length, _) =
                rustix::net::recv(&self.socket, self.room.as_mut_slice(), RecvFlags::empty())?;
            let mut rest = &self.room[..length];
            while let Ok(message) = NetlinkBuffer::new_checked(rest) {
                rest = rest
                    .get((message.length() as usize).next_multiple_of(4)..)
                    .unwrap_or(&[]);
                // The late answer to a request whose wait timed out.
                if message.sequence_number() != self.sequence {
                    continue;
                }
                is_consistent &= message.flags() & NLM_F_DUMP_INTR == 0;
                match message.message_type() {
                    // The end of a dump carries its error, if any.
                    NLMSG_DONE => {
                        return match u32_at(message.payload(), 0).map(|code| code as i32) {
                            Some(code) if code < 0 => Err(failed(code)),
                            _ => Ok(is_consistent),
                        };
                    }
                    NLMSG_ERROR => {
                        return acknowledgement(message.payload()).map(|()| is_consistent);
                    }
                    _ => on_reply(message.payload()),
                }
            }
        }
    }
}

/// The objects of the first dump that no change interrupted: another may lack some.
fn first_consistent<T>(
    mut dump: impl FnMut() -> std::result::Result<Option<T>, Failure>,
) -> std::result::Result<T, Failure> {
    for _ in 0..ATTEMPTS {
        if let Some(objects) = dump()? {
            return Ok(objects);
        }
    }
    let reason = format!("changes interrupted each of {ATTEMPTS} attempts; try again");
    Err(io::Error::new(io::ErrorKind::Interrupted, reason).into())
}

/// An error message: a code, which is 0 for success, the request's header, and attributes.
fn acknowledgement(payload: &[u8]) -> std::result::Result<(), Failure> {
    let Some(code) = u32_at(payload, 0).map(|code| code as i32) else {
        return Err(io::Error::from(io::ErrorKind::InvalidData).into());
    };
    if code == 0 {
        return Ok(());
    }
    let mut failure = failed(code);
    let rest = payload.get(4 + HEADER..).unwrap_or(&[]);
    for attribute in attributes(rest) {
        if attribute.kind() == NLMSGERR_ATTR_MSG {
            failure.detail = Some(text(attribute.value()));
        }
    }
    Err(failure)
}

/// The failure of a negative error number.
fn failed(code: i32) -> Failure {
    Failure::from(io::Error::from_raw_os_error(code.wrapping_neg()))
}

/// The attributes of a message, one after the other; ends at the first that is malformed.
pub fn attributes(bytes: &[u8]) -> impl Iterator<Item = NlaBuffer<&[u8]>> {
    NlasIterator::new(bytes).map_while(std::result::Result::ok)
}

/// A string that ends with a zero or with its attribute.
pub fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0);
    String::from_utf8_lossy(&bytes[..end.unwrap_or(bytes.len())]).into_owned()
}

/// The 32-bit word at a byte offset.
pub fn u32_at(bytes: &[u8], offset: usize) -> Option<u32> {
    let word = bytes.get(offset..)?.first_chunk()?;
    Some(u32::from_ne_bytes(*word))
}

/// The 64-bit word at a byte offset.
pub fn u64_at(bytes: &[u8], offset: usize) -> Option<u64> {
    let word = bytes.get(offset..)?.first_chunk()?;
    Some(u64::from_ne_bytes(*word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(code: i32, explanation: &[u8]) -> Vec<u8> {
        let mut payload = code.to_ne_bytes().to_vec();
        payload.extend([0; HEADER]);
        payload.extend((4 + explanation.len() as u16).to_ne_bytes());
        payload.extend(NLMSGERR_ATTR_MSG.to_ne_bytes());
        payload.extend(explanation);
        payload
    }

    #[test]
    fn the_kernels_error_and_explanation_are_passed_on() {
        assert!(acknowledgement(&error(0, b"")).is_ok());
        let refusal = acknowledgement(&error(-libc::ENOENT, b"Unknown qdisc\0")).unwrap_err();
        assert_eq!(refusal.errno(), Some(libc::ENOENT));
        assert_eq!(refusal.detail.as_deref(), Some("Unknown qdisc"));
    }

    #[test]
    fn a_dump_that_changes_always_interrupt_is_an_error() {
        let interrupted = |until| {
            let mut count = 0;
            first_consistent(|| {
                count += 1;
                Ok((count > until).then_some(count))
            })
        };
        assert_eq!(interrupted(ATTEMPTS - 1).ok(), Some(ATTEMPTS));
        let failure = interrupted(ATTEMPTS).unwrap_err();
        let line = failure.of("list the interfaces").to_string();
        assert_eq!(
            line,
            "cannot list the interfaces: changes interrupted each of 16 attempts; try again"
        );
    }

    #[test]
    fn an_error_cut_anywhere_does_not_panic() {
        let whole = error(-libc::EPERM, b"no\0");
        for length in 0..whole.len() {
            assert!(acknowledgement(&whole[..length]).is_err(), "{length} bytes");
        }
    }
}
