// SPDX-License-Identifier: Apache-2.0
//! The last seconds of a port: the longest queue between readings, and rates.

use std::collections::VecDeque;

use super::TICK;
use crate::port::counters::{self, Named};
use crate::skel::port::types::port_counters;
use crate::status::reading::Reading;

/// Columns of the sparkline, one for each reading.
pub const COLUMNS: usize = 60;

/// Time over which rates are computed.
const SPAN_NS: u64 = 1_000_000_000;

/// Counters of credit whose rates are shown.
const GRANTS: [&str; 2] = ["grants", "grants_resent"];

#[derive(Clone, Copy)]
struct Snapshot {
    at_ns: u64,
    counters: port_counters,
    /// None if the qdisc could not be read.
    drops: Option<u32>,
    /// Grants, and reminders of those without effect; none if windows are no credit.
    grants: Option<[u64; 2]>,
}

/// A port over time.
pub struct History {
    snapshots: VecDeque<Snapshot>,
    depth: Vec<u64>,
    peaks: VecDeque<u32>,
    /// When those of `peaks` that are known were read.
    read_ns: VecDeque<u64>,
    /// The last reading.
    pub now: Reading,
}

impl History {
    /// Starts with a reading.
    pub fn new(at_ns: u64, reading: Reading) -> History {
        let mut history = History {
            snapshots: VecDeque::new(),
            depth: reading.depth.clone(),
            peaks: VecDeque::from(vec![0; COLUMNS]),
            read_ns: VecDeque::from(vec![at_ns]),
            now: Reading::default(),
        };
        history.keep(at_ns, reading);
        history
    }

    /// Adds the next reading. `peak` is the longest queue in between, bytes;
    /// if none, the lower bound of its bucket in the histogram is used, at least half of it.
    pub fn push(&mut self, at_ns: u64, reading: Reading, peak: Option<u32>) {
        let coarse = || highest(&self.depth, &reading.depth);
        let peak = peak.unwrap_or_else(coarse);
        self.peaks.pop_front();
        self.peaks.push_back(peak);
        if self.read_ns.len() > COLUMNS {
            self.read_ns.pop_front();
        }
        self.read_ns.push_back(at_ns);
        self.keep(at_ns, reading);
    }

    fn keep(&mut self, at_ns: u64, reading: Reading) {
        self.snapshots.push_back(Snapshot {
            at_ns,
            counters: reading.counters,
            drops: reading.drops,
            grants: reading
                .credit
                .as_ref()
                .map(|credit| GRANTS.map(|name| credit.counters.get(name).copied().unwrap_or(0))),
        });
        let is_old = |next: &Snapshot| next.at_ns + SPAN_NS <= at_ns;
        while self.snapshots.get(1).is_some_and(is_old) {
            self.snapshots.pop_front();
        }
        self.depth.clone_from(&reading.depth);
        self.now = reading;
    }

    /// The time that `peaks` covers, seconds: readings of many ports take longer than their interval.
    pub fn span_s(&self) -> f64 {
        let intervals = self.read_ns.len() - 1;
        match (self.read_ns.front(), self.read_ns.back()) {
            (Some(first), Some(last)) if intervals > 0 => {
                (last - first) as f64 / 1e9 * COLUMNS as f64 / intervals as f64
            }
            _ => COLUMNS as f64 * TICK.as_secs_f64(),
        }
    }

    /// The longest queue between readings, bytes, the newest last.
    pub fn peaks(&self) -> Vec<u32> {
        self.peaks.iter().copied().collect()
    }

    /// Rates per second of all counters and of `drops` where these are known, over the last second or what
    /// there is of it.
    pub fn rates(&self) -> Named<f64> {
        let (Some(first), Some(last)) = (self.snapshots.front(), self.snapshots.back()) else {
            return Named::new();
        };
        let seconds = (last.at_ns.saturating_sub(first.at_ns) as f64 / 1e9).max(1e-9);
        let [before, after] = [first, last].map(|snapshot| counters::named(&snapshot.counters));
        let mut rates = counters::rates(&before, &after, seconds);
        // Drops restart at 0 with another qdisc.
        if let (Some(before), Some(after)) = (first.drops, last.drops) {
            let drops = (after.wrapping_sub(before) as i32).max(0);
            rates.insert("drops".to_owned(), f64::from(drops) / seconds);
        }
        if let (Some(before), Some(after)) = (first.grants, last.grants) {
            for (name, (before, after)) in GRANTS.iter().zip(before.iter().zip(after)) {
                let rate = after.saturating_sub(*before) as f64 / seconds;
                rates.insert((*name).to_owned(), rate);
            }
        }
        rates
    }
}

/// Lower bound of the highest bucket that grew, bytes.
fn highest(before: &[u64], after: &[u64]) -> u32 {
    let grown = before
        .iter()
        .zip(after)
        .rposition(|(before, after)| after > before);
    match grown {
        None | Some(0) => 0,
        Some(bucket) => 1u32.checked_shl(bucket as u32 - 1).unwrap_or(u32::MAX),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(acks: u64, drops: u32) -> Reading {
        let mut reading = Reading {
            drops: Some(drops),
            depth: vec![0; 33],
            ..Reading::default()
        };
        reading.counters.acks = acks;
        reading
    }

    #[test]
    fn rates_are_over_the_last_second() {
        let mut history = History::new(0, reading(0, u32::MAX - 4));
        assert_eq!(history.rates()["acks"], 0.0);
        for tenth in 1..=30u64 {
            // 100 ACKs a second for two seconds, then 1000; 5 drops in the last.
            let acks = tenth * 10 + tenth.saturating_sub(20) * 90;
            let drops = if tenth > 25 { 0 } else { u32::MAX - 4 };
            history.push(
                tenth * 100_000_000,
                reading(acks, drops),
                Some(tenth as u32),
            );
        }
        let rates = history.rates();
        assert_eq!((rates["acks"], rates["drops"]), (1000.0, 5.0));
        let peaks = history.peaks();
        assert_eq!(
            (
                peaks.len(),
                peaks[COLUMNS - 1],
                peaks[COLUMNS - 30],
                peaks[0]
            ),
            (60, 30, 1, 0)
        );
    }

    #[test]
    fn counters_that_restarted_are_no_rate() {
        let mut history = History::new(0, reading(1_000_000, 7));
        history.push(100_000_000, reading(3, 0), Some(0));
        let rates = history.rates();
        assert_eq!((rates["acks"], rates["drops"]), (0.0, 0.0));
    }

    #[test]
    fn drops_have_a_rate_only_if_both_ends_are_known() {
        let unknown = Reading {
            drops: None,
            ..reading(0, 0)
        };
        for (first, last) in [(unknown.clone(), reading(0, 7)), (reading(0, 7), unknown)] {
            let mut history = History::new(0, first);
            history.push(100_000_000, last, Some(0));
            assert_eq!(history.rates().get("drops"), None);
        }
    }

    #[test]
    fn the_span_is_that_of_the_readings_however_far_apart() {
        let mut history = History::new(0, reading(0, 0));
        assert_eq!(history.span_s(), 6.0);
        for half in 1..=100u64 {
            history.push(half * 500_000_000, reading(0, 0), Some(0));
            assert_eq!(history.span_s(), 30.0);
        }
        assert_eq!(history.read_ns.len(), COLUMNS + 1);
    }

    #[test]
    fn without_records_the_histogram_gives_the_peak() {
        let mut history = History::new(0, reading(0, 0));
        let mut later = reading(0, 0);
        later.depth[17] = 1;
        later.depth[3] = 9;
        history.push(100_000_000, later.clone(), None);
        assert_eq!(history.peaks()[COLUMNS - 1], 65_536);
        history.push(200_000_000, later, None);
        assert_eq!(history.peaks()[COLUMNS - 1], 0);
        assert_eq!(highest(&[0; 33], &[1; 33]), 1 << 31);
    }
}
