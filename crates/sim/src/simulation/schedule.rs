// SPDX-License-Identifier: Apache-2.0
//! Everything rare: starts of transfers, timers of policies, samples. Ordered by time, then kind,
//! then number, never by insertion.

use penstock_scenario::units::Time;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Action {
    /// The measured time begins.
    MeasureStart,
    /// The queue policy of this port has periodic work.
    QueueTick(u32),
    /// The window policy of this port has periodic work.
    WindowTick(u32),
    /// A pause frame arrives at the port of this link.
    Pause(u32),
    /// This generator of transfers makes its next one.
    Generate(u32),
    /// The next job of this row starts.
    Job(u32),
    /// The pause in a job that this ticket stands for is over.
    Gate(u32),
    /// This client begins its next transfer.
    Begin(u32),
    /// The program behind the clients of this profile has done what it had to do, and goes on.
    Turn(u32),
    /// The server of this client has its answer.
    Answer(u32),
    /// This client stops, finished or not.
    Stop(u32),
    /// This UDP source sends.
    Datagram(u32),
    /// The queues are sampled.
    Sample,
    /// The windows of chosen flows are sampled.
    SampleWindows,
}

/// Actions by time.
#[derive(Default)]
pub struct Schedule {
    heap: BinaryHeap<Reverse<(Time, Action)>>,
}

impl Schedule {
    /// Adds an action.
    pub fn add(&mut self, time: Time, action: Action) {
        self.heap.push(Reverse((time, action)));
    }

    /// When the next is due; [`Time::NEVER`] for none.
    pub fn next(&self) -> Time {
        self.heap
            .peek()
            .map_or(Time::NEVER, |Reverse((time, _))| *time)
    }

    /// Takes the next.
    pub fn pop(&mut self) -> Option<(Time, Action)> {
        self.heap.pop().map(|Reverse(entry)| entry)
    }
}
