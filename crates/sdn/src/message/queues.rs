// SPDX-License-Identifier: Apache-2.0
//! The queues of a switch's ports. Most are empty most of the time, and a switch sends them thousands of
//! times a second, so they are packed: ports whose numbers follow each other are a run, and empty queues
//! in it are counted. Each report has all ports, so that one that is lost leaves nothing wrong.

use crate::codec::{Input, Output};

/// The queues of a switch's ports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueReport {
    /// The switch, `datapath_id`.
    pub datapath: u64,
    /// Number and queue of each port, bytes. In the order of numbers it is the shortest.
    pub queues: Vec<(u32, u32)>,
}

/// Most ports of a report: more than an Open vSwitch has.
const MAX_PORTS: usize = 1 << 16;

impl QueueReport {
    /// Runs: how far the first port is from where the last run ended, the number of ports, and their
    /// queues. An empty queue is followed by the number of further empty ones.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.u64(self.datapath);
        let mut next = 0u32;
        let follows =
            |(one, _): &(u32, u32), (other, _): &(u32, u32)| one.wrapping_add(1) == *other;
        for run in self.queues.chunk_by(follows) {
            let first = run[0].0;
            out.short(first.wrapping_sub(next));
            out.short(run.len() as u32);
            next = first.wrapping_add(run.len() as u32);
            for same in run.chunk_by(|(_, one), (_, other)| (*one, *other) == (0, 0)) {
                out.short(same[0].1);
                if same[0].1 == 0 {
                    out.short(same.len() as u32 - 1);
                }
            }
        }
    }

    pub(super) fn read(mut bytes: Input<'_>) -> Option<QueueReport> {
        let datapath = bytes.u64()?;
        let (mut queues, mut next) = (Vec::new(), 0u32);
        while !bytes.0.is_empty() {
            next = next.wrapping_add(bytes.short()?);
            let mut left = bytes.short()?;
            while left > 0 {
                let queue = bytes.short()?;
                let same = match queue {
                    0 => bytes.short()?.checked_add(1)?,
                    _ => 1,
                };
                left = left.checked_sub(same)?;
                if queues.len() + same as usize > MAX_PORTS {
                    return None;
                }
                for _ in 0..same {
                    queues.push((next, queue));
                    next = next.wrapping_add(1);
                }
            }
        }
        Some(QueueReport { datapath, queues })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(report: &QueueReport) -> Vec<u8> {
        let mut bytes = Vec::new();
        report.write(&mut bytes);
        bytes
    }

    #[test]
    fn a_switch_without_queues_takes_four_bytes_and_its_number() {
        let report = |queue: fn(u32) -> u32| QueueReport {
            datapath: 7,
            queues: (1..=48).map(|port| (port, queue(port))).collect(),
        };
        for (queue, bytes) in [
            ((|_| 0) as fn(u32) -> u32, 2 + 2),
            (|port| if port == 9 { 1500 } else { 0 }, 2 + 2 + 2 + 2),
            (|_| 1500, 2 + 48 * 2),
            (|_| 100_000, 2 + 48 * 3),
        ] {
            let report = report(queue);
            assert_eq!(written(&report).len(), 8 + bytes);
            assert_eq!(QueueReport::read(Input(&written(&report))), Some(report));
        }
    }

    #[test]
    fn a_report_of_more_ports_than_there_are_is_refused() {
        let mut bytes = vec![0; 8];
        for number in [1, u32::MAX, 0, u32::MAX - 1] {
            bytes.short(number);
        }
        assert_eq!(QueueReport::read(Input(&bytes)), None);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            datapath in any::<u64>(),
            queues in proptest::collection::vec(
                (
                    prop_oneof![0u32..20, any::<u32>()],
                    prop_oneof![Just(0u32), 0u32..200_000, any::<u32>()],
                ),
                0..60,
            ),
        ) {
            let report = QueueReport { datapath, queues };
            prop_assert_eq!(QueueReport::read(Input(&written(&report))), Some(report));
        }

        #[test]
        fn any_report_is_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            let read = QueueReport::read(Input(&bytes));
            prop_assert!(read.is_none_or(|report| report.queues.len() <= MAX_PORTS));
        }
    }
}
