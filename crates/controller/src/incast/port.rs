// SPDX-License-Identifier: Apache-2.0
//! The flows through a port that is watched, and what each guest may have of them.

use crate::fabric::Place;
use crate::segment::Flow;
use crate::shares::Shares;
use crate::status;
use penstock_core::{Params, SiccPort};
use penstock_sdn::message::FlowOptions;
use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;

/// What bounds the controller's state, and what one guest can do to others. A flow is that of the guest
/// that has begun its connection, in both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Flows of a port that are known at once; of more, the oldest are forgotten.
    pub flows: usize,
    /// New flows of a guest that count at a port between two reports of its queue.
    pub new_flows: u32,
    /// Flows of a guest that are known at a port at once; of more, its oldest are forgotten.
    pub guest_flows: u32,
    /// Flows of a guest that count before one of them has ended properly.
    pub unproven_flows: u32,
    /// Time after which one more of them counts.
    pub unproven_ns: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            flows: 65_536,
            new_flows: 256,
            guest_flows: 4096,
            unproven_flows: 1024,
            unproven_ns: 125_000_000,
        }
    }
}

/// A source of data and its destination.
pub(super) type Pair = (IpAddr, IpAddr);

/// Time without a report after which a port's OFF is not waited for.
const SILENCE_NS: u64 = 1_000_000_000;

/// What is known of a flow through a port.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    /// Once its SYN is answered.
    options: Option<FlowOptions>,
    /// Whether it was counted as new.
    counts: bool,
}

impl Known {
    pub fn new(options: Option<FlowOptions>) -> Known {
        Known {
            options,
            counts: true,
        }
    }
}

/// Flows that a guest has begun through a port.
#[derive(Clone, Debug, Default)]
struct Guest {
    /// Since the last report of the queue.
    new_flows: u32,
    /// When all flows that have not ended properly will be forgiven, one in each
    /// [`Limits::unproven_ns`].
    unproven_until_ns: u64,
}

impl Guest {
    /// Whether one more flow counts that may never end; each time it costs.
    fn may_begin(&mut self, limits: &Limits, now_ns: u64) -> bool {
        let most_ns = u64::from(limits.unproven_flows) * limits.unproven_ns;
        if self.unproven_until_ns > now_ns.saturating_add(most_ns) {
            self.unproven_until_ns = now_ns; // the clock has jumped back
        }
        let until_ns = self.unproven_until_ns.max(now_ns) + limits.unproven_ns;
        let may = until_ns - now_ns <= most_ns;
        if may {
            self.unproven_until_ns = until_ns;
        }
        may
    }
}

/// A port that is watched.
#[derive(Clone, Debug)]
pub(super) struct Port {
    pub core: SiccPort,
    pub seen: status::Port,
    /// The pairs that got an ON and no OFF since, at most [`Limits::flows`].
    clamped: BTreeSet<Pair>,
    /// When its queue was reported last.
    reported_ns: u64,
    /// Each of the guest that has begun its connection.
    flows: Shares<Flow, Known>,
    guests: HashMap<Place, Guest>,
    unproven_ns: u64,
}

impl Port {
    /// One of whose flows nothing is known.
    pub fn new(params: &Params) -> Port {
        Port {
            core: SiccPort::new(params),
            seen: status::Port::default(),
            clamped: BTreeSet::new(),
            reported_ns: 0,
            flows: Shares::default(),
            guests: HashMap::new(),
            unproven_ns: 0,
        }
    }

    /// How many flows it has.
    pub fn flows(&self) -> u32 {
        self.flows.all().len() as u32
    }

    /// All flows.
    pub fn known(&self) -> impl Iterator<Item = Flow> {
        self.flows.all().keys()
    }

    /// Whether a flow is known.
    pub fn knows(&self, flow: &Flow) -> bool {
        self.flows.get(flow).is_some()
    }

    /// Pairs get an ON.
    pub fn clamp(&mut self, pairs: impl Iterator<Item = Pair>, limits: &Limits) {
        for pair in pairs {
            if self.clamped.len() < limits.flows {
                self.clamped.insert(pair);
            }
        }
    }

    /// The pairs that got an ON and will get an OFF: a port whose queue is reported no more sends none.
    pub fn clamped(&self, now_ns: u64) -> Option<&BTreeSet<Pair>> {
        let is_reported = now_ns.saturating_sub(self.reported_ns) < SILENCE_NS;
        (is_reported && !self.clamped.is_empty()).then_some(&self.clamped)
    }

    /// The pairs that get an OFF: those that got an ON, and those of the flows that are known now.
    pub fn release(&mut self) -> BTreeSet<Pair> {
        let mut pairs = std::mem::take(&mut self.clamped);
        let flow = |flow: Flow| (flow.source.ip(), flow.destination.ip());
        pairs.extend(self.known().map(flow));
        pairs
    }

    /// The number of the flow that was learned last.
    pub fn inserted(&self) -> u64 {
        self.flows.all().inserted()
    }

    /// What is known of the options of flows that were learned after this number.
    pub fn after(&self, number: u64) -> impl Iterator<Item = (u64, Option<FlowOptions>)> {
        let later = self.flows.all().after(number);
        later.map(|(number, (known, _))| (number, known.options))
    }

    /// The queue was reported.
    pub fn begin_interval(&mut self, now_ns: u64) {
        self.reported_ns = now_ns;
        self.guests.retain(|_, one| one.unproven_until_ns > now_ns);
        let guests = self.guests.values_mut();
        guests.for_each(|guest| guest.new_flows = 0);
    }

    /// A SYN leaves by the port, of a connection that this guest has begun. Returns whether its flow is known now as it was not before, and whether it
    /// counts as a new one: the limits of guests are for a controller that `decides`.
    pub fn begin(
        &mut self,
        flow: Flow,
        guest: Place,
        known: Known,
        limits: &Limits,
        decides: bool,
        now_ns: u64,
    ) -> (bool, bool) {
        self.unproven_ns = limits.unproven_ns;
        if let Some((Known { counts, .. }, _)) = self.flows.get(&flow) {
            // It is sent again: it is as recent as a new one.
            self.insert(flow, guest, Known { counts, ..known }, limits);
            return (true, false);
        }
        let begun = self.guests.entry(guest).or_default();
        if decides && begun.new_flows >= limits.new_flows {
            return (false, false);
        }
        let counts = !decides || begun.may_begin(limits, now_ns);
        begun.new_flows += u32::from(counts);
        self.insert(flow, guest, Known { counts, ..known }, limits);
        (true, counts)
    }

    /// Whether it is new that both ends of a flow agreed on this.
    pub fn offers(&self, flow: Flow, agreed: FlowOptions) -> bool {
        let known = self.flows.get(&flow);
        known.is_some_and(|(known, _)| known.options != Some(agreed))
    }

    /// Both ends of a flow agreed on this. Returns whether the flow counts.
    pub fn answer(&mut self, flow: Flow, agreed: FlowOptions, limits: &Limits) -> bool {
        let Some((known, guest)) = self.flows.get(&flow) else {
            return false;
        };
        let options = Some(agreed);
        self.insert(flow, guest, Known { options, ..known }, limits);
        known.counts
    }

    /// A flow ends. Returns whether it was counted, if it was known.
    pub fn end(&mut self, flow: &Flow, is_proper: bool) -> Option<bool> {
        let (known, guest) = self.flows.remove(flow)?;
        if is_proper
            && known.counts
            && known.options.is_some()
            && let Some(guest) = self.guests.get_mut(&guest)
        {
            guest.unproven_until_ns = guest.unproven_until_ns.saturating_sub(self.unproven_ns);
        }
        Some(known.counts)
    }

    fn insert(&mut self, flow: Flow, guest: Place, known: Known, limits: &Limits) {
        let most_own = limits.guest_flows as usize;
        self.flows
            .insert(flow, known, guest, limits.flows, most_own);
    }
}
