// SPDX-License-Identifier: Apache-2.0
//! The links that each flow takes.
//!
//! A switch's choice among equal paths (ECMP) hashes the connection, so it is made once, when the
//! connection opens, and kept here. Both directions take the same switches: window policies need
//! the ACKs to come back through the port they control (FairQ §III-B).

use crate::engine::make_room;
use crate::packet::FlowId;

const LINK_BITS: u32 = 26;

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
    stride: usize,
    steps: Vec<Step>,
}

impl Paths {
    /// No flows yet; `longest`: links on the longest path of the fabric.
    pub fn new(longest: usize) -> Paths {
        Paths {
            stride: longest,
            steps: Vec::new(),
        }
    }

    /// Sets the path of `forward` and, back over the same cables, of its reverse. The links of a
    /// cable are numbered `2n` and `2n + 1`.
    pub fn set(&mut self, forward: FlowId, links: &[u32]) {
        debug_assert!(links.len() <= self.stride && links.len() < 64);
        let needed = (forward.0 | 1) as usize * self.stride + self.stride + 1;
        make_room(&mut self.steps, needed);
        if self.steps.len() < needed {
            self.steps.resize(needed, Step::default());
        }
        let (there, back) = (self.slot(forward, 0), self.slot(forward.reverse(), 0));
        let last = links.len() - 1;
        for (hop, link) in links.iter().enumerate() {
            self.steps[there + hop] = Step(link | ((last - hop) as u32) << LINK_BITS);
            self.steps[back + last - hop] = Step((link ^ 1) | (hop as u32) << LINK_BITS);
        }
    }

    /// Where the flow's hop number `hop` is found in tables kept per flow and hop.
    #[inline(always)]
    pub fn slot(&self, flow: FlowId, hop: u32) -> usize {
        flow.0 as usize * self.stride + hop as usize
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

    #[test]
    fn the_way_back_is_the_way_reversed() {
        let mut paths = Paths::new(6);
        paths.set(FlowId(5), &[10, 20, 31]);
        let there: Vec<_> = (0..3).map(|hop| paths.step(FlowId(5), hop)).collect();
        let back: Vec<_> = (0..3).map(|hop| paths.step(FlowId(4), hop)).collect();
        assert_eq!(
            there
                .iter()
                .map(|s| (s.link(), s.remaining()))
                .collect::<Vec<_>>(),
            [(10, 2), (20, 1), (31, 0)]
        );
        assert_eq!(
            back.iter()
                .map(|s| (s.link(), s.remaining()))
                .collect::<Vec<_>>(),
            [(30, 2), (21, 1), (11, 0)]
        );
    }
}
