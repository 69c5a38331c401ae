// SPDX-License-Identifier: Apache-2.0
//! What SFQ and DRR share: many FIFO queues in one buffer, served in rounds; when the buffer is full
//! the longest queue gives way. Every operation takes constant time (the search for the longest:
//! amortized).

use std::num::NonZeroU32;

use super::Limit;
use super::longest::{Longest, NONE};
use crate::packet::Packet;

/// How much a queue may send when its turn comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// One packet, of any size.
    Packet,
    /// This many bytes more than its deficit (deficit round robin). No less than the largest packet,
    /// or a packet waits for several rounds and departures are no longer of constant time.
    Bytes(NonZeroU32),
}

/// What makes a queue the longest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Measure {
    Packets,
    /// In steps of 256 bytes.
    Bytes,
}

impl Measure {
    fn class(self, queue: &Queue) -> u32 {
        match self {
            Measure::Packets => queue.packets,
            Measure::Bytes => queue.bytes.div_ceil(256) as u32,
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Queue {
    head: u32,
    tail: u32,
    packets: u32,
    deficit: u32,
    bytes: u64,
    /// Neighbours in the ring of queues that hold packets.
    next: u32,
    previous: u32,
}

const EMPTY: Queue = Queue {
    head: NONE,
    tail: NONE,
    packets: 0,
    deficit: 0,
    bytes: 0,
    next: NONE,
    previous: NONE,
};

/// A packet in the shared buffer, and its neighbours in its queue.
#[derive(Clone, Copy, Debug)]
struct Slot {
    packet: Packet,
    next: u32,
    previous: u32,
}

/// A packet that left, and whether its queue is empty now.
#[derive(Clone, Copy, Debug)]
pub(super) struct Left {
    pub packet: Packet,
    pub queue: u32,
    pub is_empty: bool,
}

/// Many queues in one buffer.
#[derive(Clone, Debug)]
pub(super) struct FairQueues {
    limit: Limit,
    turn: Turn,
    measure: Measure,
    queues: Vec<Queue>,
    slots: Vec<Slot>,
    /// Unused slots, linked through `next`.
    free: u32,
    longest: Longest,
    /// The queue whose turn it is; `NONE` if all are empty.
    current: u32,
    /// Whether `current` has been given its turn's bytes.
    in_turn: bool,
    bytes: u64,
    packets: u32,
}

impl FairQueues {
    pub fn new(limit: Limit, turn: Turn, measure: Measure) -> FairQueues {
        FairQueues {
            limit,
            turn,
            measure,
            queues: Vec::new(),
            slots: Vec::new(),
            free: NONE,
            longest: Longest::new(),
            current: NONE,
            in_turn: false,
            bytes: 0,
            packets: 0,
        }
    }

    /// Adds an empty queue and returns its index: 0, 1, 2...
    pub fn add(&mut self) -> u32 {
        self.queues.push(EMPTY);
        self.longest.add();
        self.queues.len() as u32 - 1
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    pub fn packets(&self) -> u32 {
        self.packets
    }

    /// Whether packets must be given up by [`FairQueues::steal`].
    pub fn is_over_limit(&self) -> bool {
        !self.limit.holds(self.bytes, self.packets)
    }

    /// Puts a packet at the end of a queue, whatever the limit.
    pub fn push(&mut self, queue: u32, packet: Packet) {
        let slot = self.allocate(packet);
        let q = &mut self.queues[queue as usize];
        let tail = std::mem::replace(&mut q.tail, slot);
        self.slots[slot as usize].previous = tail;
        match tail {
            NONE => q.head = slot,
            _ => self.slots[tail as usize].next = slot,
        }
        if q.packets == 0 {
            q.deficit = 0;
            self.join_ring(queue);
        }
        let q = &mut self.queues[queue as usize];
        q.packets += 1;
        q.bytes += u64::from(packet.size());
        self.packets += 1;
        self.bytes += u64::from(packet.size());
        self.longest.grew(queue, self.measure.class(q));
    }

    /// The next packet in rounds.
    pub fn pop(&mut self) -> Option<Left> {
        loop {
            let queue = self.current;
            if queue == NONE {
                return None;
            }
            let q = &mut self.queues[queue as usize];
            let Turn::Bytes(quantum) = self.turn else {
                let next = q.next;
                let left = self.take_head(queue);
                if !left.is_empty {
                    self.current = next;
                }
                return Some(left);
            };
            if !self.in_turn {
                q.deficit = q.deficit.saturating_add(quantum.get());
                self.in_turn = true;
            }
            let size = self.slots[q.head as usize].packet.size();
            if size <= q.deficit {
                q.deficit -= size;
                return Some(self.take_head(queue));
            }
            self.current = q.next;
            self.in_turn = false;
        }
    }

    /// The last packet of the longest queue.
    pub fn steal(&mut self) -> Option<Left> {
        let FairQueues {
            queues,
            longest,
            measure,
            ..
        } = self;
        let queue = longest.find(|queue| measure.class(&queues[queue as usize]))?;
        let q = &mut self.queues[queue as usize];
        let slot = q.tail;
        q.tail = self.slots[slot as usize].previous;
        match q.tail {
            NONE => q.head = NONE,
            tail => self.slots[tail as usize].next = NONE,
        }
        Some(self.release(queue, slot))
    }

    fn take_head(&mut self, queue: u32) -> Left {
        let q = &mut self.queues[queue as usize];
        let slot = q.head;
        q.head = self.slots[slot as usize].next;
        match q.head {
            NONE => q.tail = NONE,
            head => self.slots[head as usize].previous = NONE,
        }
        self.release(queue, slot)
    }

    /// Books a packet out that has been unlinked from its queue.
    fn release(&mut self, queue: u32, slot: u32) -> Left {
        let packet = self.slots[slot as usize].packet;
        self.slots[slot as usize].next = self.free;
        self.free = slot;
        let size = u64::from(packet.size());
        let q = &mut self.queues[queue as usize];
        q.packets -= 1;
        q.bytes -= size;
        let is_empty = q.packets == 0;
        self.packets -= 1;
        self.bytes -= size;
        if is_empty {
            self.leave_ring(queue);
        }
        Left {
            packet,
            queue,
            is_empty,
        }
    }

    fn allocate(&mut self, packet: Packet) -> u32 {
        let slot = Slot {
            packet,
            next: NONE,
            previous: NONE,
        };
        let index = self.free;
        if index == NONE {
            self.slots.push(slot);
            return self.slots.len() as u32 - 1;
        }
        self.free = self.slots[index as usize].next;
        self.slots[index as usize] = slot;
        index
    }

    /// Last in the round: just behind the queue whose turn it is.
    fn join_ring(&mut self, queue: u32) {
        let (next, previous) = match self.current {
            NONE => (queue, queue),
            current => (current, self.queues[current as usize].previous),
        };
        if self.current == NONE {
            self.current = queue;
            self.in_turn = false;
        }
        self.queues[queue as usize].next = next;
        self.queues[queue as usize].previous = previous;
        self.queues[previous as usize].next = queue;
        self.queues[next as usize].previous = queue;
    }

    fn leave_ring(&mut self, queue: u32) {
        let Queue { next, previous, .. } = self.queues[queue as usize];
        self.queues[previous as usize].next = next;
        self.queues[next as usize].previous = previous;
        if queue == self.current {
            self.current = if next == queue { NONE } else { next };
            self.in_turn = false;
        }
    }
}
