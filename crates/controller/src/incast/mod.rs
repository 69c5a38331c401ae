// SPDX-License-Identifier: Apache-2.0
//! Incast at ports: `core/sicc.h` decides; here is whose flows lead through which port.

mod orders;
mod port;

use crate::fabric::Place;
use crate::segment::{Flow, Segment};
use crate::shares::Shares;
use crate::status;
use orders::once;
use penstock_core::Params;
use penstock_core::flow::flag::{ACK, FIN, RST, SYN};
use penstock_core::sicc::{self, SiccOrder};
use penstock_sdn::message::{FlowOptions, Notice};
use port::{Known, Port};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, HashMap};

pub use port::Limits;

/// What a FIN may acknowledge of the other end's data: of 4 GB a guess would be right every time.
const MOST_GOT_BYTES: u32 = 1 << 24;

/// The MSS of who offers none (RFC 9293 §3.7.1).
const DEFAULT_MSS_BYTES: u16 = 536;

/// What was seen and done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Copies of SYN and FIN.
    pub copies: u64,
    /// SYNs that did not count: of a flow that is known, or of a guest above its limits.
    pub ignored_syns: u64,
    /// Queues reported.
    pub queues: u64,
    /// Notices to shims.
    pub notices: u64,
}

/// What a SYN has shown.
#[derive(Clone, Copy, Debug)]
struct Options {
    mss: Option<u16>,
    scale: Option<u8>,
    seq: u32,
}

/// The ports that are watched, and the flows through them.
#[derive(Clone, Debug)]
pub struct Incast {
    limits: Limits,
    /// If not, flows are counted for others, and no notices are sent.
    decides: bool,
    counts_answers: bool,
    sends_own_options: bool,
    mss_bytes: u16,
    ports: HashMap<Place, Port>,
    /// Of the SYN of each direction, each of the guest that has begun the connection: by this SYN, or by the
    /// one that it answers.
    options: Shares<Flow, Options>,
    /// Ports whose flows have changed since this was taken.
    changed: BTreeSet<Place>,
    counters: Counters,
}

impl Incast {
    /// No port is watched yet; of `params` those count that are the same at all ports. Without `decides`,
    /// flows are only counted.
    pub fn new(params: &Params, limits: Limits, decides: bool) -> Incast {
        Incast {
            limits,
            decides,
            counts_answers: sicc::counts_answers(params),
            sends_own_options: sicc::sends_own_options(params),
            mss_bytes: params.field("mss_bytes") as u16,
            ports: HashMap::new(),
            options: Shares::default(),
            changed: BTreeSet::new(),
            counters: Counters::default(),
        }
    }

    /// Watches a port, if it is not watched yet: nothing is known of its flows.
    pub fn watch(&mut self, place: Place, params: &Params) {
        self.ports.entry(place).or_insert_with(|| Port::new(params));
    }

    /// A port is gone.
    pub fn forget(&mut self, place: Place) {
        self.ports.remove(&place);
    }

    /// The ports that are watched.
    pub fn ports(&self) -> impl Iterator<Item = (Place, status::Port)> {
        self.ports.iter().map(|(place, port)| {
            let flows = u64::from(port.flows());
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

    /// How many flows a port has; none if it is not watched.
    pub fn flows(&self, place: Place) -> u32 {
        self.ports.get(&place).map_or(0, Port::flows)
    }

    /// The number of the last flow of a port that was learned, if the port is watched.
    pub(crate) fn inserted(&self, place: Place) -> Option<u64> {
        Some(self.ports.get(&place)?.inserted())
    }

    /// The flows of a port that were learned after this number, and what their SYNs offered, where those are
    /// answered.
    pub(crate) fn options_after(
        &self,
        place: Place,
        number: u64,
    ) -> impl Iterator<Item = (u64, Option<FlowOptions>)> {
        let port = self.ports.get(&place).into_iter();
        port.flat_map(move |port| port.after(number))
    }

    /// The ports whose flows have changed since the last call.
    pub(crate) fn take_changed(&mut self) -> BTreeSet<Place> {
        std::mem::take(&mut self.changed)
    }

    /// A SYN, FIN or RST that a guest at an edge port has sent, the ports by which it leaves the switches
    /// on its way, and those by which what it answers came. Returns what the shims are to do at once.
    pub fn on_copy(
        &mut self,
        edge: Place,
        segment: &Segment,
        path: &[Place],
        back: &[Place],
        now_ns: u64,
    ) -> Vec<Notice> {
        self.counters.copies += 1;
        let (flow, flags) = (segment.flow, segment.flags);
        let (begun_at, agreed) = self.agreed(edge, segment);
        let is_proper = flags & SYN == 0 && self.ends_properly(segment);
        let order = |place: &Place| match flags & SYN {
            0 => self.end(*place, flow, flags, is_proper, now_ns),
            _ => self.begin(*place, flow, begun_at, agreed, flags, now_ns),
        };
        let orders: Vec<_> = path.iter().map(order).collect();
        if flags & (SYN | RST) == SYN && self.needs_options(flow, path, back) {
            self.keep_options(begun_at, segment);
        }
        let mut notices = Vec::new();
        for (place, order) in path.iter().zip(orders) {
            notices.extend(self.notices_of(*place, flow, order));
        }
        for place in back {
            let order = match agreed {
                Some(own) => self.answer(*place, flow.reverse(), reverse(own), flags, now_ns),
                // An RST ends both directions.
                None if flags & RST != 0 => self.end(*place, flow.reverse(), RST, false, now_ns),
                None => SiccOrder::Keep,
            };
            notices.extend(self.notices_of(*place, flow.reverse(), order));
        }
        let notices = once(notices.into_iter());
        self.counters.notices += notices.len() as u64;
        notices
    }

    /// Where the connection of a SYN was begun, and, if it answers the SYN before it, what both ends agreed
    /// on.
    fn agreed(&self, edge: Place, segment: &Segment) -> (Place, Option<FlowOptions>) {
        if segment.flags & (SYN | RST) != SYN {
            return (edge, None);
        }
        let peer = self.options.get(&segment.flow.reverse());
        let is_answer =
            |peer: &Options| segment.flags & ACK != 0 && segment.ack == peer.seq.wrapping_add(1);
        let Some((peer, begun_at)) = peer.filter(|(peer, _)| is_answer(peer)) else {
            return (edge, None);
        };
        let [mss, other] = [segment.mss, peer.mss].map(|mss| mss.unwrap_or(DEFAULT_MSS_BYTES));
        let agreed = FlowOptions {
            source: segment.flow.source,
            destination: segment.flow.destination,
            mss_bytes: mss.min(other),
            scales: segment.scale.zip(peer.scale).map(|(own, peer)| [own, peer]),
        };
        (begun_at, Some(agreed))
    }

    /// Whether a port on its way knows the flow of a SYN, or one on the way back may count the answer.
    fn needs_options(&self, flow: Flow, path: &[Place], back: &[Place]) -> bool {
        let mut ports = path.iter().filter_map(|place| self.ports.get(place));
        ports.any(|port| port.knows(&flow))
            || back.iter().any(|place| self.ports.contains_key(place))
    }

    /// Keeps what a SYN offers.
    fn keep_options(&mut self, begun_at: Place, segment: &Segment) {
        let own = Options {
            mss: segment.mss,
            scale: segment.scale,
            seq: segment.seq,
        };
        // A flow of a port has two directions.
        let most = |flows: usize| 2 * flows * self.ports.len().max(1);
        let [most, most_own] = [self.limits.flows, self.limits.guest_flows as usize].map(most);
        let flow = segment.flow;
        self.options.insert(flow, own, begun_at, most, most_own);
    }

    /// Whether it is a FIN of one who has the other end's SYN, as its acknowledgment shows: who makes up
    /// connections does not know that.
    fn ends_properly(&self, segment: &Segment) -> bool {
        let peer = self.options.get(&segment.flow.reverse());
        let got = |(peer, _): (Options, Place)| segment.ack.wrapping_sub(peer.seq).wrapping_sub(1);
        segment.flags & (FIN | RST | ACK) == FIN | ACK
            && peer.is_some_and(|peer| got(peer) < MOST_GOT_BYTES)
    }

    /// A SYN or SYN-ACK leaves by a port.
    fn begin(
        &mut self,
        place: Place,
        flow: Flow,
        begun_at: Place,
        agreed: Option<FlowOptions>,
        flags: u8,
        now_ns: u64,
    ) -> SiccOrder {
        let Some(port) = self.ports.get_mut(&place) else {
            return SiccOrder::Keep;
        };
        let known = Known::new(agreed);
        let (is_learned, counts) =
            port.begin(flow, begun_at, known, &self.limits, self.decides, now_ns);
        self.counters.ignored_syns += u64::from(!counts);
        if is_learned {
            self.changed.insert(place);
        }
        match counts {
            true => port.core.on_packet(flags, now_ns),
            false => SiccOrder::Keep,
        }
    }

    /// The SYN of a flow that leaves by a port is answered: what both offered.
    fn answer(
        &mut self,
        place: Place,
        flow: Flow,
        agreed: FlowOptions,
        flags: u8,
        now_ns: u64,
    ) -> SiccOrder {
        let port = self.ports.get_mut(&place);
        let Some(port) = port.filter(|port| port.offers(flow, agreed)) else {
            return SiccOrder::Keep;
        };
        let counts = port.answer(flow, agreed, &self.limits);
        self.changed.insert(place);
        match counts && self.counts_answers {
            true => port.core.on_packet(flags, now_ns),
            false => SiccOrder::Keep,
        }
    }

    /// A FIN or RST leaves by a port: it ends a flow that is known, once.
    fn end(
        &mut self,
        place: Place,
        flow: Flow,
        flags: u8,
        is_proper: bool,
        now_ns: u64,
    ) -> SiccOrder {
        let Some(port) = self.ports.get_mut(&place) else {
            return SiccOrder::Keep;
        };
        let Some(counted) = port.end(&flow, is_proper) else {
            return SiccOrder::Keep;
        };
        self.changed.insert(place);
        match counted {
            true => port.core.on_packet(flags, now_ns),
            false => SiccOrder::Keep,
        }
    }
}

/// The same of the other direction.
fn reverse(flow: FlowOptions) -> FlowOptions {
    FlowOptions {
        source: flow.destination,
        destination: flow.source,
        scales: flow.scales.map(|[own, peer]| [peer, own]),
        ..flow
    }
}
