// SPDX-License-Identifier: Apache-2.0
//! How many flows has a port? (`core/flow.h`, `core/flow_counter.h`)

use super::{FlowPacket, Flows};
use penstock_core::flow::{Direction, FlowChange};
use penstock_core::scheme::Counting;
use penstock_core::{FlowCounter, WindowScheme};
use penstock_scenario::units::Time;

/// Flows looked at for idleness in each interval: so many, or a part of all, as penstockd looks at all
/// within a second.
const SWEEP: usize = 16;
const SWEEP_PART: usize = 100;

/// The interval of a scheme that has none.
const SWEEP_PERIOD: Time = Time::from_millis(10);

/// A handshake that takes longer has failed (`HANDSHAKE_LIFE_NS` of `core/handshake.h`).
const HANDSHAKE_LIFE_NS: u64 = 3_000_000_000;

/// The count of one port; the scheme is given each new number.
#[derive(Debug)]
pub(super) struct Count {
    flows: u32,
    /// Handshakes under way, and when the last of them began.
    half_open: u32,
    begun_ns: u64,
    idle_ns: u64,
    way: Way,
}

/// How flows are counted.
#[derive(Debug)]
enum Way {
    /// Not at all: the scheme does not need the number, or a controller counts.
    None,
    /// Slots of the flows counted, swept in turn for idle ones, and the next to look at.
    Exact(Vec<usize>, usize),
    /// The papers' counter.
    Packets(FlowCounter),
}

impl Count {
    pub fn new(counting: Counting, idle: Time) -> Count {
        Count {
            flows: 0,
            half_open: 0,
            begun_ns: 0,
            idle_ns: idle.as_nanos(),
            way: match counting {
                Counting::None => Way::None,
                Counting::Exact => Way::Exact(Vec::new(), 0),
                Counting::Packets => Way::Packets(FlowCounter::default()),
            },
        }
    }

    /// How often idle flows are looked for, where the scheme itself has no interval: penstockd sweeps
    /// apart from the scheme, too.
    pub fn period(&self) -> Option<Time> {
        match self.way {
            Way::None => None,
            _ => Some(SWEEP_PERIOD),
        }
    }

    /// Takes the number from elsewhere.
    pub fn set(&mut self, core: &mut WindowScheme, flows: u32) {
        report(&mut self.flows, flows, core);
    }

    /// The flows, as the scheme knows them.
    pub fn flows(&self) -> u32 {
        self.flows
    }

    /// Flows as if all handshakes under way counted; 0 if there are none, or all count.
    pub fn with_half_open(&self) -> u32 {
        match self.way {
            Way::Exact(..) if self.half_open > 0 => self.flows + self.half_open,
            _ => 0,
        }
    }

    /// A packet of the flow in `slot` passes, by which the exact numbers change.
    pub fn on_packet(
        &mut self,
        core: &mut WindowScheme,
        seen: &FlowPacket,
        slot: usize,
        change: FlowChange,
    ) {
        self.half_open = self.half_open.saturating_add_signed(change.half_open);
        if change.half_open > 0 {
            self.begun_ns = seen.now_ns;
        }
        let flows = match &mut self.way {
            Way::None => return,
            Way::Exact(..) if change.flows == 0 => return,
            Way::Exact(counted, _) => {
                if change.flows > 0 {
                    counted.push(slot);
                }
                self.flows.saturating_add_signed(change.flows)
            }
            Way::Packets(counter) => {
                let is_out = seen.direction == Direction::Data;
                counter.on_packet(seen.flags, seen.payload, is_out, seen.now_ns)
            }
        };
        report(&mut self.flows, flows, core);
    }

    /// Uncounts what is silent for too long.
    pub fn expire(&mut self, core: &mut WindowScheme, flows: &mut Flows, now_ns: u64) {
        if now_ns.saturating_sub(self.begun_ns) >= HANDSHAKE_LIFE_NS {
            self.half_open = 0;
        }
        match &mut self.way {
            Way::None => {}
            Way::Exact(counted, next) => {
                let all = counted.len();
                for _ in 0..SWEEP.max(all / SWEEP_PART).min(all) {
                    *next = if *next < counted.len() { *next } else { 0 };
                    let slot = counted[*next];
                    let outcome = flows.sweep(slot, now_ns, self.idle_ns);
                    if outcome > 0 {
                        *next += 1;
                        continue;
                    }
                    let fewer = self.flows.saturating_add_signed(outcome);
                    report(&mut self.flows, fewer, core);
                    counted.swap_remove(*next);
                }
            }
            Way::Packets(counter) => {
                let flows = counter.expire(now_ns, self.idle_ns);
                report(&mut self.flows, flows, core);
            }
        }
    }
}

fn report(known: &mut u32, flows: u32, core: &mut WindowScheme) {
    if flows != *known {
        *known = flows;
        core.on_flows(flows);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{FlowId, Packet, flag};
    use crate::rng::Rng;
    use crate::window::flow_packet;
    use penstock_core::{Params, definitions};

    struct Port {
        core: WindowScheme,
        count: Count,
        flows: Flows,
    }

    impl Port {
        fn new(counting: Counting) -> Port {
            let mut flows = Flows::default();
            flows.reserve(99);
            Port {
                core: WindowScheme::new(&Params::new(definitions::of("fairq"), 100_000)),
                count: Count::new(counting, Time::from_secs(1)),
                flows,
            }
        }

        fn flows(&self) -> u32 {
            self.count.flows
        }

        fn see(&mut self, slot: usize, flags: u16, direction: Direction) {
            // Both sides count from 0, and no one sends data.
            let has_begun = u32::from(flags & flag::SYN == 0);
            let packet = Packet {
                flow: FlowId(2 * slot as u32),
                flags,
                seq: has_begun,
                ack: u32::from(flags & flag::ACK != 0),
                ..Packet::default()
            };
            let seen = flow_packet(Time::from_millis(1), &packet, direction);
            let change = self.flows.follow(slot, &seen);
            self.count.on_packet(&mut self.core, &seen, slot, change);
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
            until_through(flag::ACK, Direction::Data);
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
