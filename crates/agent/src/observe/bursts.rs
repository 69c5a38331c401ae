// SPDX-License-Identifier: Apache-2.0
//! Bursts, found in the samples of a port.
//!
//! A burst begins with a millisecond whose queue reaches a quarter of the buffer, or in which more
//! arrives than the line carries by more than an eighth of the buffer. It ends before the first
//! millisecond whose queue stays at or below a tenth: HSCC's two thresholds, so that a queue that
//! sways around one of them is one burst, not many. In a millisecond without a sample nothing left;
//! the queue is assumed to have drained at line rate.

use crate::port::records::Sample;

/// Length of a sample.
pub const MILLISECOND_NS: u64 = 1_000_000;

/// The port's configured buffer and rate.
#[derive(Clone, Copy, Debug, Default)]
pub struct Line {
    /// Buffer of the port's queue, bytes.
    pub buffer_bytes: u32,
    /// Rate at which it drains, bits per second, if known.
    pub rate_bps: Option<u64>,
}

impl Line {
    /// Bytes that the line carries in `ns`; no limit if its rate is unknown.
    fn carries(self, ns: u64) -> u64 {
        self.rate_bps.map_or(u64::MAX, |rate| {
            (u128::from(rate) * u128::from(ns) / 8_000_000_000) as u64
        })
    }

    /// Time in which a full buffer drains; at least a millisecond, the resolution of samples.
    pub fn hold_ns(self) -> u64 {
        let bits = u128::from(self.buffer_bytes) * 8;
        let hold = self
            .rate_bps
            .map_or(0, |rate| bits * 1_000_000_000 / u128::from(rate.max(1)));
        (hold as u64).max(MILLISECOND_NS)
    }

    fn opens(self, sample: &Sample) -> bool {
        let excess = u64::from(sample.bytes).saturating_sub(self.carries(MILLISECOND_NS));
        sample.queue_max >= (self.buffer_bytes / 4).max(1)
            || excess > u64::from(self.buffer_bytes / 8)
    }

    fn is_calm(self, queue_bytes: u32) -> bool {
        queue_bytes <= self.buffer_bytes / 10
    }
}

/// Milliseconds in a row with a long queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Burst {
    /// When its first millisecond began, CLOCK_MONOTONIC until the report makes it relative.
    pub start_ns: u64,
    /// From there to the end of its last millisecond.
    pub length_ns: u64,
    /// Longest queue, bytes.
    pub peak_bytes: u32,
    /// Bytes that arrived in it.
    pub bytes: u64,
    /// Flows that sent in it at once; connections, where transfers are not recorded.
    pub flows: u32,
    /// Flows that began in it.
    pub flows_begun: u32,
    /// Packets dropped in it.
    pub drops: u32,
}

impl Burst {
    /// When its last millisecond ended.
    pub fn end_ns(&self) -> u64 {
        self.start_ns + self.length_ns
    }

    fn begun(sample: &Sample) -> Burst {
        Burst {
            start_ns: sample.time_ns,
            length_ns: 0,
            peak_bytes: 0,
            bytes: 0,
            flows: 0,
            flows_begun: 0,
            drops: 0,
        }
    }

    fn take(&mut self, sample: &Sample, drops: u32) {
        self.length_ns = sample.time_ns.saturating_sub(self.start_ns) + MILLISECOND_NS;
        self.peak_bytes = self.peak_bytes.max(sample.queue_max);
        self.bytes += u64::from(sample.bytes);
        self.flows = self.flows.max(sample.flows);
        self.flows_begun = self.flows_begun.saturating_add(sample.flows_begun);
        self.drops = self.drops.saturating_add(drops);
    }
}

/// Whether the queue ran empty between two samples that are not neighbours.
fn drained(line: Line, before: &Sample, after: &Sample) -> bool {
    let silent_ns = after
        .time_ns
        .saturating_sub(before.time_ns + MILLISECOND_NS);
    let left = u64::from(before.queue_last).saturating_sub(line.carries(silent_ns));
    silent_ns > 0 && line.is_calm(left as u32)
}

/// The bursts of samples in the order of time.
pub fn find(samples: &[Sample], line: Line) -> Vec<Burst> {
    let mut bursts = Vec::new();
    let mut open: Option<Burst> = None;
    let mut before: Option<&Sample> = None;
    for sample in samples {
        let drops = before.map_or(0, |before| sample.drops.wrapping_sub(before.drops));
        let is_over = line.is_calm(sample.queue_max) && !line.opens(sample)
            || before.is_some_and(|before| drained(line, before, sample));
        if is_over {
            bursts.extend(open.take());
        }
        if open.is_none() && line.opens(sample) {
            open = Some(Burst::begun(sample));
        }
        if let Some(burst) = &mut open {
            burst.take(sample, drops);
        }
        before = Some(sample);
    }
    bursts.extend(open);
    bursts
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: Line = Line {
        buffer_bytes: 100_000,
        rate_bps: Some(200_000_000),
    };

    /// Milliseconds with these queues, `None`: nothing left.
    fn samples(queues: &[Option<u32>]) -> Vec<Sample> {
        let found = queues.iter().enumerate().filter_map(|(ms, queue)| {
            queue.map(|queue| Sample {
                time_ns: (ms as u64 + 1) * MILLISECOND_NS,
                queue_max: queue,
                queue_last: queue,
                flows: 4,
                bytes: 10_000,
                ..Sample::default()
            })
        });
        found.collect()
    }

    #[test]
    fn a_queue_that_sways_between_the_thresholds_is_one_burst() {
        let queues = [1, 26, 15, 30, 11, 9, 0].map(|share| Some(share * 1000));
        let bursts = find(&samples(&queues), LINE);
        assert_eq!(bursts.len(), 1);
        let burst = bursts[0];
        assert_eq!(burst.start_ns, 2 * MILLISECOND_NS);
        assert_eq!(burst.length_ns, 4 * MILLISECOND_NS);
        assert_eq!((burst.peak_bytes, burst.flows), (30_000, 4));
        assert_eq!(burst.bytes, 40_000);
    }

    #[test]
    fn below_the_upper_threshold_none_begins() {
        let queues = [24_999, 20_000, 11_000].map(Some);
        assert_eq!(find(&samples(&queues), LINE), []);
    }

    #[test]
    fn a_silence_in_which_the_queue_drains_ends_it() {
        // 25 kB drain in a millisecond: of 60 kB, 35 are left after one, 10 after two.
        let one = [Some(60_000), None, Some(60_000)];
        assert_eq!(find(&samples(&one), LINE).len(), 1);
        let two = [Some(60_000), None, None, Some(60_000)];
        assert_eq!(find(&samples(&two), LINE).len(), 2);
        // Without a rate nothing is known of a silence but that nothing came.
        let unknown = Line {
            rate_bps: None,
            ..LINE
        };
        assert_eq!(find(&samples(&one), unknown).len(), 2);
    }

    #[test]
    fn more_than_the_line_carries_is_a_burst_before_the_queue_shows_it() {
        let mut flood = samples(&[Some(0), Some(0), Some(0)]);
        flood[1].bytes = 25_000 + 12_501;
        let bursts = find(&flood, LINE);
        assert_eq!(bursts.len(), 1);
        assert_eq!(bursts[0].start_ns, 2 * MILLISECOND_NS);
        flood[1].bytes = 25_000 + 12_500;
        assert_eq!(find(&flood, LINE), []);
    }

    #[test]
    fn drops_are_differences_of_a_counter_that_wraps() {
        let mut wrapping = samples(&[Some(50_000), Some(90_000), Some(80_000)]);
        for (sample, drops) in wrapping.iter_mut().zip([u32::MAX - 1, 3, 10]) {
            sample.drops = drops;
        }
        assert_eq!(find(&wrapping, LINE)[0].drops, 12);
    }
}
