// SPDX-License-Identifier: Apache-2.0
//! Incast at ports: `core/sicc.h` decides; here is whose flows lead through which port.

use crate::fabric::Place;
use crate::segment::{Flow, Segment};
use crate::status;
use penstock_core::sicc;
use penstock_core::{Params, SiccPort};
use penstock_sdn::message::{Notice, Order, QueueReport};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::hash::Hash;

const SYN: u8 = 2;
const ACK: u8 = 16;

/// What bounds the controller's state, and what one guest can do to others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Flows of a port that are known at once; of more, the oldest are forgotten.
    pub flows: usize,
    /// New flows from one edge port that count at a port between two reports of its queue.
    pub new_flows: u32,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            flows: 65_536,
            new_flows: 256,
        }
    }
}

/// What was seen and done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Copies of SYN and FIN.
    pub copies: u64,
    /// SYNs that did not count: of a flow that is known, or of an edge port above its limit.
    pub ignored_syns: u64,
    /// Queues reported.
    pub queues: u64,
    /// Notices to shims.
    pub notices: u64,
}

/// The last of what was inserted, each once.
#[derive(Clone, Debug)]
struct Recent<K, V> {
    known: HashMap<K, (V, u64)>,
    order: VecDeque<(K, u64)>,
    inserted: u64,
}

impl<K: Copy + Eq + Hash, V> Default for Recent<K, V> {
    fn default() -> Recent<K, V> {
        Recent {
            known: HashMap::new(),
            order: VecDeque::new(),
            inserted: 0,
        }
    }
}

impl<K: Copy + Eq + Hash, V> Recent<K, V> {
    /// Returns whether it was not known.
    fn insert(&mut self, key: K, value: V, most: usize) -> bool {
        self.inserted += 1;
        self.order.push_back((key, self.inserted));
        let before = self.known.insert(key, (value, self.inserted));
        while self.known.len() > most || self.order.len() > 2 * most {
            let Some((oldest, number)) = self.order.pop_front() else {
                break;
            };
            if self
                .known
                .get(&oldest)
                .is_some_and(|(_, last)| *last == number)
            {
                self.known.remove(&oldest);
            }
        }
        before.is_none()
    }

    fn remove(&mut self, key: &K) -> bool {
        self.known.remove(key).is_some()
    }
}

#[derive(Clone, Debug)]
struct Port {
    core: SiccPort,
    flows: Recent<Flow, ()>,
    /// New flows from each edge port since the last report.
    new_flows: HashMap<Place, u32>,
    seen: status::Port,
}

#[derive(Clone, Copy, Debug)]
struct Options {
    mss: Option<u16>,
    scale: Option<u8>,
}

/// The ports that are watched, and the flows through them.
#[derive(Clone, Debug)]
pub struct Incast {
    limits: Limits,
    counts_answers: bool,
    sends_own_options: bool,
    mss_bytes: u16,
    ports: HashMap<Place, Port>,
    /// Of the SYN of each direction.
    options: Recent<Flow, Options>,
    counters: Counters,
}

impl Incast {
    /// No port is watched yet; of `params` those count that are the same at all ports.
    pub fn new(params: &Params, limits: Limits) -> Incast {
        Incast {
            limits,
            counts_answers: sicc::counts_answers(params),
            sends_own_options: sicc::sends_own_options(params),
            mss_bytes: params.field("mss_bytes") as u16,
            ports: HashMap::new(),
            options: Recent::default(),
            counters: Counters::default(),
        }
    }

    /// Watches a port, or watches it again: nothing is known of its flows.
    pub fn watch(&mut self, place: Place, params: &Params) {
        let port = Port {
            core: SiccPort::new(params),
            flows: Recent::default(),
            new_flows: HashMap::new(),
            seen: status::Port::default(),
        };
        self.ports.insert(place, port);
    }

    /// A port is gone.
    pub fn forget(&mut self, place: Place) {
        self.ports.remove(&place);
    }

    /// The ports that are watched.
    pub fn ports(&self) -> impl Iterator<Item = (Place, status::Port)> {
        self.ports.iter().map(|(place, port)| {
            let flows = port.flows.known.len() as u64;
            let seen = status::Port {
                flows,
                ..port.seen.clone()
            };
            (*place, seen)
        })
    }

    /// What was seen and done so far.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// A SYN or FIN that a guest at an edge port has sent, the ports by which it leaves the switches on
    /// its way, and those by which what it answers came.
    pub fn on_copy(&mut self, edge: Place, segment: &Segment, path: &[Place], back: &[Place]) {
        self.counters.copies += 1;
        let is_answer = segment.flags & (SYN | ACK) == SYN | ACK;
        if segment.flags & SYN != 0 {
            let options = Options {
                mss: segment.mss,
                scale: segment.scale,
            };
            let most = self.limits.flows * self.ports.len().max(1);
            self.options.insert(segment.flow, options, most);
        }
        for place in path {
            self.count(edge, *place, segment.flow, segment.flags);
        }
        if self.counts_answers && is_answer {
            for place in back {
                self.count(edge, *place, segment.flow.reverse(), segment.flags);
            }
        }
    }

    fn count(&mut self, edge: Place, place: Place, flow: Flow, flags: u8) {
        let Some(port) = self.ports.get_mut(&place) else {
            return;
        };
        if flags & SYN == 0 {
            // A FIN ends a flow that is known, once.
            if port.flows.remove(&flow) {
                port.core.on_packet(flags, 0);
            }
            return;
        }
        let counted = port.new_flows.get(&edge).copied().unwrap_or(0);
        if counted >= self.limits.new_flows || !port.flows.insert(flow, (), self.limits.flows) {
            self.counters.ignored_syns += 1;
            return;
        }
        port.new_flows.insert(edge, counted + 1);
        port.core.on_packet(flags, 0);
    }

    /// The queues of a switch: what the shims of the sources are to do (SICC Algorithm 1).
    pub fn on_queues(&mut self, report: &QueueReport, now_ns: u64) -> Vec<Notice> {
        let mut notices = Vec::new();
        for (port, queue_bytes) in &report.queues {
            let place = Place {
                datapath: report.datapath,
                port: *port,
            };
            let Some(port) = self.ports.get_mut(&place) else {
                continue;
            };
            self.counters.queues += 1;
            port.new_flows.clear();
            port.seen.queue_bytes = *queue_bytes;
            let order = port.core.on_interval(*queue_bytes, now_ns);
            let (starts, ends) = (order.starts(), order.ends());
            if !starts && !ends {
                continue;
            }
            port.seen.incasts += u64::from(starts);
            let flows: Vec<_> = port.flows.known.keys().copied().collect();
            let begin = notices.len();
            if ends {
                notices.extend(once(flows.iter().map(|flow| notice(*flow, Order::Off))));
            }
            if starts {
                let on = |flow: &Flow| notice(*flow, self.on(*flow));
                notices.extend(once(flows.iter().map(on)));
            }
            self.counters.notices += (notices.len() - begin) as u64;
        }
        notices
    }

    fn on(&self, flow: Flow) -> Order {
        let end = if self.sends_own_options {
            flow
        } else {
            flow.reverse()
        };
        let learned = self.options.known.get(&end).map(|(options, _)| *options);
        let mss = learned.and_then(|options| options.mss);
        let scale = learned.map(|options| options.scale.unwrap_or(0));
        Order::On(mss.unwrap_or(self.mss_bytes), scale)
    }
}

fn notice(flow: Flow, order: Order) -> Notice {
    Notice {
        source: flow.source.ip(),
        destination: flow.destination.ip(),
        order,
    }
}

/// Each pair once, in a fixed order: several flows of a pair give one notice.
fn once(notices: impl Iterator<Item = Notice>) -> Vec<Notice> {
    let sorted: BTreeSet<_> = notices.collect();
    let mut last = None;
    let mut kept = Vec::with_capacity(sorted.len());
    for notice in sorted {
        let pair = (notice.source, notice.destination);
        if last != Some(pair) {
            kept.push(notice);
        }
        last = Some(pair);
    }
    kept
}
