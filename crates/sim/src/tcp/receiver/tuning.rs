// SPDX-License-Identifier: Apache-2.0
//! How far the window offered may grow: twice what the application reads per round trip, and more
//! while that increases (Linux's `tcp_rcv_space_adjust`).

use crate::packet::{Packet, flag};
use crate::tcp::segment::timestamp;
use penstock_scenario::units::Time;

/// What was read in the round trip under way, and in the one before.
#[derive(Debug)]
pub(super) struct Tuning {
    /// Bytes of a round trip that the limit has room for.
    space: u64,
    /// RCV.NXT and the time when the round trip under way began.
    from: u64,
    since: Time,
    /// Smallest round trip; zero before the first. By timestamps it is whole milliseconds.
    round_trip: Time,
    /// Without timestamps a round trip passes until a window that is offered at `edge_since` has
    /// arrived up to `edge`.
    edge: u64,
    edge_since: Time,
    /// The peer's full segment as far as seen.
    full_segment: u16,
}

impl Tuning {
    /// For a connection that is established `now` at RCV.NXT `nxt`, offering `window`; `mss`: payload
    /// of a full segment.
    pub fn new(mss: u16, window: u32, nxt: u64, now: Time) -> Tuning {
        Tuning {
            space: (10 * mss as u64).min(window as u64).max(1),
            from: nxt,
            since: now,
            round_trip: Time::ZERO,
            edge: nxt + window as u64,
            edge_since: now,
            full_segment: mss.min(536),
        }
    }

    /// The smallest round trip; none before the first.
    pub fn round_trip(&self) -> Option<Time> {
        (self.round_trip != Time::ZERO).then_some(self.round_trip)
    }

    /// The application reads `segment`, and all before RCV.NXT `nxt`, while `window` is offered;
    /// returns what the window may grow to, as far as this shows.
    pub fn on_arrival(&mut self, segment: &Packet, nxt: u64, window: u32, now: Time) -> u32 {
        if let Some(sample) = self.sample(segment, nxt, window, now)
            && (self.round_trip == Time::ZERO || sample < self.round_trip)
        {
            self.round_trip = sample;
        }
        if self.round_trip == Time::ZERO || now - self.since < self.round_trip {
            return 0;
        }
        let read = nxt - self.from;
        self.from = nxt;
        self.since = now;
        if read <= self.space {
            return 0;
        }
        // The sender may be doubling its rate, and this is one round trip late.
        let growth = 2 * read * (read - self.space) / self.space;
        self.space = read;
        (2 * read + 2 * growth).min(u32::MAX as u64) as u32
    }

    /// The round trip that a segment shows.
    fn sample(&mut self, segment: &Packet, nxt: u64, window: u32, now: Time) -> Option<Time> {
        if segment.has(flag::TIMESTAMPS) {
            if segment.payload < self.full_segment {
                return None;
            }
            self.full_segment = segment.payload;
            let millis = timestamp(now).wrapping_sub(segment.ts_ecr).max(1);
            return Some(Time::from_millis(millis.into()));
        }
        if nxt < self.edge {
            return None;
        }
        let round_trip = now - self.edge_since;
        self.edge = nxt + window as u64;
        self.edge_since = now;
        Some(round_trip)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(tuning: &mut Tuning, ms: u64, nxt: u64) -> u32 {
        let segment = Packet {
            payload: 1000,
            flags: flag::ACK | flag::TIMESTAMPS,
            ts_ecr: (ms - 10) as u32,
            ..Packet::default()
        };
        tuning.on_arrival(&segment, nxt, 64_000, Time::from_millis(ms))
    }

    #[test]
    fn the_limit_follows_what_is_read_per_round_trip() {
        let mut tuning = Tuning::new(1000, 64_000, 1, Time::ZERO);
        assert_eq!(
            read(&mut tuning, 10, 10_001),
            0,
            "not more than ten segments"
        );
        assert_eq!(read(&mut tuning, 15, 20_001), 0, "within the round trip");
        assert_eq!(read(&mut tuning, 20, 30_001), 2 * 20_000 + 2 * 40_000);
        assert_eq!(read(&mut tuning, 30, 50_001), 0, "not more than before");
        assert_eq!(read(&mut tuning, 40, 80_001), 2 * 30_000 + 2 * 30_000);
    }

    #[test]
    fn without_timestamps_a_round_trip_is_a_window_of_data() {
        let mut tuning = Tuning::new(1000, 20_000, 1, Time::ZERO);
        let segment = Packet {
            payload: 1000,
            ..Packet::default()
        };
        let mut read = |ms, nxt| tuning.on_arrival(&segment, nxt, 20_000, Time::from_millis(ms));
        assert_eq!(read(5, 15_001), 0);
        assert_eq!(read(10, 20_001), 2 * 20_000 + 2 * 40_000);
    }
}
