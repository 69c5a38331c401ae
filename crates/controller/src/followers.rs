// SPDX-License-Identifier: Apache-2.0
//! Agents that ask for the flows of ports: their number, whenever it changes, and the scales of their
//! windows (FairQ §III-B).

use crate::fabric::Place;
use crate::incast::Incast;
use penstock_sdn::message::{Ask, Body, FlowReport, MAX_FLOWS, OptionsReport};
use std::collections::{BTreeMap, BTreeSet};

/// An agent that asks no more is forgotten after this time.
const LIFE_NS: u64 = 3_000_000_000;

/// Time between two messages of numbers: of many changes, the last counts.
const PACE_NS: u64 = 1_000_000;

/// Flows whose scales an agent gets at once; the others follow.
const AT_ONCE: usize = 16 * MAX_FLOWS;

/// An agent that follows a port.
struct Follower {
    agent: u16,
    asked_ns: u64,
    /// Flows up to this number of [`Incast::options_after`] were sent.
    sent: u64,
    /// The number that it has.
    flows: Option<u32>,
    last_ns: u64,
}

/// All of them.
#[derive(Default)]
pub(crate) struct Followers {
    of: BTreeMap<Place, Vec<Follower>>,
    /// Ports of which something is to be sent.
    owed: BTreeSet<Place>,
}

impl Followers {
    /// An agent asks for ports; those that are not watched are none.
    pub fn ask(&mut self, agent: u16, ask: &Ask, incast: &Incast, now_ns: u64) {
        for (port, wants_all) in &ask.ports {
            let place = Place {
                datapath: ask.datapath,
                port: *port,
            };
            let Some(inserted) = incast.inserted(place) else {
                continue;
            };
            let followers = self.of.entry(place).or_default();
            let known = followers.iter().position(|one| one.agent == agent);
            let at = known.unwrap_or_else(|| {
                followers.push(Follower {
                    agent,
                    asked_ns: now_ns,
                    sent: inserted,
                    flows: None,
                    last_ns: 0,
                });
                followers.len() - 1
            });
            let follower = &mut followers[at];
            // A number that has not changed is still right.
            (follower.asked_ns, follower.flows) = (now_ns, None);
            if *wants_all {
                follower.sent = 0;
            }
            self.owed.insert(place);
        }
    }

    /// Whether something waits for its time.
    pub fn is_owing(&self) -> bool {
        !self.owed.is_empty()
    }

    /// What is to be sent now, of ports that have changed and of those left from before.
    pub fn due(&mut self, incast: &mut Incast, now_ns: u64) -> Vec<(u16, Body)> {
        self.owed.append(&mut incast.take_changed());
        let mut bodies = Vec::new();
        let of = &mut self.of;
        self.owed.retain(|place| {
            let Some(followers) = of.get_mut(place) else {
                return false;
            };
            followers.retain(|one| now_ns.saturating_sub(one.asked_ns) < LIFE_NS);
            let mut is_owing = false;
            for follower in followers.iter_mut() {
                is_owing |= follower.send(*place, incast, now_ns, &mut bodies);
            }
            if followers.is_empty() {
                of.remove(place);
            }
            is_owing
        });
        bodies
    }
}

impl Follower {
    /// Whether something is left.
    fn send(
        &mut self,
        place: Place,
        incast: &Incast,
        now_ns: u64,
        bodies: &mut Vec<(u16, Body)>,
    ) -> bool {
        let Some(inserted) = incast.inserted(place) else {
            return false;
        };
        if now_ns.saturating_sub(self.last_ns) < PACE_NS {
            return true;
        }
        let (datapath, port) = (place.datapath, place.port);
        let flows = incast.flows(place);
        if self.flows != Some(flows) {
            (self.flows, self.last_ns) = (Some(flows), now_ns);
            let flows = vec![(port, flows)];
            bodies.push((self.agent, Body::Flows(FlowReport { datapath, flows })));
        }
        if self.sent > inserted {
            self.sent = 0; // its flows are watched again, from none on
        }
        let mut found = Vec::new();
        for (number, options) in incast.options_after(place, self.sent) {
            if found.len() == AT_ONCE {
                break;
            }
            self.sent = number;
            found.extend(options);
        }
        let is_left = found.len() == AT_ONCE;
        for some in found.chunks(MAX_FLOWS) {
            self.last_ns = now_ns;
            let flows = some.to_vec();
            let report = OptionsReport {
                datapath,
                port,
                flows,
            };
            bodies.push((self.agent, Body::Options(report)));
        }
        is_left
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fabric::Mac;
    use crate::incast::Limits;
    use crate::segment::{Flow, Segment};
    use penstock_core::{Params, definitions};
    use penstock_sdn::message::FlowOptions;

    const PORT: Place = Place {
        datapath: 1,
        port: 9,
    };
    const BACK: Place = Place {
        datapath: 1,
        port: 8,
    };
    const EDGE: Place = Place {
        datapath: 5,
        port: 1,
    };
    const AGENT: u16 = 3;
    const MS: u64 = 1_000_000;

    struct Bed {
        incast: Incast,
        followers: Followers,
        now_ns: u64,
    }

    impl Bed {
        fn new() -> Bed {
            let params = Params::new(definitions::of("sicc"), 1);
            let mut incast = Incast::new(&params, Limits::default(), false);
            for place in [PORT, BACK] {
                incast.watch(place, &params);
            }
            Bed {
                incast,
                followers: Followers::default(),
                now_ns: 1,
            }
        }

        fn ask(&mut self, port: u32, wants_all: bool) {
            let ask = Ask {
                datapath: PORT.datapath,
                ports: vec![(port, wants_all)],
            };
            self.followers.ask(AGENT, &ask, &self.incast, self.now_ns);
        }

        fn copy(&mut self, flow: Flow, flags: u8, ack: u32) {
            let segment = Segment {
                macs: (Mac([2, 0, 0, 0, 0, 1]), Mac([2, 0, 0, 0, 0, 2])),
                flow,
                flags,
                seq: 100,
                ack,
                mss: Some(if flags & 16 == 0 { 1460 } else { 8960 }),
                scale: Some(if flags & 16 == 0 { 7 } else { 9 }),
            };
            let is_back = flow.destination.port() != 80;
            let (path, back) = if is_back { (BACK, PORT) } else { (PORT, BACK) };
            let notices = self.incast.on_copy(EDGE, &segment, &[path], &[back], 1);
            assert_eq!(notices, []);
        }

        /// A whole handshake.
        fn open(&mut self, port: u16) {
            self.copy(flow(port), 2, 0);
            self.copy(flow(port).reverse(), 2 | 16, 101);
        }

        fn due(&mut self) -> Vec<Body> {
            self.now_ns += MS;
            let due = self.followers.due(&mut self.incast, self.now_ns);
            assert!(due.iter().all(|(agent, _)| *agent == AGENT));
            due.into_iter().map(|(_, body)| body).collect()
        }
    }

    fn flow(port: u16) -> Flow {
        Flow {
            source: ([10, 0, 0, 1], port).into(),
            destination: ([10, 0, 0, 2], 80).into(),
        }
    }

    fn number(port: u32, flows: u32) -> Body {
        let flows = vec![(port, flows)];
        Body::Flows(FlowReport { datapath: 1, flows })
    }

    fn options(bodies: &[Body]) -> Vec<FlowOptions> {
        let of = |body: &Body| match body {
            Body::Options(report) => report.flows.clone(),
            _ => Vec::new(),
        };
        bodies.iter().flat_map(of).collect()
    }

    #[test]
    fn a_follower_gets_numbers_and_what_both_ends_agreed_on() {
        let mut bed = Bed::new();
        bed.open(1000);
        assert_eq!(bed.due(), [], "no one asks");
        bed.ask(9, false);
        assert_eq!(bed.due(), [number(9, 1)], "new flows alone");
        assert_eq!(bed.due(), []);
        bed.copy(flow(1001), 2, 0);
        assert_eq!(bed.due(), [number(9, 2)], "it is not answered yet");
        bed.copy(flow(1001).reverse(), 2 | 16, 100);
        assert_eq!(bed.due(), [], "that answers another SYN");
        bed.copy(flow(1001).reverse(), 2 | 16, 101);
        let expected = FlowOptions {
            source: flow(1001).source,
            destination: flow(1001).destination,
            mss_bytes: 1460,
            scales: Some([7, 9]),
        };
        assert_eq!(options(&bed.due()), [expected]);
        bed.copy(flow(1001).reverse(), 2 | 16, 101);
        assert_eq!(bed.due(), [], "it is known");
        bed.copy(flow(1000), 1, 0);
        assert_eq!(bed.due(), [number(9, 1)]);
        // The other direction has another port, and the scales the other way round.
        bed.ask(8, true);
        let all = options(&bed.due());
        assert_eq!(all.len(), 2);
        assert_eq!((all[1].source.port(), all[1].scales), (80, Some([9, 7])));
        bed.ask(7, true);
        assert_eq!(bed.due(), [], "that is not watched");
    }

    #[test]
    fn many_flows_come_in_parts_and_one_that_is_silent_gets_nothing() {
        let mut bed = Bed::new();
        let many = AT_ONCE as u16 + 100;
        (0..many).for_each(|port| bed.open(1000 + port));
        bed.ask(9, true);
        let first = bed.due();
        assert_eq!(first[0], number(9, many.into()));
        assert_eq!(options(&first).len(), AT_ONCE);
        assert!(bed.followers.is_owing());
        let due = bed.followers.due(&mut bed.incast, bed.now_ns);
        assert_eq!(due, [], "not yet");
        assert_eq!(options(&bed.due()).len(), 100);
        // Watched again: from none on.
        bed.incast.forget(PORT);
        let params = Params::new(definitions::of("sicc"), 1);
        bed.incast.watch(PORT, &params);
        bed.open(7);
        let due = bed.due();
        assert_eq!((&due[0], options(&due).len()), (&number(9, 1), 1));
        bed.now_ns += LIFE_NS;
        bed.open(8);
        assert_eq!(bed.due(), []);
        assert!(bed.followers.of.is_empty() && !bed.followers.is_owing());
    }
}
