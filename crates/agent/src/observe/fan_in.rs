// SPDX-License-Identifier: Apache-2.0
//! Fan-in: how many flows send at once.

use super::bursts::MILLISECOND_NS;
use crate::port::records::FlowKey;

/// A burst of data of one flow: a request's answer, or all that a connection sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// Its first data, CLOCK_MONOTONIC.
    pub begun_ns: u64,
    /// Its last data; the last so far, if it is unfinished.
    pub ended_ns: u64,
    /// Payload, repeated segments left out.
    pub bytes: u64,
    /// The flow.
    pub flow: FlowKey,
    /// Whether its end was seen.
    pub is_finished: bool,
}

/// Number of transfers at the port, as a function of time.
pub struct FanIn {
    /// Pairs of an instant and the number from then on, by time.
    steps: Vec<(u64, u32)>,
}

impl FanIn {
    /// Counts `transfers`. A short one passes in an instant and then waits in the queue, so each
    /// counts until `hold_ns` after its last data.
    pub fn of(transfers: &[Transfer], hold_ns: u64) -> FanIn {
        let end = |t: &Transfer| t.ended_ns.max(t.begun_ns).saturating_add(hold_ns);
        // At the same instant begins come first, so that one that ends overlaps one that begins.
        let mut edges: Vec<(u64, bool)> = transfers
            .iter()
            .flat_map(|t| [(t.begun_ns, false), (end(t), true)])
            .collect();
        edges.sort_unstable();
        let mut open = 0u32;
        let steps = edges.into_iter().map(|(time, is_end)| {
            open = if is_end { open - 1 } else { open + 1 };
            (time, open)
        });
        FanIn {
            steps: steps.collect(),
        }
    }

    /// Most transfers at the port at one instant of `[from_ns, until_ns)`.
    pub fn most(&self, from_ns: u64, until_ns: u64) -> u32 {
        let first = self.steps.partition_point(|(time, _)| *time < from_ns);
        let before = first.checked_sub(1).map_or(0, |step| self.steps[step].1);
        let within = self.steps[first..].iter();
        within
            .take_while(|(time, _)| *time < until_ns)
            .map(|(_, open)| *open)
            .fold(before, u32::max)
    }
}

/// Most transfers that begin within one millisecond, wherever it starts.
pub fn begun_within_a_millisecond(transfers: &[Transfer]) -> u32 {
    let mut starts: Vec<u64> = transfers.iter().map(|t| t.begun_ns).collect();
    starts.sort_unstable();
    let mut first = 0;
    let mut most = 0;
    for (last, start) in starts.iter().enumerate() {
        while starts[first] + MILLISECOND_NS <= *start {
            first += 1;
        }
        most = most.max(last + 1 - first);
    }
    most as u32
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A transfer of `bytes` from host `source`, in milliseconds.
    pub fn transfer(source: u8, begun_ms: u64, ended_ms: u64, bytes: u64) -> Transfer {
        Transfer {
            begun_ns: begun_ms * MILLISECOND_NS,
            ended_ns: ended_ms * MILLISECOND_NS,
            bytes,
            flow: FlowKey {
                source: ([10, 0, 0, source].into(), 80),
                destination: ([10, 0, 1, 1].into(), 40_000),
                network: 0,
            },
            is_finished: true,
        }
    }

    #[test]
    fn the_most_at_once_is_that_of_the_span_asked_for() {
        let transfers = [
            transfer(1, 10, 20, 1),
            transfer(2, 15, 30, 1),
            transfer(3, 20, 25, 1),
            transfer(4, 50, 50, 1),
        ];
        let fan_in = FanIn::of(&transfers, 0);
        let most = |from, until| fan_in.most(from * MILLISECOND_NS, until * MILLISECOND_NS);
        assert_eq!(most(0, 100), 3);
        assert_eq!(most(0, 10), 0);
        assert_eq!(most(12, 15), 1);
        assert_eq!(most(26, 29), 1);
        assert_eq!(most(50, 51), 1);
        assert_eq!(most(51, 100), 0);
        assert_eq!(FanIn::of(&[], 5).most(0, u64::MAX), 0);
    }

    #[test]
    fn what_waits_in_the_queue_is_still_there() {
        let at_once = [
            transfer(1, 10, 10, 1),
            transfer(2, 14, 14, 1),
            transfer(3, 20, 20, 1),
        ];
        let most = |hold_ms| FanIn::of(&at_once, hold_ms * MILLISECOND_NS).most(0, u64::MAX);
        assert_eq!((most(3), most(4), most(10)), (1, 2, 3));
    }

    #[test]
    fn starts_are_counted_in_a_sliding_millisecond() {
        let mut transfers = [1, 2, 3, 4].map(|source| transfer(source, 5, 9, 1));
        assert_eq!(begun_within_a_millisecond(&transfers), 4);
        transfers[3].begun_ns += MILLISECOND_NS;
        assert_eq!(begun_within_a_millisecond(&transfers), 3);
        assert_eq!(begun_within_a_millisecond(&[]), 0);
    }
}
