// SPDX-License-Identifier: Apache-2.0
//! DCTCP's marking (Alizadeh et al. 2010 §3.1, RFC 8257 §3.1): mark when the queue found on arrival
//! is above K. Instantaneous, without averaging or chance.

use super::{Admission, Arrival, Verdict};
use crate::packet::{Packet, flag};
use crate::rng::Rng;

/// The queue above which packets are marked (K).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Threshold {
    /// Packets waiting, the one in transmission not counted.
    Packets(u32),
    /// Bytes, what is left of the packet in transmission included.
    Bytes(u64),
}

/// A port that marks above a threshold. Packets that cannot be marked are queued (the DCTCP paper).
#[derive(Clone, Copy, Debug)]
pub struct Marking(Threshold);

impl Marking {
    /// A port with this K; it keeps no state.
    pub const fn new(threshold: Threshold) -> Marking {
        Marking(threshold)
    }
}

impl Admission for Marking {
    fn admit(&mut self, port: &Arrival, packet: &Packet, _rng: &mut Rng) -> Verdict {
        let above = match self.0 {
            Threshold::Packets(k) => port.backlog_packets > k,
            Threshold::Bytes(k) => port.backlog_bytes > k,
        };
        if above && packet.has(flag::ECT) {
            Verdict::Mark
        } else {
            Verdict::Pass
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::fixtures::{data, ect, port};

    fn verdict(threshold: Threshold, waiting: u32, packet: &Packet) -> Verdict {
        Marking::new(threshold).admit(&port(waiting), packet, &mut Rng::new(1, 0))
    }

    #[test]
    fn marks_above_k_not_at_k() {
        let packets = Threshold::Packets(15);
        assert_eq!(verdict(packets, 15, &ect(0)), Verdict::Pass);
        assert_eq!(verdict(packets, 16, &ect(0)), Verdict::Mark);
        let bytes = Threshold::Bytes(15_000);
        assert_eq!(verdict(bytes, 10, &ect(0)), Verdict::Pass);
        assert_eq!(verdict(bytes, 11, &ect(0)), Verdict::Mark);
    }

    #[test]
    fn a_packet_without_ecn_passes() {
        assert_eq!(verdict(Threshold::Packets(15), 16, &data(0)), Verdict::Pass);
    }
}
