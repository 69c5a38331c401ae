// SPDX-License-Identifier: Apache-2.0
//! The control network: messages between a controller and switches or shims take time and
//! bandwidth, and may be lost.

use super::ControllerCounters;
use crate::rng::Rng;
use penstock_scenario::units::{Rate, Time};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Headers of a message, bytes: Ethernet 14, IP 20, TCP 20, as SICC §5.4 counts.
pub const HEADER_BYTES: u64 = 54;

/// The shortest Ethernet frame without its check sequence, bytes: a message with a few words.
pub const FRAME_BYTES: u64 = 60;

/// Where a message goes. The controller's link carries both ways at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// From a switch.
    ToController = 0,
    /// To a switch or a shim.
    FromController = 1,
}

/// The controller's link to the control network, and the messages on their way. What does not fit
/// waits, without a limit. Simultaneous messages arrive in the order in which they were sent.
#[derive(Clone, Debug)]
pub struct Channel<M> {
    /// By arrival, and by how many were sent before.
    messages: BinaryHeap<Reverse<(Time, u64, M)>>,
    sent: u64,
    /// One way, without what a message takes on the link.
    latency: Time,
    /// Of each direction; `None`: without limit.
    rate: Option<Rate>,
    /// Share of messages that are lost behind the link, 0 to 1.
    loss: f64,
    /// Draws the losses.
    rng: Rng,
    /// When each direction has sent all that it was given.
    free_at: [Time; 2],
    bytes: [u64; 2],
    lost: u64,
}

impl<M: Ord> Channel<M> {
    /// An idle one.
    pub fn new(latency: Time, rate: Option<Rate>, loss: f64, rng: Rng) -> Channel<M> {
        Channel {
            messages: BinaryHeap::new(),
            sent: 0,
            latency,
            rate,
            loss,
            rng,
            free_at: [Time::ZERO; 2],
            bytes: [0; 2],
            lost: 0,
        }
    }

    /// Sends a message of so many bytes, unless it is lost.
    pub fn send(&mut self, now: Time, way: Way, bytes: u64, message: M) {
        self.count(way, bytes);
        let mut sent_at = now;
        if let Some(rate) = self.rate {
            let free_at = &mut self.free_at[way as usize];
            *free_at = (*free_at).max(now) + rate.transmission(bytes);
            sent_at = *free_at;
        }
        if self.loss > 0.0 && self.rng.unit() < self.loss {
            self.lost += 1;
        } else {
            let arrives = sent_at + self.latency;
            self.messages.push(Reverse((arrives, self.sent, message)));
            self.sent += 1;
        }
    }

    /// When the next message arrives.
    pub fn next(&self) -> Time {
        let first = self.messages.peek();
        first.map_or(Time::NEVER, |Reverse((time, ..))| *time)
    }

    /// The next message, if it has arrived.
    pub fn receive(&mut self, now: Time) -> Option<M> {
        if self.next() > now {
            return None;
        }
        self.messages.pop().map(|Reverse((.., message))| message)
    }

    /// Counts a message that takes no time.
    pub fn count(&mut self, way: Way, bytes: u64) {
        self.bytes[way as usize] += bytes;
    }

    /// The counters with those of the channel.
    pub fn counters(&self, others: ControllerCounters) -> ControllerCounters {
        let [bytes_to_controller, bytes_from_controller] = self.bytes;
        ControllerCounters {
            messages_lost: self.lost,
            bytes_to_controller,
            bytes_from_controller,
            ..others
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn channel(rate: Option<Rate>, loss: f64) -> Channel<u32> {
        Channel::new(Time::from_micros(100), rate, loss, Rng::new(1, 2))
    }

    fn arrivals(channel: &mut Channel<u32>) -> Vec<(Time, u32)> {
        let mut arrived = Vec::new();
        while channel.next() != Time::NEVER {
            let time = channel.next();
            arrived.extend(channel.receive(time).map(|message| (time, message)));
        }
        arrived
    }

    #[test]
    fn messages_wait_for_each_other_in_their_direction() {
        let (to, from) = (Way::ToController, Way::FromController);
        let us = Time::from_micros;
        let mut slow = channel(Some(Rate(100_000_000)), 0.0);
        // 125 bytes take 10 us.
        for (message, way) in [to, to, from].into_iter().enumerate() {
            slow.send(Time::ZERO, way, 125, message as u32);
        }
        slow.send(us(500), to, 125, 3);
        assert_eq!(slow.receive(us(109)), None);
        let expected = [(us(110), 0), (us(110), 2), (us(120), 1), (us(610), 3)];
        assert_eq!(arrivals(&mut slow), expected);
        assert_eq!(slow.bytes, [375, 125]);
        let mut fast = channel(None, 0.0);
        fast.send(Time::ZERO, to, 1_000_000, 1);
        fast.send(Time::ZERO, to, 1_000_000, 0);
        assert_eq!(arrivals(&mut fast), [(us(100), 1), (us(100), 0)]);
    }

    #[test]
    fn lost_messages_are_counted_and_took_their_time() {
        let mut channel = channel(Some(Rate(100_000_000)), 1.0);
        channel.send(Time::ZERO, Way::ToController, 125, 0);
        assert_eq!(channel.next(), Time::NEVER);
        let counters = channel.counters(ControllerCounters::default());
        assert_eq!(
            (counters.messages_lost, counters.bytes_to_controller),
            (1, 125)
        );
        assert_eq!(channel.free_at[0], Time::from_micros(10));
    }
}
