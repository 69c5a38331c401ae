// SPDX-License-Identifier: Apache-2.0
//! A link: the output port that feeds it, the wire, and the packets on their way to its far end.
//!
//! The port is a FIFO, so a packet's departure is known on its arrival: a hop is one event, and the
//! queue is the difference between now and the time at which the transmitter will be free.

use super::paths::Step;
use crate::engine::Ring;
use crate::fabric::LinkSpec;
use crate::packet::Packet;
use crate::rng::Rng;
use penstock_scenario::units::{Buffer, Time};

/// A packet on its way, queued or on the wire.
#[derive(Clone, Copy, Default)]
pub(crate) struct InFlight {
    /// When it reaches the far end.
    pub arrives: Time,
    pub packet: Packet,
    /// The step of its path that follows; without meaning where a host takes it.
    pub onward: Step,
}

/// What is done to packets at this link beyond forwarding; all clear on most links.
pub(super) mod feature {
    /// Packets may be lost before the queue: its link fails, or its switch shares a buffer; or they
    /// are recorded.
    pub const LOSS: u8 = 1;
    /// An [`crate::queue::Admission`] decides.
    pub const ADMISSION: u8 = 2;
    /// A [`crate::queue::Scheduler`] holds the packets.
    pub const SCHEDULER: u8 = 4;
    /// A window policy watches what leaves by this port.
    pub const WINDOW: u8 = 8;
    /// SYN and FIN leaving by this port are copied to the controller.
    pub const REPORT: u8 = 16;
    /// A shim sits between the host and this link.
    pub const SHIM: u8 = 32;
    /// Next to where this link begins, what arrives is under a credit policy, and what leaves its ACKs.
    pub const CREDIT: u8 = 64;
    /// What waits here counts for the port by which it came in (priority flow control).
    pub const PFC: u8 = 128;
}

/// What happens where the link ends.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// A switch forwards.
    Switch,
    /// A switch forwards, and the port back over this link has a window policy.
    Window,
    /// A host takes the packet.
    Host,
    /// A host takes it from its shim.
    Shim,
    /// A host takes it from a credit policy.
    CreditHost,
    /// A switch forwards what it takes from a credit policy.
    CreditSwitch,
    /// Another network takes the packet, in time.
    Away,
}

/// One direction of a cable: two cache lines, the first with all that decides.
#[repr(C, align(64))]
pub(super) struct Link {
    pub ring: Ring<InFlight>,
    /// When the transmitter will have sent all that was given to it.
    pub free_at: Time,
    pub byte_time_q16: u64,
    pub delay: Time,
    /// The longest wait that leaves room for the longest packet so far, which may be the one in
    /// transmission.
    pub surely_held: Time,
    pub features: u8,
    pub end: End,
    /// Length of the longest packet so far, in units of 4 bytes, rounded up.
    pub longest: u16,
    /// The calendar's leaf for it while packets are on it.
    pub leaf: u32,
    pub buffer_packets: u32,
    /// A buffer in bytes, as the time they take; [`Time::NEVER`] where packets are counted.
    pub buffer_time: Time,
    /// Longest wait met by a packet, its own transmission included.
    pub peak: Time,
    pub sent_bytes: u64,
    pub sent_packets: u64,
    /// The packet whose transmission was not over when last counted, by the ring's numbering.
    pub gone: u32,
    /// Up to how much longer than `delay` a packet takes.
    jitter: Time,
    /// What it takes of that depends on this and on its number.
    pub noise: u64,
}

const _: () = assert!(size_of::<Link>() == 128);

impl Link {
    /// The link of `spec`, empty.
    pub fn new(spec: &LinkSpec, end: End) -> Link {
        let LinkSpec {
            rate,
            delay,
            jitter,
            buffer,
            ..
        } = *spec;
        let (buffer_time, buffer_packets) = match buffer {
            Buffer::Bytes(bytes) => (rate.transmission(bytes), u32::MAX),
            Buffer::Packets(packets) => (Time::NEVER, packets),
        };
        Link {
            ring: Ring::default(),
            free_at: Time::ZERO,
            byte_time_q16: rate.byte_time_q16(),
            delay,
            buffer_time,
            peak: Time::ZERO,
            sent_bytes: 0,
            sent_packets: 0,
            gone: 0,
            jitter,
            noise: 0,
            longest: 0,
            surely_held: buffer_time,
            buffer_packets,
            features: 0,
            end,
            leaf: 0,
        }
    }

    /// How much longer than `delay` the packet of this number takes, by the ring's numbering.
    #[inline(always)]
    fn late(&self, number: u32) -> Time {
        match self.jitter {
            Time::ZERO => Time::ZERO,
            most => Time(Rng::new(self.noise, number.into()).below(most.0 + 1)),
        }
    }

    /// When the last bit of the packet at `index` of the ring leaves the port.
    #[inline(always)]
    fn departure(&self, index: u32) -> Time {
        let number = self.ring.taken().wrapping_add(index);
        self.ring.get(index).arrives - self.delay - self.late(number)
    }

    /// How long `packet` occupies the transmitter.
    #[inline(always)]
    pub fn transmission(&self, packet: &Packet) -> Time {
        Time((packet.size() as u64 * self.byte_time_q16) >> 16)
    }

    /// Bytes queued or in transmission at `now`.
    pub fn backlog_bytes(&self, now: Time) -> u64 {
        self.bytes_sent_in(self.free_at.saturating_sub(now))
    }

    /// Bytes of the longest wait met by a packet.
    pub fn peak_bytes(&self) -> u64 {
        self.bytes_sent_in(self.peak)
    }

    /// Bytes that take `time` to send, rounded up.
    fn bytes_sent_in(&self, time: Time) -> u64 {
        if time.0 < 1 << 47 {
            return (time.0 << 16).div_ceil(self.byte_time_q16);
        }
        // A slow link with a large buffer: more than 140 s.
        (u128::from(time.0) << 16).div_ceil(self.byte_time_q16.into()) as u64
    }

    /// Packets not yet sent entirely at `now`. They leave in order, so what has gone since the last
    /// count is found at the head of the ring.
    #[inline]
    pub fn held_packets(&mut self, now: Time) -> u32 {
        let taken = self.ring.taken();
        let mut gone = self.gone.wrapping_sub(taken);
        if gone > self.ring.len() {
            gone = 0; // They have arrived since.
        }
        while gone < self.ring.len() && self.departure(gone) <= now {
            gone += 1;
        }
        self.gone = taken.wrapping_add(gone);
        self.ring.len() - gone
    }

    /// Whether the buffer takes `packet`.
    #[inline(always)]
    pub fn has_room(&mut self, now: Time, packet: &Packet) -> bool {
        let wait = self.free_at.saturating_sub(now) + self.transmission(packet);
        self.is_held(now, wait) && self.has_place(now)
    }

    /// Whether the buffer holds what takes `wait` to be sent. The packet in transmission takes its
    /// whole place until its last bit has left, as in a switch and in Linux's qdiscs; which it is
    /// matters only where less than a packet is free.
    #[inline(always)]
    fn is_held(&mut self, now: Time, wait: Time) -> bool {
        wait <= self.surely_held
            || wait <= self.buffer_time && wait + self.sent_of_head(now) <= self.buffer_time
    }

    /// How long the packet in transmission has been so.
    #[cold]
    fn sent_of_head(&mut self, now: Time) -> Time {
        self.held_packets(now);
        let index = self.gone.wrapping_sub(self.ring.taken());
        if index >= self.ring.len() {
            return Time::ZERO;
        }
        let (left, packet) = (self.departure(index), self.ring.get(index).packet);
        self.transmission(&packet)
            .saturating_sub(left.saturating_sub(now))
    }

    /// Whether the buffer takes one more packet. Those on the wire are counted only where they and
    /// those in the buffer together might be too many.
    #[inline(always)]
    fn has_place(&mut self, now: Time) -> bool {
        self.ring.len() < self.buffer_packets || self.held_packets(now) < self.buffer_packets
    }

    /// Queues `packet` if the buffer takes it. Its departure is known at once: returns its arrival
    /// at the far end, and whether it is alone on the link. `hop`: links behind it then.
    #[inline(always)]
    pub fn offer(
        &mut self,
        now: Time,
        packet: &Packet,
        hop: u8,
        onward: Step,
    ) -> Option<(Time, bool)> {
        let taken = self.transmission(packet);
        let done = self.free_at.max(now) + taken;
        let wait = done - now;
        if !self.is_held(now, wait) || !self.has_place(now) {
            return None;
        }
        self.free_at = done;
        self.peak = self.peak.max(wait);
        let size = (packet.size() >> 2) as u16 + 1;
        if size > self.longest {
            self.longest = size;
            let longest = Time((4 * u64::from(size) * self.byte_time_q16) >> 16);
            self.surely_held = self.buffer_time.saturating_sub(longest);
        }
        self.sent_bytes += packet.size() as u64;
        self.sent_packets += 1;
        let number = self.ring.taken().wrapping_add(self.ring.len());
        let arrives = done + self.delay + self.late(number);
        let alone = self.ring.is_empty();
        let entry = InFlight {
            arrives,
            packet: *packet,
            onward,
        };
        // A byte written to the copy would stall the copy's next read.
        self.ring.push(entry).packet.hop = hop;
        Some((arrives, alone))
    }

    /// Forgets the packets that have left the port, for links by which nothing arrives here.
    pub fn forget_sent(&mut self, now: Time) {
        while !self.ring.is_empty() && self.departure(0) <= now {
            self.ring.pop();
        }
    }

    /// Takes the packet that arrives `now`; returns it and the next arrival, which may have been due
    /// before.
    #[inline(always)]
    pub fn arrival(&mut self, now: Time) -> (InFlight, Time) {
        let entry = self.ring.pop();
        (entry, self.next_arrival().max(now))
    }

    /// When the next packet comes out; [`Time::NEVER`] for none.
    #[inline(always)]
    pub fn next_arrival(&self) -> Time {
        // Without a branch: it would be mispredicted every third time.
        let is_empty = u64::from(self.ring.is_empty());
        Time(self.ring.head().arrives.0 | is_empty.wrapping_neg())
    }
}
