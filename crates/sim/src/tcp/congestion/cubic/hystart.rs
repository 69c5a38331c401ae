// SPDX-License-Identifier: Apache-2.0
//! HyStart as Linux has it (tcp_cubic, after Ha and Rhee, "Taming the elephants: new TCP slow start",
//! 2011): slow start ends when the ACKs of a round come in one train as long as half the smallest
//! round trip, or when the round trips of a round have grown.

use super::super::window::Acked;
use penstock_scenario::units::Time;

/// Below this many segments HyStart is silent.
const LOW_WINDOW: u32 = 16;
/// ACKs closer than this make a train.
const SPACING: Time = Time::from_millis(2);
/// Samples of a round before it is compared.
const SAMPLES: u8 = 8;
/// Bounds of the growth by which a round's round trips end slow start.
const MARGIN: (Time, Time) = (Time::from_millis(4), Time::from_millis(16));
/// What bursts may add to a train: at most this, and the time of as many bytes at the pacing rate
/// (`hystart_ack_delay`, four packets of the largest size).
const MOST_DELAY: Time = Time::from_millis(1);
const BURSTS_BYTES: u64 = 4 * 65_536;

/// The state of a round.
#[derive(Clone, Debug, Default)]
pub(super) struct HyStart {
    round_end: u64,
    round_start: Time,
    last_ack: Time,
    round_smallest: Time,
    samples: u8,
}

/// The kernel whose HyStart it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    /// Linux 3.18: bursts do not lengthen a train, and a round is judged by its first samples.
    Old,
    /// Linux 6.18: they do, and all samples of a round count.
    New,
}

impl HyStart {
    /// Slow start begins again.
    pub(super) fn restart(&mut self) {
        self.round_end = 0;
    }

    /// Whether slow start ends with this ACK at a window of `cwnd` segments. `smallest`: the smallest
    /// round trip, zero for unknown.
    pub(super) fn ends_slow_start(
        &mut self,
        version: Version,
        cwnd: u32,
        smallest: Time,
        ack: &Acked,
    ) -> bool {
        if ack.una > self.round_end {
            *self = HyStart {
                round_end: ack.nxt,
                round_start: ack.now,
                last_ack: ack.now,
                round_smallest: Time::NEVER,
                samples: 0,
            };
        }
        if cwnd < LOW_WINDOW || smallest == Time::ZERO {
            return false;
        }
        self.is_train_long(version, cwnd, smallest, ack)
            || ack.rtt != Time::ZERO && self.have_trips_grown(version, smallest, ack.rtt)
    }

    fn is_train_long(&mut self, version: Version, cwnd: u32, smallest: Time, ack: &Acked) -> bool {
        if ack.now.saturating_sub(self.last_ack) > SPACING {
            return false;
        }
        self.last_ack = ack.now;
        let bursts = match version {
            Version::Old => Time::ZERO,
            Version::New => delay_by_bursts(cwnd, ack),
        };
        // Half of it, as nothing paces the sender.
        ack.now.saturating_sub(self.round_start).0 > (smallest.0 + bursts.0) / 2
    }

    fn have_trips_grown(&mut self, version: Version, smallest: Time, rtt: Time) -> bool {
        let has_enough = self.samples >= SAMPLES;
        if !has_enough || version == Version::New {
            self.round_smallest = self.round_smallest.min(rtt);
        }
        if !has_enough {
            self.samples += 1;
            return false;
        }
        let margin = (smallest.0 / 8).clamp(MARGIN.0.0, MARGIN.1.0);
        self.round_smallest.0 > smallest.0 + margin
    }
}

/// How much longer bursts may make a train of ACKs: the time of some at the rate that Linux would pace
/// at in slow start, two windows per smoothed round trip, whether or not it does.
fn delay_by_bursts(cwnd: u32, ack: &Acked) -> Time {
    let window = 2 * cwnd as u64 * ack.mss as u64;
    let delay = (ack.smoothed.0 as u128 * BURSTS_BYTES as u128) / window.max(1) as u128;
    Time(delay.min(MOST_DELAY.0 as u128) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u32 = 1_448;

    /// An ACK at `micros`, with a round trip of `rtt_micros`, in a round that ends beyond it.
    fn ack(micros: u64, una: u64, rtt_micros: u64) -> Acked {
        let rtt = Time::from_micros(rtt_micros);
        Acked {
            now: Time::from_secs(1) + Time::from_micros(micros),
            bytes: MSS,
            segments: 1,
            mss: MSS,
            una,
            nxt: 1_000_000,
            rtt,
            smoothed: rtt,
        }
    }

    /// Microseconds after its start at which a train of ACKs, one every 10 us, ends slow start.
    fn end_of_train(version: Version, cwnd: u32, rtt_micros: u64) -> Option<u64> {
        let mut hystart = HyStart::default();
        let smallest = Time::from_micros(rtt_micros);
        (0..100_000).step_by(10).find(|&micros| {
            let ack = ack(micros, 1 + micros, rtt_micros);
            hystart.ends_slow_start(version, cwnd, smallest, &ack)
        })
    }

    /// At 20 segments in 100 us, bursts are 452 us at twice that rate, and a train (100 us + 452 us) / 2.
    #[test]
    fn a_short_round_trip_leaves_room_for_bursts() {
        assert_eq!(end_of_train(Version::New, 20, 100), Some(280));
        assert_eq!(end_of_train(Version::Old, 20, 100), Some(60));
    }

    /// At 1000 segments in 20 ms they are 1.81 ms, of which 1 ms counts, at 2000 in 100 us 4.5 us.
    #[test]
    fn bursts_count_at_the_pacing_rate() {
        assert_eq!(end_of_train(Version::New, 1_000, 20_000), Some(10_510));
        assert_eq!(end_of_train(Version::New, 2_000, 100), Some(60));
        let long = ack(0, 1, 20_000);
        assert_eq!(delay_by_bursts(1_000, &long), Time::from_millis(1));
        assert_eq!(delay_by_bursts(2_000, &ack(0, 1, 100)).as_nanos(), 4_525);
    }

    #[test]
    fn small_windows_and_sparse_acks_do_not_count() {
        assert_eq!(end_of_train(Version::New, 15, 100), None);
        let mut hystart = HyStart::default();
        let smallest = Time::from_micros(100);
        let ends = |micros| {
            let ack = ack(micros, 1 + micros, 100);
            hystart.ends_slow_start(Version::New, 100, smallest, &ack)
        };
        assert!(!(0..100_000).step_by(2_001).any(ends));
    }

    /// Trips that are longer by 4 ms in all of nine samples end slow start, and none below.
    #[test]
    fn growing_round_trips_end_slow_start() {
        for (rtt, expected) in [(5_001, Some(8)), (5_000, None)] {
            let mut hystart = HyStart::default();
            let at = (0..100u64).find(|&number| {
                // 3 ms apart: no train.
                let ack = ack(3_000 * number, 1 + number, rtt);
                let smallest = Time::from_millis(1);
                hystart.ends_slow_start(Version::New, 100, smallest, &ack)
            });
            assert_eq!(at, expected, "{rtt}");
        }
    }

    /// One fast sample after the first eight keeps slow start going in today's Linux.
    #[test]
    fn later_samples_of_a_round_count() {
        for (version, expected) in [(Version::New, false), (Version::Old, true)] {
            let mut hystart = HyStart::default();
            let ends = (0..9u64).any(|number| {
                let rtt = if number < 8 { 9_000 } else { 1_000 };
                let ack = ack(3_000 * number, 1 + number, rtt);
                hystart.ends_slow_start(version, 100, Time::from_millis(1), &ack)
            });
            assert_eq!(ends, expected, "{version:?}");
        }
    }
}
