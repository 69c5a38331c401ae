// SPDX-License-Identifier: Apache-2.0
//! A window is never lowered below one segment, in the scale that its sender offered.

use std::collections::HashMap;

use super::check::scale_option;
use super::craft::SYN;
use super::reference::{Ip, Span, understand};

/// RFC 9293 §3.7.1: what every host can send.
const SEGMENT_BYTES: u32 = 536;

/// The largest scale that each sender of a segment has offered in any SYN, by addresses and ports.
#[derive(Default)]
pub struct Floors(HashMap<Vec<u8>, u8>);

/// The TCP segment of a packet, and who sends it to whom.
fn sender(packet: &[u8]) -> Option<(Span, Vec<u8>)> {
    let layers = understand(packet);
    let (tcp, ip) = (layers.tcp?, layers.ips.last()?);
    Some((
        tcp,
        [ip_addresses(ip, packet), &tcp.of(packet)[..4]].concat(),
    ))
}

fn ip_addresses<'packet>(ip: &Ip, packet: &'packet [u8]) -> &'packet [u8] {
    let (from, len) = if ip.is6 { (8, 32) } else { (12, 8) };
    &packet[ip.header.at + from..][..len]
}

impl Floors {
    /// A packet is about to pass.
    pub fn see(&mut self, packet: &[u8]) {
        let Some((tcp, sender)) = sender(packet) else {
            return;
        };
        let segment = tcp.of(packet);
        if segment[13] & SYN != 0 {
            let offered = scale_option(segment).map_or(0, |at| segment[at].min(14));
            let largest = self.0.entry(sender).or_default();
            *largest = offered.max(*largest);
        }
    }

    /// Whether what a program made of a packet keeps the rule.
    pub fn check(&self, before: &[u8], after: &[u8]) -> Result<(), String> {
        let Some((tcp, sender)) = sender(before).filter(|_| before != after) else {
            return Ok(());
        };
        let field = |packet: &[u8]| {
            let segment = tcp.of(packet);
            u32::from(u16::from_be_bytes([segment[14], segment[15]]))
        };
        let is_syn = tcp.of(before)[13] & SYN != 0;
        // Without an offer it may be known to be none, by the SYN of the other side.
        let scale = match self.0.get(&sender) {
            Some(scale) if !is_syn => *scale,
            _ => 0,
        };
        let (was, is) = (field(before) << scale, field(after) << scale);
        if is < was.min(SEGMENT_BYTES) {
            return Err(format!("the window was lowered from {was} to {is} bytes"));
        }
        Ok(())
    }
}
