// SPDX-License-Identifier: Apache-2.0
//! The statistics of an interface's root qdisc, over rtnetlink (RTM_GETQDISC): one question, one
//! answer, a few microseconds.

use super::{check, transferred};
use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// linux/rtnetlink.h and linux/gen_stats.h; the libc crate has not got them.
const TC_H_ROOT: u32 = 0xffff_ffff;
const TCA_KIND: u16 = 1;
const TCA_STATS2: u16 = 7;
const TCA_STATS_BASIC: u16 = 1;
const TCA_STATS_QUEUE: u16 = 3;
const TCA_STATS_PKT64: u16 = 8;

/// Of `struct nlmsghdr`, `struct tcmsg` and `struct nlattr`, bytes.
const HEADER: usize = 16;
const TCMSG: usize = 20;
const ATTRIBUTE: usize = 4;

/// Counts of a root qdisc. Bytes are those of frames, the Ethernet header (14 bytes) included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QdiscStats {
    /// Sent so far, bytes.
    pub sent_bytes: u64,
    /// Sent so far, packets.
    pub sent_packets: u64,
    /// Queued now, bytes.
    pub backlog_bytes: u32,
    /// Queued now, packets.
    pub backlog_packets: u32,
    /// Dropped so far, packets.
    pub drops: u32,
}

/// The root qdisc of one interface.
pub struct Qdisc {
    socket: OwnedFd,
    request: Vec<u8>,
    answer: Vec<u8>,
}

impl Qdisc {
    /// That of `interface` in the thread's namespace.
    ///
    /// # Errors
    /// `NotFound` where there is no such interface.
    pub fn of(interface: &str) -> io::Result<Qdisc> {
        let missing = || io::Error::from(io::ErrorKind::NotFound);
        let name = CString::new(interface).map_err(|_| missing())?;
        // SAFETY: `name` ends with a zero byte.
        let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
        if index == 0 {
            return Err(missing());
        }
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
        // SAFETY: no pointers; a new descriptor is ours alone.
        let socket = unsafe {
            OwnedFd::from_raw_fd(check(libc::socket(
                libc::AF_NETLINK,
                kind,
                libc::NETLINK_ROUTE,
            ))?)
        };
        Ok(Qdisc {
            socket,
            request: request(index),
            answer: vec![0; 8192],
        })
    }

    /// Its counts now.
    pub fn stats(&mut self) -> io::Result<QdiscStats> {
        let fd = self.socket.as_raw_fd();
        // SAFETY: pointers and lengths are those of the buffers. The kernel answers before it returns.
        let length = unsafe {
            transferred(libc::send(
                fd,
                self.request.as_ptr().cast(),
                self.request.len(),
                0,
            ))?;
            let room = self.answer.len();
            transferred(libc::recv(
                fd,
                self.answer.as_mut_ptr().cast(),
                room,
                libc::MSG_DONTWAIT,
            ))?
        };
        parse(&self.answer[..length.ok_or_else(no_queue)?])
    }
}

/// Asks for the root qdisc of interface `index`.
fn request(index: u32) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER + TCMSG);
    bytes.extend(((HEADER + TCMSG) as u32).to_ne_bytes());
    bytes.extend(libc::RTM_GETQDISC.to_ne_bytes());
    // The kernel tells the asker only with ECHO.
    let flags = (libc::NLM_F_REQUEST | libc::NLM_F_ECHO) as u16;
    bytes.extend(flags.to_ne_bytes());
    bytes.extend([0; 8]); // Sequence number, port: one question at a time.
    bytes.extend([0; 4]); // Family and padding.
    bytes.extend(index.to_ne_bytes());
    bytes.extend(0u32.to_ne_bytes()); // Handle: any.
    bytes.extend(TC_H_ROOT.to_ne_bytes());
    bytes.extend(0u32.to_ne_bytes()); // Info.
    bytes
}

/// An interface without a queue counts nothing.
fn no_queue() -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, "it has none; give it one, by tc")
}

fn parse(message: &[u8]) -> io::Result<QdiscStats> {
    let short = || io::Error::new(io::ErrorKind::InvalidData, "a netlink message is cut short");
    let kind = u16::from_ne_bytes(array(message, 4).ok_or_else(short)?);
    if kind == libc::NLMSG_ERROR as u16 {
        let code = i32::from_ne_bytes(array(message, HEADER).ok_or_else(short)?);
        return Err(io::Error::from_raw_os_error(-code));
    }
    let attributes = message.get(HEADER + TCMSG..).ok_or_else(short)?;
    if attribute(attributes, TCA_KIND) == Some(b"noqueue\0") {
        return Err(no_queue());
    }
    let statistics = attribute(attributes, TCA_STATS2).ok_or_else(short)?;
    let basic = attribute(statistics, TCA_STATS_BASIC).ok_or_else(short)?;
    let queue = attribute(statistics, TCA_STATS_QUEUE).ok_or_else(short)?;
    let long = |bytes, at| array(bytes, at).map(u64::from_ne_bytes);
    let word = |bytes, at| array(bytes, at).map(u32::from_ne_bytes);
    let packets = match attribute(statistics, TCA_STATS_PKT64) {
        Some(packets) => long(packets, 0),
        None => word(basic, 8).map(u64::from),
    };
    Ok(QdiscStats {
        sent_bytes: long(basic, 0).ok_or_else(short)?,
        sent_packets: packets.ok_or_else(short)?,
        backlog_packets: word(queue, 0).ok_or_else(short)?,
        backlog_bytes: word(queue, 4).ok_or_else(short)?,
        drops: word(queue, 8).ok_or_else(short)?,
    })
}

/// The payload of the first attribute of that kind.
fn attribute(mut bytes: &[u8], wanted: u16) -> Option<&[u8]> {
    loop {
        let length = usize::from(u16::from_ne_bytes(array(bytes, 0)?));
        let kind = u16::from_ne_bytes(array(bytes, 2)?) & !(libc::NLA_F_NESTED as u16);
        let payload = bytes.get(ATTRIBUTE..length)?;
        if kind == wanted {
            return Some(payload);
        }
        bytes = bytes.get(length.next_multiple_of(4)..)?;
    }
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at + N)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attribute_of(kind: u16, payload: &[u8]) -> Vec<u8> {
        let length = (ATTRIBUTE + payload.len()) as u16;
        let mut bytes = [length.to_ne_bytes(), kind.to_ne_bytes()].concat();
        bytes.extend(payload);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    fn answer() -> Vec<u8> {
        let basic = [&5_000_000_000u64.to_ne_bytes()[..], &7u32.to_ne_bytes()].concat();
        let queue: Vec<u8> = [3u32, 4500, 11, 0, 0]
            .iter()
            .flat_map(|word| word.to_ne_bytes())
            .collect();
        let nested = [
            attribute_of(TCA_STATS_BASIC, &basic),
            attribute_of(TCA_STATS_QUEUE, &queue),
        ]
        .concat();
        let mut bytes = vec![0; HEADER + TCMSG];
        bytes[4..6].copy_from_slice(&libc::RTM_NEWQDISC.to_ne_bytes());
        bytes.extend(attribute_of(TCA_KIND, b"tbf\0"));
        bytes.extend(attribute_of(TCA_STATS2, &nested));
        bytes
    }

    #[test]
    fn counts_are_read_from_the_kernels_answer() {
        let stats = parse(&answer()).expect("whole");
        assert_eq!((stats.sent_bytes, stats.sent_packets), (5_000_000_000, 7));
        let queued = (stats.backlog_packets, stats.backlog_bytes, stats.drops);
        assert_eq!(queued, (3, 4500, 11));
    }

    #[test]
    fn an_answer_cut_anywhere_is_an_error() {
        let whole = answer();
        for length in 0..whole.len() - 8 {
            assert!(parse(&whole[..length]).is_err(), "{length} bytes");
        }
    }

    #[test]
    fn the_kernels_error_is_passed_on() {
        let mut message = vec![0; HEADER + 4];
        message[4..6].copy_from_slice(&(libc::NLMSG_ERROR as u16).to_ne_bytes());
        message[HEADER..].copy_from_slice(&(-libc::ENOENT).to_ne_bytes());
        let error = parse(&message).expect_err("an error");
        assert_eq!(error.raw_os_error(), Some(libc::ENOENT));
    }
}
