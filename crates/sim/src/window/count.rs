// SPDX-License-Identifier: Apache-2.0
//! How many flows has a port? (`core/flow_count.h`)

use super::{FlowEntry, FlowPacket};
use penstock_core::{Fairq, FlowCounter};

/// Flows looked at for idleness in each interval.
const SWEEP: usize = 16;

/// How a port counts its flows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Counting {
    /// A table of flows: exact.
    #[default]
    Exact,
    /// SYN-ACKs minus FINs, as printed (FairQ §IV-E); drifts when these are lost or repeated.
    Packets,
}

/// The count of one port.
#[derive(Debug)]
pub(super) enum Count {
    /// Slots of the flows counted, swept in turn for idle ones, and the next to look at.
    Exact(Vec<usize>, usize),
    /// The papers' counter.
    Packets(FlowCounter),
}

impl Count {
    pub fn new(counting: Counting) -> Count {
        match counting {
            Counting::Exact => Count::Exact(Vec::new(), 0),
            Counting::Packets => Count::Packets(FlowCounter::default()),
        }
    }

    /// A packet of the flow in `slot` passes, by which the exact number changes by `delta`.
    pub fn on_packet(&mut self, core: &mut Fairq, seen: &FlowPacket, slot: usize, delta: i32) {
        match self {
            Count::Exact(counted, _) => {
                core.on_flow(delta);
                if delta > 0 {
                    counted.push(slot);
                }
            }
            Count::Packets(counter) => {
                let is_out = seen.direction == penstock_core::flow_count::Direction::Data;
                core.set_flows(counter.on_packet(seen.flags, seen.payload, is_out, seen.now_ns));
            }
        }
    }

    /// Uncounts what is silent for too long.
    pub fn expire(&mut self, core: &mut Fairq, flows: &mut [FlowEntry], now_ns: u64) {
        match self {
            Count::Exact(counted, next) => {
                for _ in 0..SWEEP.min(counted.len()) {
                    *next = if *next < counted.len() { *next } else { 0 };
                    let flow = &mut flows[counted[*next]];
                    core.on_flow(flow.expire(now_ns, FlowCounter::IDLE_NS));
                    if flow.is_counted() {
                        *next += 1;
                    } else {
                        counted.swap_remove(*next);
                    }
                }
            }
            Count::Packets(counter) => {
                core.set_flows(counter.expire(now_ns, FlowCounter::IDLE_NS));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{FlowId, Packet, flag};
    use crate::rng::Rng;
    use crate::window::flow_packet;
    use penstock_core::fairq::FairqParams;
    use penstock_core::flow_count::Direction;
    use penstock_scenario::units::Time;

    struct Port {
        core: Fairq,
        count: Count,
        flows: Vec<FlowEntry>,
    }

    impl Port {
        fn new(counting: Counting) -> Port {
            Port {
                core: Fairq::new(FairqParams::new(100_000)).expect("valid"),
                count: Count::new(counting),
                flows: vec![FlowEntry::default(); 100],
            }
        }

        fn flows(&self) -> u32 {
            self.core.state().flows
        }

        fn see(&mut self, slot: usize, flags: u16, direction: Direction) {
            let packet = Packet {
                flow: FlowId(2 * slot as u32),
                flags,
                ..Packet::default()
            };
            let seen = flow_packet(Time::from_millis(1), &packet, direction);
            let delta = self.flows[slot].on_packet(&seen);
            self.count.on_packet(&mut self.core, &seen, slot, delta);
        }
    }

    /// Connections open and close; each SYN-ACK and FIN is lost behind the port one time in three
    /// and repeated, half of the connections stay open.
    fn churn(port: &mut Port) {
        let mut rng = Rng::new(3, 0);
        for slot in 0..100 {
            let mut until_through = |flags, direction| {
                port.see(slot, flags, direction);
                while rng.below(3) == 0 {
                    port.see(slot, flags, direction);
                }
            };
            until_through(flag::SYN, Direction::Data);
            until_through(flag::SYN | flag::ACK, Direction::Acks);
            if slot % 2 == 0 {
                until_through(flag::FIN | flag::ACK, Direction::Data);
            }
        }
    }

    #[test]
    fn repeated_syn_acks_fool_the_papers_counter_only() {
        let (mut exact, mut packets) = (Port::new(Counting::Exact), Port::new(Counting::Packets));
        churn(&mut exact);
        churn(&mut packets);
        assert_eq!(exact.flows(), 50);
        assert!(packets.flows() > 60, "{}", packets.flows());
    }

    #[test]
    fn both_forget_after_a_second_of_silence() {
        for counting in [Counting::Exact, Counting::Packets] {
            let mut port = Port::new(counting);
            churn(&mut port);
            for now_ns in [500_000_000; 20] {
                port.count.expire(&mut port.core, &mut port.flows, now_ns);
            }
            assert!(port.flows() >= 50);
            for now_ns in [1_100_000_000; 20] {
                port.count.expire(&mut port.core, &mut port.flows, now_ns);
            }
            assert_eq!(port.flows(), 0, "{counting:?}");
        }
    }
}
