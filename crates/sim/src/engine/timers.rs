// SPDX-License-Identifier: Apache-2.0
//! Timers of the end points: moved lazily, because a retransmission timer is set on every ACK and
//! almost never fires.
//!
//! Each owner has one deadline, which it may move at will; the heap holds a wake-up not later than
//! it. A wake-up that comes too early is put off to the deadline as it then stands.

use penstock_scenario::units::Time;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Wake-ups of numbered owners.
#[derive(Default)]
pub struct Timers {
    heap: BinaryHeap<Reverse<(Time, u32)>>,
}

impl Timers {
    /// Requests a wake-up of `owner` at `deadline`. `wake` is the owner's earliest wake-up already
    /// requested, kept by the caller with the owner's own state; later deadlines cost nothing.
    #[inline(always)]
    pub fn arm(&mut self, owner: u32, deadline: Time, wake: &mut Time) {
        if deadline < *wake {
            *wake = deadline;
            self.heap.push(Reverse((deadline, owner)));
        }
    }

    /// When the next wake-up is due; [`Time::NEVER`] for none.
    pub fn next(&self) -> Time {
        self.heap
            .peek()
            .map_or(Time::NEVER, |Reverse((time, _))| *time)
    }

    /// Takes the next wake-up. The caller compares its time with the owner's `wake`: another time
    /// is a wake-up that an earlier one has replaced, to be ignored.
    pub fn pop(&mut self) -> Option<(Time, u32)> {
        self.heap.pop().map(|Reverse(wake_up)| wake_up)
    }
}
