// SPDX-License-Identifier: Apache-2.0
//! The links that each flow takes.
//!
//! A switch's choice among equal paths (ECMP) hashes the connection, so it is made once, when the
//! connection opens, and kept here. By default both directions take the same switches: window
//! policies need the ACKs to come back through the port they control (FairQ §III-B).

use crate::engine::make_room;
use crate::packet::FlowId;
use crate::rng::Rng;

const LINK_BITS: u32 = 26;

/// Most paths of one flow.
const MOST_VARIANTS: usize = 32;

/// One step of a path: a link, and how many follow it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Step(u32);

impl Step {
    /// The link taken.
    #[inline(always)]
    pub fn link(self) -> u32 {
        self.0 & ((1 << LINK_BITS) - 1)
    }

    /// Number of links behind this one.
    #[inline(always)]
    pub fn remaining(self) -> u32 {
        self.0 >> LINK_BITS
    }
}

/// Paths of all flows, as many steps apart as the longest has.
pub struct Paths {
    longest: usize,
    /// Paths that a flow may have, where its packets take different ones.
    variants: usize,
    stride: usize,
    steps: Vec<Step>,
    /// How many paths each flow has; empty where all have one.
    counts: Vec<u8>,
    rng: Rng,
}

impl Paths {
    /// No flows yet; `longest`: links on the longest path of the fabric; `is_symmetric`: both
    /// directions take the same cables.
    pub fn new(longest: usize, is_symmetric: bool) -> Paths {
        Paths {
            longest,
            variants: 1,
            stride: if is_symmetric { longest } else { 2 * longest },
            steps: Vec::new(),
            counts: Vec::new(),
            rng: Rng::new(0, 0),
        }
    }

    /// From now on each packet takes one of the paths of its flow at random. To be called first.
    pub fn spray(&mut self, rng: Rng) {
        // A packet's hop counts on from its path's first place, and has 8 bits.
        self.variants = (240 / self.longest).clamp(1, MOST_VARIANTS);
        self.stride *= self.variants;
        self.rng = rng;
    }

    /// Most paths that a flow may have.
    pub fn most_variants(&self) -> usize {
        self.variants
    }

    /// The hop that a packet of `flow` begins with: the first place of one of its paths.
    #[inline(always)]
    pub fn first_hop(&mut self, flow: FlowId) -> u8 {
        if self.variants == 1 {
            return 0;
        }
        let count = self.counts.get(flow.0 as usize).copied().unwrap_or(1);
        (self.rng.below(count.into()) as usize * self.longest) as u8
    }

    /// Sets path number `variant` of `flow`, the last that it has so far.
    pub fn set(&mut self, flow: FlowId, variant: usize, links: &[u32]) {
        debug_assert!(links.len() <= self.longest && links.len() < 64);
        let needed = (flow.0 | 1) as usize * self.stride + self.stride + 1;
        make_room(&mut self.steps, needed);
        if self.steps.len() < needed {
            self.steps.resize(needed, Step::default());
        }
        if self.variants > 1 {
            let index = flow.0 as usize;
            if self.counts.len() <= index {
                self.counts.resize(index + 1, 1);
            }
            self.counts[index] = variant as u8 + 1;
        }
        let first = self.slot(flow, (variant * self.longest) as u32);
        let last = links.len() - 1;
        for (hop, link) in links.iter().enumerate() {
            self.steps[first + hop] = Step(link | ((last - hop) as u32) << LINK_BITS);
        }
    }

    /// Where the flow's hop number `hop` is found in tables kept per flow and hop.
    #[inline(always)]
    pub fn slot(&self, flow: FlowId, hop: u32) -> usize {
        flow.0 as usize * self.stride + hop as usize
    }

    /// Where a port keeps what it knows of a flow whose ACKs, the flow `acks`, enter next to it by
    /// their hop number `hop`: where it does for the data that leaves by it. If the data takes another
    /// port of this switch, that one has this place and the port another.
    #[inline(always)]
    pub fn ack_slot(&self, acks: FlowId, hop: u32, port: u32) -> usize {
        // The port's place on the way of the data is the ACK's, counted from the other end.
        let slot = self.slot(acks.reverse(), self.step(acks, hop).remaining());
        if self.variants > 1 {
            return self.common_slot(slot, port);
        }
        if self.stride == self.longest || self.steps[slot].link() == port {
            slot
        } else {
            slot + self.longest
        }
    }

    /// Where a port keeps what it knows of a flow whose data leaves by it: one place, whichever path a packet has.
    #[inline(always)]
    pub fn data_slot(&self, flow: FlowId, hop: u32) -> usize {
        if self.variants == 1 {
            return self.slot(flow, hop);
        }
        let first = self.slot(flow, hop % self.longest as u32);
        self.common_slot(first, self.step(flow, hop).link())
    }

    /// The first of a flow's paths that has `port` where `first` is on the first one; another place if none has.
    fn common_slot(&self, first: usize, port: u32) -> usize {
        let places = (0..self.variants).map(|variant| first + variant * self.longest);
        let mut places = places.filter(|place| self.steps[*place].link() == port);
        places.next().unwrap_or(first + self.stride / 2)
    }

    /// Step number `hop` of a flow.
    #[inline(always)]
    pub fn step(&self, flow: FlowId, hop: u32) -> Step {
        self.steps[self.slot(flow, hop)]
    }

    /// The step after step number `hop` of a flow; without meaning after the last.
    #[inline(always)]
    pub fn onward(&self, flow: FlowId, hop: u8) -> Step {
        self.steps[self.slot(flow, hop.into()) + 1]
    }

    /// Places of one flow in tables kept per flow and hop.
    pub fn stride(&self) -> usize {
        self.stride
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const THERE: [u32; 3] = [10, 20, 31];

    #[test]
    fn each_direction_has_its_steps() {
        let mut paths = Paths::new(6, true);
        paths.set(FlowId(5), 0, &THERE);
        paths.set(FlowId(4), 0, &[30, 21, 11]);
        let paths = &paths;
        let steps = |flow| {
            (0..3).map(move |hop| {
                let step = paths.step(FlowId(flow), hop);
                (step.link(), step.remaining())
            })
        };
        assert!(steps(5).eq([(10, 2), (20, 1), (31, 0)]));
        assert!(steps(4).eq([(30, 2), (21, 1), (11, 0)]));
    }

    #[test]
    fn a_port_that_the_data_does_not_take_has_a_place_of_its_own() {
        let mut paths = Paths::new(4, false);
        paths.set(FlowId(5), 0, &THERE);
        // The switch of the second hop is reached by another cable, and left by the same.
        paths.set(FlowId(4), 0, &[30, 41, 11]);
        let data = |hop| paths.slot(FlowId(5), hop);
        assert_eq!(paths.ack_slot(FlowId(4), 0, 31), data(2));
        assert_eq!(paths.ack_slot(FlowId(4), 2, 10), data(0));
        let apart = paths.ack_slot(FlowId(4), 1, 40);
        assert!((data(0)..data(0) + paths.stride()).contains(&apart));
        assert!((0..4).all(|hop| data(hop) != apart));
    }
}
