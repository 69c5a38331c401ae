// SPDX-License-Identifier: Apache-2.0
//! Distribution of the longest queue of each millisecond.

use serde::Serialize;

/// Quantiles of the longest queue of each millisecond in which something left, bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Quantiles {
    /// Half of the milliseconds had at most this.
    pub p50: u32,
    /// Nine of ten had at most this.
    pub p90: u32,
    /// 99 of a hundred had at most this.
    pub p99: u32,
    /// None had more.
    pub max: u32,
}

impl Quantiles {
    /// By the nearest rank; all 0 without values.
    pub fn of(mut values: Vec<u32>) -> Quantiles {
        values.sort_unstable();
        let rank = |percent: usize| {
            let rank = (values.len() * percent).div_ceil(100).max(1);
            values.get(rank - 1).copied().unwrap_or(0)
        };
        Quantiles {
            p50: rank(50),
            p90: rank(90),
            p99: rank(99),
            max: rank(100),
        }
    }
}

/// Milliseconds whose longest queue was in a range of sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Bin {
    /// Lower bound, bytes.
    pub from_bytes: u32,
    /// Upper bound, exclusive; that of the last bin is `u32::MAX`.
    pub below_bytes: u32,
    /// Number of milliseconds.
    pub milliseconds: u64,
}

/// A bin for each tenth of the buffer, and one for longer queues.
pub fn histogram(queues: &[u32], buffer_bytes: u32) -> Vec<Bin> {
    let buffer = u64::from(buffer_bytes.max(1));
    let edge = |tenth: u64| (buffer * tenth / 10) as u32;
    let mut bins: Vec<Bin> = (0..=10)
        .map(|tenth| Bin {
            from_bytes: edge(tenth),
            below_bytes: if tenth == 10 {
                u32::MAX
            } else {
                edge(tenth + 1)
            },
            milliseconds: 0,
        })
        .collect();
    for queue in queues {
        let bin = bins.partition_point(|bin| bin.from_bytes <= *queue) - 1;
        bins[bin].milliseconds += 1;
    }
    bins
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_the_nearest() {
        let found = Quantiles::of((1..=100).rev().collect());
        assert_eq!(
            (found.p50, found.p90, found.p99, found.max),
            (50, 90, 99, 100)
        );
        assert_eq!(Quantiles::of(vec![7]).p50, 7);
        assert_eq!(Quantiles::of(Vec::new()), Quantiles::default());
    }

    #[test]
    fn every_millisecond_is_in_one_bin() {
        let bins = histogram(&[0, 9, 10, 99, 100, 101, u32::MAX], 100);
        assert_eq!(bins.len(), 11);
        let counts: Vec<u64> = bins.iter().map(|bin| bin.milliseconds).collect();
        assert_eq!(counts, [2, 1, 0, 0, 0, 0, 0, 0, 0, 1, 3]);
        assert_eq!(
            histogram(&[5], 0)
                .iter()
                .map(|b| b.milliseconds)
                .sum::<u64>(),
            1
        );
    }
}
