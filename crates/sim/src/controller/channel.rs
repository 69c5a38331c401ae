// SPDX-License-Identifier: Apache-2.0
//! The control network: messages between a controller and switches or shims take time and
//! bandwidth, and may be lost.

use crate::rng::Rng;
use penstock_scenario::units::{Rate, Time};

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

/// The controller's link to the control network. What does not fit waits, without a limit.
#[derive(Clone, Debug)]
pub struct Channel {
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

impl Channel {
    /// An idle one.
    pub fn new(latency: Time, rate: Option<Rate>, loss: f64, rng: Rng) -> Channel {
        Channel {
            latency,
            rate,
            loss,
            rng,
            free_at: [Time::ZERO; 2],
            bytes: [0; 2],
            lost: 0,
        }
    }

    /// When a message of so many bytes, sent now, arrives; `None` if it is lost.
    pub fn send(&mut self, now: Time, way: Way, bytes: u64) -> Option<Time> {
        self.count(way, bytes);
        let mut sent_at = now;
        if let Some(rate) = self.rate {
            let free_at = &mut self.free_at[way as usize];
            *free_at = (*free_at).max(now) + rate.transmission(bytes);
            sent_at = *free_at;
        }
        if self.loss > 0.0 && self.rng.unit() < self.loss {
            self.lost += 1;
            return None;
        }
        Some(sent_at + self.latency)
    }

    /// Counts a message that takes no time.
    pub fn count(&mut self, way: Way, bytes: u64) {
        self.bytes[way as usize] += bytes;
    }

    /// Bytes of all messages one way, lost ones included.
    pub fn bytes(&self, way: Way) -> u64 {
        self.bytes[way as usize]
    }

    /// Messages that were lost.
    pub fn lost(&self) -> u64 {
        self.lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn channel(rate: Option<Rate>, loss: f64) -> Channel {
        Channel::new(Time::from_micros(100), rate, loss, Rng::new(1, 2))
    }

    #[test]
    fn messages_wait_for_each_other_in_their_direction() {
        let (to, from) = (Way::ToController, Way::FromController);
        let mut slow = channel(Some(Rate(100_000_000)), 0.0);
        // 125 bytes take 10 us.
        let arrivals = [to, to, from].map(|way| slow.send(Time::ZERO, way, 125));
        assert_eq!(
            arrivals,
            [110, 120, 110].map(|us| Some(Time::from_micros(us)))
        );
        let later = Time::from_micros(500);
        assert_eq!(slow.send(later, to, 125), Some(Time::from_micros(610)));
        assert_eq!((slow.bytes(to), slow.bytes(from)), (375, 125));
        let mut fast = channel(None, 0.0);
        let arrivals = [to, to].map(|way| fast.send(Time::ZERO, way, 1_000_000));
        assert_eq!(arrivals, [Some(Time::from_micros(100)); 2]);
    }

    #[test]
    fn lost_messages_are_counted_and_took_their_time() {
        let mut channel = channel(Some(Rate(100_000_000)), 1.0);
        assert_eq!(channel.send(Time::ZERO, Way::ToController, 125), None);
        assert_eq!((channel.lost(), channel.bytes(Way::ToController)), (1, 125));
        assert_eq!(channel.free_at[0], Time::from_micros(10));
    }
}
