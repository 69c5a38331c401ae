// SPDX-License-Identifier: Apache-2.0
//! Windows held at the edge (FairQ §III-B, overhead of the deployment): ports lower the windows of a
//! few ACKs only and flag these; the shim below the sender holds the window of the last flagged ACK of
//! each flow and writes it into all that follow.
//!
//! Ports sample by a hash of the ACK, so that all ports of a path sample the same ones: a flagged ACK
//! has the least window of its path. SYN-ACKs and first ACKs are flagged in any case ([`super::Policy`]).

use crate::packet::{Packet, flag};
use crate::rng::Rng;

/// The flag, one of the reserved bits of the TCP header.
const FLAG: u16 = 0x1000;

/// Whether ports lower the window of this ACK, one of `share` of all.
pub(super) fn is_sampled(packet: &Packet, share: f64) -> bool {
    Rng::new(packet.flow.0.into(), packet.ack.into()).unit() < share
}

/// Flags an ACK whose window a port has seen; that of a SYN has no scale and is not held.
pub(super) fn put_flag(packet: &mut Packet) {
    if !packet.has(flag::SYN) {
        packet.flags |= FLAG;
    }
}

/// The windows that the shims hold.
#[derive(Debug, Default)]
pub(super) struct Held {
    /// The window field of each flow's last flagged ACK.
    windows: Vec<Option<u16>>,
}

impl Held {
    /// An ACK or SYN is about to reach its host.
    pub fn on_delivery(&mut self, packet: &mut Packet) {
        let flow = packet.flow.0 as usize;
        if flow >= self.windows.len() {
            self.windows.resize(flow + 1, None);
        }
        let held = &mut self.windows[flow];
        if packet.has(flag::SYN) {
            *held = None;
        } else if packet.has(FLAG) {
            packet.flags &= !FLAG;
            *held = Some(packet.window);
        } else if let Some(window) = *held
            && window < packet.window
        {
            packet.window = window;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::FlowId;

    fn ack(flow: u32, number: u32, window: u16) -> Packet {
        Packet {
            flow: FlowId(flow),
            ack: number,
            window,
            flags: flag::ACK,
            ..Packet::default()
        }
    }

    fn delivered(held: &mut Held, mut packet: Packet) -> u16 {
        held.on_delivery(&mut packet);
        assert_eq!(packet.flags & flag::RESERVED, 0);
        packet.window
    }

    fn flagged(mut packet: Packet) -> Packet {
        put_flag(&mut packet);
        packet
    }

    #[test]
    fn the_last_flagged_window_is_that_of_all_that_follow() {
        let mut held = Held::default();
        assert_eq!(delivered(&mut held, ack(2, 1, 900)), 900);
        assert_eq!(delivered(&mut held, flagged(ack(2, 2, 300))), 300);
        assert_eq!(delivered(&mut held, ack(2, 3, 900)), 300);
        assert_eq!(delivered(&mut held, ack(2, 4, 200)), 200, "never raised");
        assert_eq!(delivered(&mut held, ack(4, 4, 900)), 900, "another flow");
        assert_eq!(delivered(&mut held, flagged(ack(2, 5, 700))), 700);
        assert_eq!(delivered(&mut held, ack(2, 6, 900)), 700);
        // A new connection with the same number.
        let mut syn = ack(2, 0, 500);
        syn.flags |= flag::SYN;
        assert_eq!(delivered(&mut held, flagged(syn)), 500);
        assert_eq!(delivered(&mut held, ack(2, 1, 900)), 900);
    }

    #[test]
    fn all_ports_sample_the_same_share() {
        let sampled = |share| (0..10_000).filter(move |n| is_sampled(&ack(2, *n, 1), share));
        let tenth = sampled(0.1).count();
        assert!((900..1100).contains(&tenth), "{tenth}");
        assert!(sampled(0.1).all(|n| is_sampled(&ack(2, n, 1), 0.2)));
        assert_eq!(sampled(1.0).count(), 10_000);
    }
}
