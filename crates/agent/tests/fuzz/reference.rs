// SPDX-License-Identifier: Apache-2.0
//! What a packet is, by the standards, read strictly and written apart from the datapath: only
//! what stands here may be acted on.

use super::craft::{fold, sum};

/// Bytes `at .. at + len` of a packet.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    pub at: usize,
    pub len: usize,
}

impl Span {
    pub fn of(self, packet: &[u8]) -> &[u8] {
        &packet[self.at..self.at + self.len]
    }
}

/// An IP header; `payload` is what follows it and its extension headers.
#[derive(Clone, Copy, Debug)]
pub struct Ip {
    pub header: Span,
    pub payload: Span,
    pub is6: bool,
    protocol: u8,
    is_fragment: bool,
}

impl Ip {
    /// Sum of the pseudo-header, without a routing header's change of the destination.
    pub fn pseudo(&self, packet: &[u8]) -> u64 {
        let (from, len) = if self.is6 { (8, 32) } else { (12, 8) };
        let addresses = Span {
            at: self.header.at + from,
            len,
        };
        sum(addresses.of(packet)) + u64::from(self.protocol) + self.payload.len as u64
    }
}

/// The layers of a packet as far as they are well-formed, outermost first.
#[derive(Debug, Default)]
pub struct Layers {
    pub ips: Vec<Ip>,
    /// The datagram that carries a tunnel.
    pub udp: Option<Span>,
    pub tcp: Option<Span>,
}

fn byte(packet: &[u8], at: usize) -> Option<u8> {
    packet.get(at).copied()
}

fn word(packet: &[u8], at: usize) -> Option<u16> {
    Some(u16::from(byte(packet, at)?) << 8 | u16::from(byte(packet, at + 1)?))
}

/// Reads a frame that begins at the first byte.
pub fn understand(packet: &[u8]) -> Layers {
    let mut layers = Layers::default();
    frame(packet, 0, packet.len(), &mut layers);
    layers
}

fn frame(packet: &[u8], at: usize, end: usize, layers: &mut Layers) -> Option<()> {
    let mut at = at + 12;
    while matches!(word(packet, at)?, 0x8100 | 0x88a8) {
        at += 4;
    }
    let kind = word(packet, at)?;
    network(packet, kind, at + 2, end, layers)
}

fn network(packet: &[u8], kind: u16, at: usize, end: usize, layers: &mut Layers) -> Option<()> {
    let ip = match kind {
        0x0800 => ip4(packet, at, end)?,
        0x86dd => ip6(packet, at, end)?,
        _ => return None,
    };
    layers.ips.push(ip);
    let ip = skip_extensions(packet, ip)?;
    *layers.ips.last_mut()? = ip;
    if ip.is_fragment {
        return None;
    }
    match ip.protocol {
        6 => layers.tcp = Some(tcp(packet, ip.payload)?),
        17 if layers.ips.len() == 1 => tunnel(packet, ip.payload, layers)?,
        _ => {}
    }
    Some(())
}

/// A length of 0 is a super-packet's of more than 64 kB, which ends with what holds it.
fn ip4(packet: &[u8], at: usize, end: usize) -> Option<Ip> {
    let first = byte(packet, at)?;
    let len = usize::from(first & 15) * 4;
    let total = match usize::from(word(packet, at + 2)?) {
        0 => end.checked_sub(at)?,
        total => total,
    };
    if first >> 4 != 4 || len < 20 || total < len || at + total > end {
        return None;
    }
    Some(Ip {
        header: Span { at, len },
        payload: Span {
            at: at + len,
            len: total - len,
        },
        is6: false,
        protocol: byte(packet, at + 9)?,
        is_fragment: word(packet, at + 6)? & 0x3fff != 0,
    })
}

fn ip6(packet: &[u8], at: usize, end: usize) -> Option<Ip> {
    let rest = end.checked_sub(at + 40)?;
    let total = match usize::from(word(packet, at + 4)?) {
        0 => rest,
        total => total,
    };
    if byte(packet, at)? >> 4 != 6 || total > rest {
        return None;
    }
    Some(Ip {
        header: Span { at, len: 40 },
        payload: Span {
            at: at + 40,
            len: total,
        },
        is6: true,
        protocol: byte(packet, at + 6)?,
        is_fragment: false,
    })
}

/// Skips the extension headers of IPv6 (RFC 8200 §4); `None` where they overrun the packet.
fn skip_extensions(packet: &[u8], mut ip: Ip) -> Option<Ip> {
    let limit = ip.payload.at + ip.payload.len;
    while ip.is6 && matches!(ip.protocol, 0 | 43 | 44 | 51 | 60) {
        let next = ip.payload.at;
        let words = usize::from(byte(packet, next + 1)?);
        let len = match ip.protocol {
            44 => 8,
            51 => 8 + 4 * words,
            _ => 8 + 8 * words,
        };
        if next + len > limit {
            return None;
        }
        ip.is_fragment |= ip.protocol == 44;
        ip.protocol = byte(packet, next)?;
        ip.payload = Span {
            at: next + len,
            len: limit - next - len,
        };
    }
    Some(ip)
}

fn tcp(packet: &[u8], segment: Span) -> Option<Span> {
    let header = usize::from(*segment.of(packet).get(12)? >> 4) * 4;
    (20 <= header && header <= segment.len).then_some(segment)
}

/// VXLAN (RFC 7348 §5) and Geneve (RFC 8926 §3.4), one deep.
fn tunnel(packet: &[u8], datagram: Span, layers: &mut Layers) -> Option<()> {
    if datagram.len < 16 {
        return None;
    }
    let len = match usize::from(word(packet, datagram.at + 4)?) {
        0 => datagram.len, // of a super-packet
        len => len,
    };
    if len < 16 || len > datagram.len {
        return None;
    }
    let (end, header) = (datagram.at + len, datagram.at + 8);
    layers.udp = Some(Span {
        at: datagram.at,
        len,
    });
    match word(packet, datagram.at + 2)? {
        4789 | 8472 if byte(packet, header)? & 8 != 0 => frame(packet, header + 8, end, layers),
        6081 if byte(packet, header)? >> 6 == 0 => {
            let inside = header + 8 + usize::from(byte(packet, header)? & 63) * 4;
            match word(packet, header + 2)? {
                0x6558 => frame(packet, inside, end, layers),
                kind => network(packet, kind, inside, end, layers),
            }
        }
        _ => None,
    }
}

/// The sum that is 0xffff where the checksum is right (RFC 1071 §1), with 0 and 0xffff the same.
pub fn residue(bytes: &[u8], pseudo: u64) -> u16 {
    fold(sum(bytes) + pseudo) % 0xffff
}
