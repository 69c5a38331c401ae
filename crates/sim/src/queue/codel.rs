// SPDX-License-Identifier: Apache-2.0
//! CoDel, controlled delay (RFC 8289): when every packet of an interval has waited longer than the
//! target, drop (ECN: mark) at departure, ever faster, until the wait falls below the target.
//!
//! One FIFO queue. The control law is integer: interval / sqrt(count) through an exact 32-bit
//! reciprocal square root.

use std::collections::VecDeque;

use super::{DropReason, Limit, Scheduler};
use crate::packet::{Packet, flag};
use penstock_scenario::units::Time;

/// Parameters of [`Codel`]; start from [`Config::new`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Acceptable standing delay (RFC 8289 §4.3).
    pub target: Time,
    /// Time the delay must stand before the first drop: about the longest usual round trip (§4.3).
    pub interval: Time,
    /// Mark ECN-capable packets instead of dropping them.
    pub ecn: bool,
    /// With no more than this waiting nothing is dropped, bytes: a full packet (§4.4).
    pub max_packet_bytes: u32,
    /// The buffer.
    pub limit: Limit,
}

impl Config {
    /// The RFC's values for the Internet: target 5 ms, interval 100 ms, no ECN, 1500-byte packets.
    /// In a data center with round trips of 100 us take 50 us and 1 ms.
    pub const fn new(limit: Limit) -> Config {
        Config {
            target: Time::from_millis(5),
            interval: Time::from_millis(100),
            ecn: false,
            max_packet_bytes: 1500,
            limit,
        }
    }
}

/// The state of one port under CoDel.
#[derive(Clone, Debug)]
pub struct Codel {
    config: Config,
    queue: VecDeque<(Time, Packet)>,
    bytes: u64,
    /// When the delay will have stood for an interval; `None` while it is below the target.
    first_above: Option<Time>,
    /// Next drop, while `dropping`.
    drop_next: Time,
    /// Drops since `dropping` began.
    count: u32,
    /// `count` when it began.
    last_count: u32,
    dropping: bool,
    marks: u64,
}

impl Codel {
    /// An empty port.
    pub fn new(config: Config) -> Codel {
        Codel {
            config,
            queue: VecDeque::new(),
            bytes: 0,
            first_above: None,
            drop_next: Time::ZERO,
            count: 0,
            last_count: 0,
            dropping: false,
            marks: 0,
        }
    }

    /// The packet at the head, and whether it may be dropped (the RFC's dodequeue).
    fn take(&mut self, now: Time) -> (Option<Packet>, bool) {
        let Some((arrived, packet)) = self.queue.pop_front() else {
            self.first_above = None;
            return (None, false);
        };
        self.bytes -= u64::from(packet.size());
        let waited = now.saturating_sub(arrived);
        if waited < self.config.target || self.bytes <= u64::from(self.config.max_packet_bytes) {
            self.first_above = None;
            return (Some(packet), false);
        }
        let deadline = *self.first_above.get_or_insert(now + self.config.interval);
        (Some(packet), now >= deadline)
    }

    fn can_mark(&self, packet: &Packet) -> bool {
        self.config.ecn && packet.has(flag::ECT)
    }

    fn mark(&mut self, mut packet: Packet) -> Packet {
        packet.flags |= flag::CE;
        self.marks += 1;
        packet
    }

    /// Counts after a pause: a recent spell of dropping resumes near its rate (§5.5).
    fn start_dropping(&mut self, now: Time) {
        let recent = now.saturating_sub(self.drop_next).0 / 16 < self.config.interval.0;
        let delta = self.count.saturating_sub(self.last_count);
        self.count = if delta > 1 && recent { delta } else { 1 };
        self.last_count = self.count;
        self.drop_next = now + spacing(self.config.interval, self.count);
        self.dropping = true;
    }
}

impl Scheduler for Codel {
    fn enqueue(&mut self, now: Time, packet: Packet, lost: &mut dyn FnMut(Packet, DropReason)) {
        let bytes = self.bytes + u64::from(packet.size());
        if !self.config.limit.holds(bytes, self.backlog_packets() + 1) {
            return lost(packet, DropReason::Full);
        }
        self.bytes = bytes;
        self.queue.push_back((now, packet));
    }

    fn dequeue(&mut self, now: Time, lost: &mut dyn FnMut(Packet, DropReason)) -> Option<Packet> {
        let (head, mut may_drop) = self.take(now);
        let mut packet = head?;
        if !self.dropping {
            if !may_drop {
                return Some(packet);
            }
            self.start_dropping(now);
            if self.can_mark(&packet) {
                return Some(self.mark(packet));
            }
            lost(packet, DropReason::Delay);
            return self.take(now).0;
        }
        while may_drop && now >= self.drop_next {
            self.count = self.count.saturating_add(1);
            if self.can_mark(&packet) {
                self.drop_next += spacing(self.config.interval, self.count);
                return Some(self.mark(packet));
            }
            lost(packet, DropReason::Delay);
            let (next, may) = self.take(now);
            may_drop = may;
            if may_drop {
                self.drop_next += spacing(self.config.interval, self.count);
            }
            let Some(next) = next else {
                self.dropping = false;
                return None;
            };
            packet = next;
        }
        self.dropping = may_drop;
        Some(packet)
    }

    fn backlog_bytes(&self) -> u64 {
        self.bytes
    }

    fn backlog_packets(&self) -> u32 {
        u32::try_from(self.queue.len()).unwrap_or(u32::MAX)
    }

    fn marks(&self) -> u64 {
        self.marks
    }
}

/// The control law (§5.4): `interval` / sqrt(`count`), the root to 32 bits.
fn spacing(interval: Time, count: u32) -> Time {
    if count <= 1 {
        return interval;
    }
    let inverse_root = (u64::MAX / u64::from(count)).isqrt();
    Time(((u128::from(interval.0) * u128::from(inverse_root)) >> 32) as u64)
}

#[cfg(test)]
#[path = "codel_tests.rs"]
mod tests;
