// SPDX-License-Identifier: Apache-2.0
//! The qdiscs of an interface, asked by rtnetlink (RTM_GETQDISC): what the root can hold, how fast
//! it lets go, what it has dropped.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// Parent of a root qdisc (`linux/pkt_sched.h`).
const ROOT: u32 = u32::MAX;

// Attributes of a qdisc (`linux/rtnetlink.h`, `linux/gen_stats.h`, `linux/pkt_sched.h`).
const TCA_KIND: u16 = 1;
const TCA_OPTIONS: u16 = 2;
const TCA_STATS2: u16 = 7;
const TCA_STATS_BASIC: u16 = 1;
const TCA_STATS_QUEUE: u16 = 3;
const TCA_TBF_PARMS: u16 = 1;
const TCA_TBF_RATE64: u16 = 4;

/// How much a qdisc holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Bytes, headers included.
    Bytes(u32),
    /// Packets of any size.
    Packets(u32),
}

/// A qdisc.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Qdisc {
    /// Its number; 0 if the kernel made it.
    pub handle: u32,
    /// Number of the class that it is below.
    pub parent: u32,
    /// `tbf`, `fq_codel`, `noqueue` ...
    pub kind: String,
    /// What it holds, of those that say it: tbf, bfifo, pfifo.
    pub limit: Option<Limit>,
    /// Rate of a tbf, bits per second.
    pub rate_bps: Option<u64>,
    /// Bytes that it has sent.
    pub sent_bytes: u64,
    /// Bytes that wait in it.
    pub backlog_bytes: u32,
    /// Packets that it has dropped; wraps.
    pub drops: u32,
}

impl Qdisc {
    /// Whether all that leaves passes it.
    pub fn is_root(&self) -> bool {
        self.parent == ROOT
    }

    /// Whether it is below a class of `other`.
    pub fn is_below(&self, other: &Qdisc) -> bool {
        self.parent != ROOT && self.parent >> 16 == other.handle >> 16
    }
}

/// The root qdisc of the interface with this index.
///
/// # Errors
/// The kernel refuses, or there is no such interface.
pub fn of(ifindex: u32) -> io::Result<Qdisc> {
    let root = all(ifindex)?.into_iter().find(Qdisc::is_root);
    root.ok_or_else(|| io::ErrorKind::NotFound.into())
}

/// All qdiscs of the interface with this index.
///
/// # Errors
/// The kernel refuses.
pub fn all(ifindex: u32) -> io::Result<Vec<Qdisc>> {
    let socket = open()?;
    let request = request(ifindex);
    // SAFETY: the buffer and its length belong together.
    let sent = unsafe {
        libc::send(
            socket.as_raw_fd(),
            request.as_ptr().cast(),
            request.len(),
            0,
        )
    };
    if sent < 0 {
        return Err(io::Error::last_os_error());
    }
    let mut buffer = vec![0u8; 1 << 16];
    let mut found = Vec::new();
    loop {
        // SAFETY: as above.
        let read = unsafe {
            libc::recv(
                socket.as_raw_fd(),
                buffer.as_mut_ptr().cast(),
                buffer.len(),
                0,
            )
        };
        if read <= 0 {
            return Err(io::Error::last_os_error());
        }
        if scan(&buffer[..read as usize], ifindex, &mut found)? {
            return Ok(found);
        }
    }
}

fn open() -> io::Result<OwnedFd> {
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
    // SAFETY: no pointers; the descriptor is new and owned by nobody else.
    unsafe {
        match libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_ROUTE) {
            -1 => Err(io::Error::last_os_error()),
            socket => Ok(OwnedFd::from_raw_fd(socket)),
        }
    }
}

/// A dump of the qdiscs; kernels that can, keep it to the interface.
fn request(ifindex: u32) -> Vec<u8> {
    let flags = (libc::NLM_F_REQUEST | libc::NLM_F_DUMP) as u16;
    let mut message = 36u32.to_ne_bytes().to_vec();
    message.extend(libc::RTM_GETQDISC.to_ne_bytes());
    message.extend(flags.to_ne_bytes());
    message.extend([0; 8]); // sequence, port
    message.extend([0; 4]); // struct tcmsg: family
    message.extend(ifindex.to_ne_bytes());
    message.extend([0; 12]); // handle, parent, info
    message
}

/// Takes the interface's qdiscs from netlink messages; whether these were the last.
fn scan(mut messages: &[u8], ifindex: u32, found: &mut Vec<Qdisc>) -> io::Result<bool> {
    while let (Some(length), Some(kind)) = (u32_at(messages, 0), u16_at(messages, 4)) {
        let Some(message) = messages.get(16..length as usize) else {
            return Err(io::ErrorKind::InvalidData.into());
        };
        match libc::c_int::from(kind) {
            libc::NLMSG_DONE => return Ok(true),
            libc::NLMSG_ERROR => {
                let code = u32_at(message, 0).unwrap_or(0) as i32;
                return Err(io::Error::from_raw_os_error(-code));
            }
            _ if kind == libc::RTM_NEWQDISC && u32_at(message, 4) == Some(ifindex) => {
                found.push(Qdisc {
                    handle: u32_at(message, 8).unwrap_or(0),
                    parent: u32_at(message, 12).unwrap_or(0),
                    ..qdisc(message.get(20..).unwrap_or(&[]))
                });
            }
            _ => (),
        }
        messages = messages.get(aligned(length as usize)..).unwrap_or(&[]);
    }
    Ok(false)
}

fn qdisc(attributes: &[u8]) -> Qdisc {
    let mut found = Qdisc::default();
    for (kind, value) in Attributes(attributes) {
        if kind == TCA_KIND {
            let name = value.split(|byte| *byte == 0).next().unwrap_or(&[]);
            found.kind = String::from_utf8_lossy(name).into_owned();
        } else if kind == TCA_STATS2 {
            statistics(&mut found, value);
        }
    }
    for (kind, value) in Attributes(attributes) {
        if kind == TCA_OPTIONS {
            options(&mut found, value);
        }
    }
    found
}

fn statistics(found: &mut Qdisc, attributes: &[u8]) {
    for (kind, value) in Attributes(attributes) {
        match kind {
            TCA_STATS_BASIC => found.sent_bytes = u64_at(value, 0).unwrap_or(0),
            TCA_STATS_QUEUE => {
                found.backlog_bytes = u32_at(value, 4).unwrap_or(0);
                found.drops = u32_at(value, 8).unwrap_or(0);
            }
            _ => (),
        }
    }
}

/// Of the kinds whose options tell a limit in a form of their own.
fn options(found: &mut Qdisc, value: &[u8]) {
    match found.kind.as_str() {
        "bfifo" => found.limit = u32_at(value, 0).map(Limit::Bytes),
        "pfifo" => found.limit = u32_at(value, 0).map(Limit::Packets),
        "tbf" => {
            for (kind, value) in Attributes(value) {
                // struct tc_tbf_qopt: two ratespecs of 12 bytes, whose last word is bytes a
                // second, then the limit. Rates above 32 bits follow apart.
                if kind == TCA_TBF_PARMS {
                    found.limit = u32_at(value, 24).map(Limit::Bytes);
                    found.rate_bps = u32_at(value, 8).map(|rate| u64::from(rate) * 8);
                }
            }
            let large = Attributes(value).find(|(kind, _)| *kind == TCA_TBF_RATE64);
            if let Some(rate) = large.and_then(|(_, value)| u64_at(value, 0)) {
                found.rate_bps = Some(rate.saturating_mul(8));
            }
        }
        _ => (),
    }
}

/// Netlink attributes one after the other; ends at the first that contradicts its length.
struct Attributes<'a>(&'a [u8]);

impl<'a> Iterator for Attributes<'a> {
    type Item = (u16, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let length = usize::from(u16_at(self.0, 0)?);
        // The two upper bits are flags.
        let kind = u16_at(self.0, 2)? & 0x3fff;
        let value = self.0.get(4..length)?;
        self.0 = self.0.get(aligned(length)..).unwrap_or(&[]);
        Some((kind, value))
    }
}

const fn aligned(length: usize) -> usize {
    length.next_multiple_of(4)
}

fn bytes_at<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at + N)?.try_into().ok()
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes_at(bytes, at).map(u16::from_ne_bytes)
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes_at(bytes, at).map(u32::from_ne_bytes)
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes_at(bytes, at).map(u64::from_ne_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
        let mut bytes = (4 + value.len() as u16).to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(value);
        bytes.resize(aligned(bytes.len()), 0);
        bytes
    }

    fn tbf() -> Vec<u8> {
        let mut parameters = vec![0u8; 36];
        parameters[8..12].copy_from_slice(&25_000_000u32.to_ne_bytes());
        parameters[24..28].copy_from_slice(&131_072u32.to_ne_bytes());
        let mut queue = Vec::new();
        for word in [3u32, 4_500, 118, 0, 0] {
            queue.extend(word.to_ne_bytes());
        }
        let statistics = [
            attribute(TCA_STATS_BASIC, &1_000_000u64.to_ne_bytes()),
            attribute(TCA_STATS_QUEUE, &queue),
        ];
        [
            attribute(TCA_KIND, b"tbf\0"),
            attribute(TCA_OPTIONS, &attribute(TCA_TBF_PARMS, &parameters)),
            attribute(TCA_STATS2, &statistics.concat()),
        ]
        .concat()
    }

    fn message(ifindex: u32, parent: u32, attributes: &[u8]) -> Vec<u8> {
        let mut message = (36 + attributes.len() as u32).to_ne_bytes().to_vec();
        message.extend(libc::RTM_NEWQDISC.to_ne_bytes());
        message.extend([0; 10]);
        message.extend([0; 4]);
        for word in [ifindex, 0, parent, 0] {
            message.extend(word.to_ne_bytes());
        }
        message.extend(attributes);
        message
    }

    #[test]
    fn a_tbf_tells_its_rate_and_limit() {
        let answer = [
            message(7, ROOT, b""),
            message(8, 1, b""),
            message(8, ROOT, &tbf()),
        ]
        .concat();
        let mut all = Vec::new();
        assert!(!scan(&answer, 8, &mut all).unwrap());
        let [child, found] = all.as_slice() else {
            panic!("interface 8 has two");
        };
        assert!(found.is_root() && !child.is_root() && child.is_below(found));
        assert_eq!(found.kind, "tbf");
        assert_eq!(found.rate_bps, Some(200_000_000));
        assert_eq!(found.limit, Some(Limit::Bytes(131_072)));
        assert_eq!((found.backlog_bytes, found.drops), (4_500, 118));
        assert_eq!(found.sent_bytes, 1_000_000);
    }

    #[test]
    fn an_answer_cut_short_or_garbled_is_no_panic() {
        let answer = message(8, ROOT, &tbf());
        for length in 0..answer.len() {
            let _ = scan(&answer[..length], 8, &mut Vec::new());
        }
        for at in 0..answer.len() {
            let mut garbled = answer.clone();
            garbled[at] ^= 0xff;
            let _ = scan(&garbled, 8, &mut Vec::new());
        }
    }

    #[test]
    fn the_loopback_has_a_root_qdisc() {
        assert!(!of(1).unwrap().kind.is_empty());
    }
}
