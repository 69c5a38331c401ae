// SPDX-License-Identifier: Apache-2.0
//! How far the window offered may grow: to the share of the buffer's memory that is payload (Linux's
//! `scaling_ratio`), and with that memory to twice what the application reads per round trip, and more while that
//! increases (`tcp_rcv_space_adjust`).

use crate::packet::{Packet, flag};
use crate::tcp::config::{AckRules, Config};
use crate::tcp::segment::timestamp;
use penstock_scenario::units::Time;

/// The share of the memory that is payload is in units of 1 / 256.
const WHOLE: u64 = 256;

/// What was read in the round trip under way, and in the one before.
#[derive(Debug)]
pub(super) struct Tuning {
    /// The buffer, bytes, and what each segment takes of it in addition to its payload.
    memory: u64,
    overhead: u16,
    /// The share that is payload.
    ratio: u64,
    /// Payload of a full segment.
    mss: u16,
    /// Bytes of a round trip that the limit has room for.
    space: u64,
    /// RCV.NXT and the time when the round trip under way began.
    from: u64,
    since: Time,
    /// Round trip; zero before the first. By timestamps it is whole milliseconds, and, where `is_smoothed`, an
    /// average that a shorter one replaces (`tcp_rcv_rtt_update`), also of a window without them; else the smallest.
    round_trip: Time,
    is_smoothed: bool,
    /// The timestamp last echoed: each shows one round trip.
    last_echo: u32,
    /// Without timestamps a round trip passes until a window that is offered at `edge_since` has
    /// arrived up to `edge`.
    edge: u64,
    edge_since: Time,
    /// The peer's full segment as far as seen.
    full_segment: u16,
}

impl Tuning {
    /// For a connection that is established `now` at RCV.NXT `nxt`, offering `window`; `mss`: payload
    /// of a full segment. What was recorded with linux-3.18 is not smoothed.
    pub fn new(cfg: &Config, mss: u16, window: u32, nxt: u64, now: Time) -> Tuning {
        let has_overhead = cfg.segment_overhead > 0;
        Tuning {
            memory: cfg.receive_memory.into(),
            overhead: cfg.segment_overhead,
            ratio: if has_overhead { WHOLE / 2 } else { WHOLE },
            mss,
            space: (10 * mss as u64).min(window as u64).max(1),
            from: nxt,
            since: now,
            round_trip: Time::ZERO,
            is_smoothed: cfg.ack_rules == AckRules::Linux,
            last_echo: 0,
            edge: nxt + window as u64,
            edge_since: now,
            full_segment: mss.min(536),
        }
    }

    /// The round trip; zero before the first.
    pub fn round_trip(&self) -> Time {
        self.round_trip
    }

    /// Payload of a full segment, bytes.
    pub fn mss(&self) -> u16 {
        self.mss
    }

    /// The share of the memory that is payload, bytes.
    fn share(&self) -> u32 {
        self.share_of(self.memory)
    }

    fn share_of(&self, memory: u64) -> u32 {
        (memory * self.ratio / WHOLE).min(u32::MAX as u64) as u32
    }

    /// What the window may grow to before the first segment: one stays in reserve (`tcp_init_buffer_space`).
    pub fn first_limit(&self) -> u32 {
        let mss = self.mss as u32;
        match self.overhead {
            0 => self.share(),
            _ => self.share().saturating_sub(mss).max(2 * mss),
        }
    }

    /// The share, where a segment longer than all before has changed it (`tcp_measure_rcv_mss`).
    pub fn measure(&mut self, segment: &Packet) -> Option<u32> {
        let payload = segment.payload;
        if self.overhead == 0 || payload <= self.full_segment {
            return None;
        }
        self.full_segment = payload;
        let ratio = payload as u64 * WHOLE / (payload as u64 + self.overhead as u64);
        let has_changed = std::mem::replace(&mut self.ratio, ratio) != ratio;
        has_changed.then(|| self.share())
    }

    /// What a segment that is not read yet leaves of the share, bytes (`tcp_space`).
    pub fn room_after(&self, segment: &Packet) -> u32 {
        let taken = match self.overhead {
            0 => 0,
            overhead => segment.payload as u64 + overhead as u64,
        };
        self.share_of(self.memory.saturating_sub(taken))
    }

    /// The application reads `segment`, and all before RCV.NXT `nxt`, while `window` is offered;
    /// returns what the window may grow to, as far as this shows.
    pub fn on_arrival(&mut self, segment: &Packet, nxt: u64, window: u32, now: Time) -> u32 {
        let is_stamped = segment.has(flag::TIMESTAMPS);
        if is_stamped && let Some(sample) = self.stamps(segment, now) {
            self.note(sample, true);
        }
        // By whole milliseconds most round trips of a data center show nothing.
        if (self.is_smoothed || !is_stamped)
            && let Some(sample) = self.windows(nxt, window, now)
        {
            self.note(sample, false);
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
        let limit = 2 * read + 2 * growth;
        self.memory = self.memory.max(limit * WHOLE / self.ratio);
        limit.min(u32::MAX as u64) as u32
    }

    fn note(&mut self, sample: Time, is_stamped: bool) {
        if self.round_trip == Time::ZERO || sample < self.round_trip {
            self.round_trip = sample;
        } else if self.is_smoothed && is_stamped {
            let eighth = Time(self.round_trip.0 / 8);
            self.round_trip = self.round_trip - eighth + Time(sample.0 / 8);
        }
    }

    /// The round trip that a segment's timestamp shows (`tcp_rcv_rtt_measure_ts`).
    fn stamps(&mut self, segment: &Packet, now: Time) -> Option<Time> {
        let is_repeated = std::mem::replace(&mut self.last_echo, segment.ts_ecr) == segment.ts_ecr;
        if segment.payload < self.full_segment || self.is_smoothed && is_repeated {
            return None;
        }
        self.full_segment = segment.payload;
        let millis = timestamp(now).wrapping_sub(segment.ts_ecr);
        let is_long = millis > 0 || !self.is_smoothed;
        is_long.then(|| Time::from_millis(millis.max(1).into()))
    }

    /// What a whole window takes to arrive is no less than a round trip (`tcp_rcv_rtt_measure`).
    fn windows(&mut self, nxt: u64, window: u32, now: Time) -> Option<Time> {
        if nxt < self.edge {
            return None;
        }
        let round_trip = now - self.edge_since;
        self.edge = nxt + window as u64;
        self.edge_since = now;
        Some(round_trip.max(Time::from_micros(1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START_MS: u64 = 100;

    fn read(tuning: &mut Tuning, ms: u64, nxt: u64) -> u32 {
        let segment = stamped((START_MS + ms - 10) as u32);
        tuning.on_arrival(&segment, nxt, 64_000, Time::from_millis(START_MS + ms))
    }

    fn stamped(ts_ecr: u32) -> Packet {
        Packet {
            payload: 1000,
            flags: flag::ACK | flag::TIMESTAMPS,
            ts_ecr,
            ..Packet::default()
        }
    }

    /// As captured on veth, where the window ends at 80 or 81 kB, or at 70 kB for segments of 1,024 bytes.
    #[test]
    fn the_share_is_that_of_the_longest_segment() {
        let mut tuning = Tuning::new(&Config::linux(), 1448, 64_240, 1, Time::ZERO);
        assert_eq!(tuning.share(), 64 << 10, "half before the first");
        assert_eq!(tuning.first_limit(), 64_088);
        let of = |payload| Packet {
            payload,
            ..Packet::default()
        };
        assert_eq!(tuning.measure(&of(100)), None);
        assert_eq!(tuning.measure(&of(730)), Some(60_928));
        assert_eq!(tuning.measure(&of(1024)), Some(72_192));
        assert_eq!(tuning.measure(&of(294)), None);
        assert_eq!(tuning.room_after(&of(1024)), 71_169);
        assert_eq!(tuning.measure(&of(1448)), Some(82_944));
    }

    /// 173,760 bytes of window are 320,018 of memory, where 139 of 256 are payload.
    #[test]
    fn a_longer_segment_raises_the_share_of_memory_that_has_grown() {
        let start = Time::from_millis(START_MS);
        let mut tuning = Tuning::new(&Config::linux(), 1448, 64_000, 1, start);
        assert_eq!(tuning.measure(&stamped(0)), Some(71_168));
        assert_eq!(read(&mut tuning, 10, 10_001), 0);
        assert_eq!(read(&mut tuning, 20, 38_961), 2 * 28_960 + 2 * 57_920);
        assert_eq!(tuning.measure(&stamped(0)), None, "no longer than before");
        let full = Packet {
            payload: 1448,
            ..Packet::default()
        };
        assert_eq!(tuning.measure(&full), Some(202_511));
    }

    #[test]
    fn linux_3_18_keeps_no_account_of_memory() {
        let mut tuning = Tuning::new(&Config::linux_3_18(), 1448, 29_200, 1, Time::ZERO);
        assert_eq!(tuning.first_limit(), 187_520);
        let segment = stamped(0);
        assert_eq!(tuning.measure(&segment), None);
        assert_eq!(tuning.room_after(&segment), 187_520);
    }

    #[test]
    fn the_limit_follows_what_is_read_per_round_trip() {
        let mut tuning = Tuning::new(
            &Config::linux(),
            1000,
            64_000,
            1,
            Time::from_millis(START_MS),
        );
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

    /// Of 16, 8 and 16 ms; the last is shown twice, and one is below a millisecond.
    #[test]
    fn round_trips_by_timestamps_are_averaged_unless_shorter() {
        let round_trips = |config| {
            let mut tuning = Tuning::new(&config, 1000, 64_000, 1, Time::ZERO);
            [(26, 10), (34, 26), (50, 34), (51, 34), (60, 60)].map(|(ms, echo)| {
                tuning.on_arrival(&stamped(echo), 1, 64_000, Time::from_millis(ms));
                tuning.round_trip.as_micros()
            })
        };
        assert_eq!(
            round_trips(Config::linux()),
            [16_000, 8_000, 9_000, 9_000, 9_000]
        );
        assert_eq!(
            round_trips(Config::linux_3_18()),
            [16_000, 8_000, 8_000, 8_000, 1_000]
        );
    }

    #[test]
    fn without_timestamps_a_round_trip_is_a_window_of_data() {
        let mut tuning = Tuning::new(&Config::linux(), 1000, 20_000, 1, Time::ZERO);
        let segment = Packet {
            payload: 1000,
            ..Packet::default()
        };
        let mut read = |ms, nxt| tuning.on_arrival(&segment, nxt, 20_000, Time::from_millis(ms));
        assert_eq!(read(5, 15_001), 0);
        assert_eq!(read(10, 20_001), 2 * 20_000 + 2 * 40_000);
    }
}
