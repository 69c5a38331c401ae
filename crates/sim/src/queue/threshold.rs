// SPDX-License-Identifier: Apache-2.0
//! DCTCP's marking (Alizadeh et al. 2010 §3.1, RFC 8257 §3.1): mark when the queue found on arrival
//! is above K. Instantaneous, without averaging or chance.

use super::{Admission, Arrival, DropReason, Verdict};
use crate::packet::{Packet, flag};
use crate::rng::Rng;
use penstock_scenario::units::Rate;

/// The queue above which packets are marked (K).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Threshold {
    /// Packets waiting, the one in transmission not counted.
    Packets(u32),
    /// Bytes, what is left of the packet in transmission included.
    Bytes(u64),
}

/// What becomes, above K, of packets that cannot be marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unmarkable {
    /// They are queued (the DCTCP paper).
    Pass,
    /// They are dropped, as switches do that implement marking by RED with equal thresholds.
    Drop,
}

/// Parameters of [`Marking`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// K.
    pub threshold: Threshold,
    /// Packets of flows without ECN.
    pub unmarkable: Unmarkable,
}

impl Config {
    /// The DCTCP paper's K (§3.4, §4): 20 packets at 1 Gb/s, 65 at 10 Gb/s, and the line through both
    /// beyond; 20 below 1 Gb/s.
    pub fn for_link(rate: Rate) -> Config {
        let beyond_1g = rate.0.saturating_sub(1_000_000_000);
        let packets = 20 + beyond_1g / 200_000_000;
        Config {
            threshold: Threshold::Packets(u32::try_from(packets).unwrap_or(u32::MAX)),
            unmarkable: Unmarkable::Pass,
        }
    }
}

/// A port that marks above a threshold.
#[derive(Clone, Copy, Debug)]
pub struct Marking(Config);

impl Marking {
    /// A port with these parameters; it keeps no state.
    pub const fn new(config: Config) -> Marking {
        Marking(config)
    }
}

impl Admission for Marking {
    fn admit(&mut self, port: &Arrival, packet: &Packet, _rng: &mut Rng) -> Verdict {
        let above = match self.0.threshold {
            Threshold::Packets(k) => port.backlog_packets > k,
            Threshold::Bytes(k) => port.backlog_bytes > k,
        };
        match self.0.unmarkable {
            _ if !above => Verdict::Pass,
            _ if packet.has(flag::ECT) => Verdict::Mark,
            Unmarkable::Pass => Verdict::Pass,
            Unmarkable::Drop => Verdict::Drop(DropReason::Early),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::fixtures::{data, ect, port};

    fn verdict(config: Config, waiting: u32, packet: &Packet) -> Verdict {
        Marking::new(config).admit(&port(waiting), packet, &mut Rng::new(1, 0))
    }

    #[test]
    fn k_of_the_paper() {
        let k = |gbps: u64| Config::for_link(Rate(gbps * 1_000_000_000)).threshold;
        assert_eq!(k(1), Threshold::Packets(20));
        assert_eq!(k(10), Threshold::Packets(65));
        assert_eq!(
            Config::for_link(Rate(100_000_000)).threshold,
            Threshold::Packets(20)
        );
    }

    #[test]
    fn marks_above_k_not_at_k() {
        let config = Config {
            threshold: Threshold::Packets(15),
            unmarkable: Unmarkable::Pass,
        };
        assert_eq!(verdict(config, 15, &ect(0)), Verdict::Pass);
        assert_eq!(verdict(config, 16, &ect(0)), Verdict::Mark);
        let bytes = Config {
            threshold: Threshold::Bytes(15_000),
            ..config
        };
        assert_eq!(verdict(bytes, 10, &ect(0)), Verdict::Pass);
        assert_eq!(verdict(bytes, 11, &ect(0)), Verdict::Mark);
    }

    #[test]
    fn a_packet_without_ecn_passes_or_drops_but_is_never_marked() {
        let pass = Config {
            threshold: Threshold::Packets(15),
            unmarkable: Unmarkable::Pass,
        };
        let drop = Config {
            unmarkable: Unmarkable::Drop,
            ..pass
        };
        assert_eq!(verdict(pass, 16, &data(0)), Verdict::Pass);
        assert_eq!(
            verdict(drop, 16, &data(0)),
            Verdict::Drop(DropReason::Early)
        );
        assert_eq!(verdict(drop, 15, &data(0)), Verdict::Pass);
    }
}
