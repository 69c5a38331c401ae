// SPDX-License-Identifier: Apache-2.0
//! What no packet may suffer, whatever it holds.

use super::craft::{ACK, RST, SYN};
use super::reference::{Layers, Span, residue, understand};

/// Which changes a program may make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Right {
    /// None: observing, or the agent is not alive.
    Nothing,
    /// Congestion Experienced, on packets that leave by a port.
    Mark,
    /// The window of ACKs that enter by a port.
    Window,
    /// The same of a scheme without a floor.
    WindowOrNone,
    /// The same, where its upper four bits are the scale.
    Window12,
    /// A shim's, or a port's that changes scales: the scale option, the window in another scale,
    /// reserved bits outside of the sum.
    Scale,
}

/// What became of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// TCP, to the strict reader.
    pub is_tcp: bool,
    pub changed: bool,
    /// Its checksums were right, before and after.
    pub was_right: bool,
}

/// Holds a packet before and after a program against the rules; `verdict` is the program's.
pub fn check(before: &[u8], after: &[u8], verdict: i32, right: Right) -> Result<Outcome, String> {
    if verdict != -1 {
        return Err(format!("the verdict is {verdict}, not -1 (next)"));
    }
    if before.len() != after.len() {
        return Err(format!("{} bytes became {}", before.len(), after.len()));
    }
    let layers = understand(before);
    let mut outcome = Outcome {
        is_tcp: layers.tcp.is_some(),
        ..Outcome::default()
    };
    if before == after {
        return Ok(outcome);
    }
    outcome.changed = true;
    let allowed = allowed(before, &layers, right);
    for (at, (&was, &is)) in before.iter().zip(after).enumerate() {
        let mask = allowed
            .iter()
            .filter(|(place, _)| *place == at)
            .fold(0, |m, (_, bits)| m | bits);
        if (was ^ is) & !mask != 0 {
            return Err(format!("byte {at} was {was:#04x} and is {is:#04x}"));
        }
    }
    match right {
        Right::Nothing => {}
        Right::Mark => marks(before, after, &layers)?,
        _ => window(before, after, &layers, right)?,
    }
    outcome.was_right = sums(before, after, &layers, right)?;
    Ok(outcome)
}

/// Places and bits that may differ.
fn allowed(packet: &[u8], layers: &Layers, right: Right) -> Vec<(usize, u8)> {
    let mut places = Vec::new();
    let whole = |at: usize, count: usize| (at..at + count).map(|at| (at, 0xff));
    if right == Right::Nothing {
        return places;
    }
    if let Some(udp) = layers.udp
        && udp.of(packet)[6..8] != [0, 0]
    {
        places.extend(whole(udp.at + 6, 2));
    }
    if right == Right::Mark {
        for ip in layers.ips.iter().filter(|ip| !ip.is6) {
            places.extend(whole(ip.header.at + 10, 2));
        }
        places.extend(
            layers
                .ips
                .iter()
                .map(|ip| (ip.header.at + 1, if ip.is6 { 0x30 } else { 3 })),
        );
        return places;
    }
    if let Some(tcp) = layers.tcp {
        places.extend(whole(tcp.at + 14, 4));
        if right == Right::Scale {
            places.push((tcp.at + 12, 0x0f));
            let option = scale_option(tcp.of(packet));
            places.extend(option.into_iter().flat_map(|at| whole(tcp.at + at - 2, 3)));
        }
    }
    places
}

/// The options of a segment, as (kind, where its value begins, length of the value), up to where
/// the list contradicts itself.
fn options(segment: &[u8]) -> Vec<(u8, usize, usize)> {
    let end = usize::from(segment[12] >> 4) * 4;
    let (mut at, mut found) = (20, Vec::new());
    while at < end && segment[at] != 0 {
        if segment[at] == 1 {
            at += 1;
            continue;
        }
        let bytes = segment[..end].get(at + 1).copied().map_or(0, usize::from);
        if bytes < 2 || at + bytes > end {
            break;
        }
        found.push((segment[at], at + 2, bytes - 2));
        at += bytes;
    }
    found
}

/// Where in a SYN the value of the window scale stands; of several the last holds, as for Linux.
pub fn scale_option(segment: &[u8]) -> Option<usize> {
    let found = options(segment)
        .into_iter()
        .rfind(|(kind, _, len)| (*kind, *len) == (3, 1));
    found
        .filter(|_| segment[13] & SYN != 0)
        .map(|(_, at, _)| at)
}

/// Whether a digest covers the header: TCP-MD5 (RFC 2385) or TCP-AO (RFC 5925).
fn is_authenticated(segment: &[u8]) -> bool {
    options(segment)
        .iter()
        .any(|(kind, _, _)| matches!(kind, 19 | 29))
}

/// Only ECT becomes CE (RFC 3168 §5).
fn marks(before: &[u8], after: &[u8], layers: &Layers) -> Result<(), String> {
    for ip in &layers.ips {
        let ecn = |packet: &[u8]| packet[ip.header.at + 1] >> (if ip.is6 { 4 } else { 0 }) & 3;
        match (ecn(before), ecn(after)) {
            (was, is) if was == is => {}
            (1 | 2, 3) => {}
            (was, is) => return Err(format!("ECN was {was} and is {is}")),
        }
    }
    Ok(())
}

fn window(before: &[u8], after: &[u8], layers: &Layers, right: Right) -> Result<(), String> {
    let tcp = layers.tcp.ok_or("changed, though not TCP")?;
    let field = |packet: &[u8]| u16::from_be_bytes([tcp.of(packet)[14], tcp.of(packet)[15]]);
    let (was, is, flags) = (field(before), field(after), tcp.of(before)[13]);
    if flags & RST != 0 {
        return Err("an RST was changed".into());
    }
    if is_authenticated(tcp.of(before)) {
        return Err("an authenticated segment was changed".into());
    }
    if right == Right::Scale {
        return Ok(());
    }
    if was != is && flags & (ACK | SYN) == 0 {
        return Err(format!(
            "a window that does not count was changed, flags {flags:#x}"
        ));
    }
    if right == Right::Window12 && flags & SYN == 0 && was >> 12 != is >> 12 && was >> 12 != 15 {
        return Err(format!(
            "the scale next to the window was {was:#x} and is {is:#x}"
        ));
    }
    if is > was {
        return Err(format!("the window was raised from {was} to {is}"));
    }
    if is == 0 && was != 0 && right == Right::Window {
        return Err(format!("the window was closed from {was}"));
    }
    Ok(())
}

/// Each checksum is as right or as wrong as it was; returns whether all of them were right.
fn sums(before: &[u8], after: &[u8], layers: &Layers, right: Right) -> Result<bool, String> {
    let mut was_right = true;
    let mut same = |what: &str, span: Span, pseudo: u64| {
        let plain = |packet: &[u8]| {
            let mut bytes = span.of(packet).to_vec();
            if right == Right::Scale && what == "TCP" {
                bytes[12] &= 0xf0; // its checksum is that of the cleared bits
            }
            residue(&bytes, pseudo)
        };
        let (was, is) = (plain(before), plain(after));
        was_right &= was == 0;
        if was == is {
            Ok(())
        } else {
            Err(format!(
                "the {what} checksum was off by {was:#x} and is by {is:#x}"
            ))
        }
    };
    for ip in layers.ips.iter().filter(|ip| !ip.is6) {
        same("IPv4", ip.header, 0)?;
    }
    if let (Some(tcp), Some(ip)) = (layers.tcp, layers.ips.last()) {
        same("TCP", tcp, ip.pseudo(before))?;
    }
    if let (Some(udp), Some(ip)) = (layers.udp, layers.ips.first()) {
        let checksum = |packet: &[u8]| [udp.of(packet)[6], udp.of(packet)[7]];
        if checksum(before) != [0, 0] {
            same("UDP", udp, ip.pseudo(before))?;
            if checksum(after) == [0, 0] {
                return Err("the UDP checksum became none".into());
            }
        }
    }
    Ok(was_right)
}
