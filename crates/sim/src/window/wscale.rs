// SPDX-License-Identifier: Apache-2.0
//! How a port learns the scale of the window in an ACK (FairQ §III-B): from the SYNs that it saw,
//! or from what the shims below the hosts write into each ACK (`core/tcp_rewrite.h`).

use super::held::Held;
use crate::packet::{Packet, SynOptions, flag};
use penstock_core::scheme::WscaleSource;
use penstock_core::tcp_rewrite::{
    reserved_clear, reserved_put_scale, reserved_scale, unify_window, window12_put, window12_scale,
    window12_window,
};

/// Where the scale of a window is found.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wscale {
    /// The way.
    pub source: WscaleSource,
    /// The one scale of all windows, where that is the way, or the largest.
    pub network: u8,
    /// Whether the port clears the reserved bits that it has read.
    pub clears_bits: bool,
}

impl Wscale {
    /// The window field of an ACK and its scale, `tracked` if the port remembers it; a SYN's window
    /// has none.
    pub(super) fn read(self, packet: &Packet, tracked: Option<u8>) -> (u16, Option<u8>) {
        if packet.has(flag::SYN) {
            return (packet.window, Some(0));
        }
        match self.source {
            // A port that changes SYNs tracks what it has left in them.
            WscaleSource::Tracked | WscaleSource::Stripped | WscaleSource::Lowered => {
                (packet.window, tracked)
            }
            WscaleSource::Unified => (packet.window, tracked.or(Some(self.network))),
            WscaleSource::ReservedBits => {
                (packet.window, Some(reserved_scale(header_word(packet))))
            }
            WscaleSource::WindowBits => (
                window12_window(packet.window),
                Some(window12_scale(packet.window)),
            ),
        }
    }

    /// A SYN passes the port, in either direction; it may change the scale that the SYN offers.
    pub(super) fn on_syn(self, packet: &mut Packet) {
        let options = SynOptions::unpack(packet.options);
        let is_answer = packet.has(flag::ACK);
        let left = |scale| self.source.syn_scale(self.network, scale, is_answer);
        let changed = SynOptions {
            window_scale: options.window_scale.and_then(left),
            ..options
        };
        packet.options = changed.pack();
    }

    /// Writes a window with the scale it was read with, for the ports and the shim behind.
    pub(super) fn write(self, packet: &mut Packet, window: u16) {
        if self.clears_bits && self.source == WscaleSource::ReservedBits {
            set_reserved(packet, reserved_clear(header_word(packet)));
        }
        packet.window = match self.source {
            WscaleSource::WindowBits if !packet.has(flag::SYN) => {
                window12_put(window, window12_scale(packet.window))
            }
            _ => window,
        };
    }
}

/// The shims below all hosts. A shim writes the scale into what leaves its host, and makes what
/// arrives plain again: with several ports on the way, none knows whether it is the last to read it.
#[derive(Debug, Default)]
pub struct Shims {
    wscale: Wscale,
    /// Scale that each flow's host offered in its SYN.
    offered: Vec<Option<u8>>,
    /// The windows that they hold for ports which sample ACKs.
    held: Option<Held>,
}

impl Shims {
    /// Shims that have seen no SYN yet; `None` where none are needed. `holds`: for ports which sample
    /// ACKs.
    pub fn new(wscale: Wscale, holds: bool) -> Option<Shims> {
        (wscale.source.has_shims() || holds).then(|| Shims {
            wscale,
            offered: Vec::new(),
            held: holds.then(Held::default),
        })
    }

    /// A packet leaves its host.
    pub fn on_departure(&mut self, packet: &mut Packet) {
        if packet.has(flag::SYN) {
            return self.on_syn(packet);
        }
        if !packet.has(flag::ACK) {
            return;
        }
        let scale = self.scale(packet);
        match self.wscale.source {
            WscaleSource::Tracked | WscaleSource::Stripped | WscaleSource::Lowered => {}
            WscaleSource::Unified if self.is_scaled(packet) => {
                packet.window = unify_window(packet.window, scale, self.wscale.network);
            }
            WscaleSource::Unified => {}
            WscaleSource::ReservedBits => {
                let word = reserved_put_scale(header_word(packet), scale);
                set_reserved(packet, word);
            }
            WscaleSource::WindowBits => packet.window = window12_put(packet.window, scale),
        }
    }

    /// A packet is about to reach its host. Where ports clear the bits, no shim does: an ACK that met
    /// none of them keeps its bits, and the host would find its checksum wrong.
    pub fn on_delivery(&mut self, packet: &mut Packet) {
        if packet.has(flag::SYN) {
            self.on_peers_syn(packet);
        } else if packet.has(flag::ACK) {
            self.on_peers_ack(packet);
        }
        if let Some(held) = &mut self.held
            && packet.has_any(flag::SYN | flag::ACK)
        {
            held.on_delivery(packet);
        }
    }

    fn on_peers_ack(&self, packet: &mut Packet) {
        match self.wscale.source {
            WscaleSource::ReservedBits if !self.wscale.clears_bits => {
                let word = reserved_clear(header_word(packet));
                set_reserved(packet, word);
            }
            WscaleSource::WindowBits => packet.window = window12_window(packet.window),
            _ => {}
        }
    }

    fn on_syn(&mut self, packet: &mut Packet) {
        let options = SynOptions::unpack(packet.options);
        *self.offered(packet) = options.window_scale;
        if self.wscale.source == WscaleSource::Unified && options.window_scale.is_some() {
            let unified = SynOptions {
                window_scale: Some(self.wscale.network),
                ..options
            };
            packet.options = unified.pack();
        }
    }

    /// Learns whether the other end offered to scale; its scale matters to its own shim only, and
    /// may have been replaced on the way.
    fn on_peers_syn(&mut self, packet: &Packet) {
        let scale = SynOptions::unpack(packet.options).window_scale;
        let offered = self.offered(packet);
        *offered = scale.map(|scale| offered.unwrap_or(scale));
    }

    fn offered(&mut self, packet: &Packet) -> &mut Option<u8> {
        let needed = (packet.flow.0 | 1) as usize + 1;
        if self.offered.len() < needed {
            self.offered.resize(needed, None);
        }
        &mut self.offered[packet.flow.0 as usize]
    }

    fn offer(&self, flow: u32) -> Option<u8> {
        self.offered.get(flow as usize).copied().flatten()
    }

    /// Whether both ends offered to scale: only then do they (RFC 7323 §2.2).
    fn is_scaled(&self, packet: &Packet) -> bool {
        let flow = packet.flow;
        self.offer(flow.0).is_some() && self.offer(flow.reverse().0).is_some()
    }

    /// Scale of the windows of the packet's sender.
    fn scale(&self, packet: &Packet) -> u8 {
        let own = self.offer(packet.flow.0).unwrap_or(0);
        if self.is_scaled(packet) { own } else { 0 }
    }
}

/// Header bytes 12 and 13 as `core/` takes them, without the data offset. A packet holds the
/// reserved bits above the bits of [`flag`].
fn header_word(packet: &Packet) -> u16 {
    packet.flags & 0xff | (packet.flags & flag::RESERVED) >> 4
}

fn set_reserved(packet: &mut Packet, word: u16) {
    packet.flags = packet.flags & !flag::RESERVED | (word << 4) & flag::RESERVED;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::FlowId;

    const NETWORK: u8 = 7;

    fn by(source: WscaleSource) -> Wscale {
        Wscale {
            source,
            network: NETWORK,
            clears_bits: false,
        }
    }

    fn syn(flow: FlowId, window_scale: Option<u8>) -> Packet {
        let options = SynOptions {
            mss: 1460,
            window_scale,
            sack: true,
            timestamps: false,
        };
        let answers = if flow.is_opener() { 0 } else { flag::ACK };
        Packet {
            flow,
            flags: flag::SYN | answers,
            options: options.pack(),
            window: 60_000,
            ..Packet::default()
        }
    }

    fn ack(flow: FlowId, window: u16) -> Packet {
        Packet {
            flow,
            flags: flag::ACK | flag::ECE | flag::ECT | flag::TIMESTAMPS,
            window,
            ..Packet::default()
        }
    }

    /// The shims of a connection whose ends offered these scales, and the SYN-ACK as it left.
    fn shims(wscale: Wscale, scales: [Option<u8>; 2]) -> (Shims, Packet) {
        let mut shims = Shims::new(wscale, false).expect("not tracked");
        let mut passing = Packet::default();
        for (flow, scale) in scales.into_iter().enumerate() {
            passing = syn(FlowId(8 + flow as u32), scale);
            shims.on_departure(&mut passing);
        }
        (shims, passing)
    }

    #[test]
    fn the_bits_carry_every_scale_past_any_number_of_ports() {
        for source in [WscaleSource::ReservedBits, WscaleSource::WindowBits] {
            for scale in 0..=14 {
                let (mut shims, _) = shims(by(source), [Some(3), Some(scale)]);
                let plain = ack(FlowId(9), 4000);
                let mut packet = plain;
                shims.on_departure(&mut packet);
                for window in [3000, 2000] {
                    let (_, read) = by(source).read(&packet, None);
                    assert_eq!(read, Some(scale));
                    by(source).write(&mut packet, window);
                    assert_eq!(by(source).read(&packet, None), (window, Some(scale)));
                }
                shims.on_delivery(&mut packet);
                assert_eq!(
                    packet,
                    Packet {
                        window: 2000,
                        ..plain
                    }
                );
            }
        }
    }

    /// The papers' deployment: a shim where ACKs leave, none where they arrive.
    #[test]
    fn a_port_that_clears_the_bits_leaves_nothing_to_a_shim() {
        let clearing = Wscale {
            clears_bits: true,
            ..by(WscaleSource::ReservedBits)
        };
        let (mut shims, _) = shims(clearing, [Some(3), Some(7)]);
        let plain = ack(FlowId(9), 4000);
        let mut packet = plain;
        shims.on_departure(&mut packet);
        let mut unread = packet;
        assert_eq!(clearing.read(&packet, None), (4000, Some(7)));
        clearing.write(&mut packet, 4000);
        shims.on_delivery(&mut packet);
        assert_eq!(packet, plain);
        shims.on_delivery(&mut unread);
        assert!(unread.has_any(flag::RESERVED), "its checksum is wrong");
    }

    #[test]
    fn a_port_strips_or_lowers_what_syns_offer() {
        for (source, offered, left) in [
            (WscaleSource::Stripped, Some(7), None),
            (WscaleSource::Stripped, None, None),
            (WscaleSource::Lowered, Some(10), Some(NETWORK)),
            (WscaleSource::Lowered, Some(3), Some(3)),
            (WscaleSource::Lowered, None, None),
            (WscaleSource::Tracked, Some(10), Some(10)),
            (WscaleSource::Unified, Some(10), Some(10)),
        ] {
            let mut packet = syn(FlowId(8), offered);
            by(source).on_syn(&mut packet);
            assert_eq!(SynOptions::unpack(packet.options).window_scale, left);
            assert_eq!((packet.window, packet.flags), (60_000, flag::SYN));
            let needs = matches!(source, WscaleSource::Unified);
            assert_eq!(Shims::new(by(source), false).is_some(), needs);
        }
    }

    #[test]
    fn a_scale_that_the_peer_does_not_know_is_not_in_force() {
        let (mut shims, _) = shims(by(WscaleSource::ReservedBits), [None, Some(7)]);
        let mut packet = ack(FlowId(9), 4000);
        shims.on_departure(&mut packet);
        let (_, scale) = by(WscaleSource::ReservedBits).read(&packet, None);
        assert_eq!(scale, Some(0));
    }

    #[test]
    fn twelve_bits_hold_no_more_than_4095() {
        let (mut shims, _) = shims(by(WscaleSource::WindowBits), [Some(7), Some(7)]);
        let mut packet = ack(FlowId(8), 65_535);
        shims.on_departure(&mut packet);
        shims.on_delivery(&mut packet);
        assert_eq!(packet.window, 4095);
    }

    #[test]
    fn a_unified_window_is_the_same_number_of_bytes_rounded_down() {
        let (mut shims, answer) = shims(by(WscaleSource::Unified), [Some(5), Some(10)]);
        let offered = SynOptions::unpack(answer.options).window_scale;
        assert_eq!((offered, answer.window), (Some(NETWORK), 60_000));
        for (flow, scale) in [(8, 5), (9, 10)] {
            let mut packet = ack(FlowId(flow), 1001);
            shims.on_departure(&mut packet);
            shims.on_delivery(&mut packet);
            assert_eq!(u32::from(packet.window), (1001 << scale) >> NETWORK);
        }
    }

    #[test]
    fn without_the_option_nothing_is_unified() {
        let (mut shims, answer) = shims(by(WscaleSource::Unified), [Some(5), None]);
        assert_eq!(SynOptions::unpack(answer.options).window_scale, None);
        let mut packet = ack(FlowId(8), 1001);
        shims.on_departure(&mut packet);
        assert_eq!(packet.window, 1001);
    }
}
