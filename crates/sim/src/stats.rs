// SPDX-License-Identifier: Apache-2.0
//! The statistics of all tables: plain functions over slices, summed in order, so that the same
//! numbers give the same bits. Values must not be NaN. No values give `None`.

use serde::Serialize;

/// Arithmetic mean.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

fn squares(values: &[f64], mean: f64) -> f64 {
    values
        .iter()
        .map(|value| (value - mean) * (value - mean))
        .sum()
}

/// Standard deviation of a sample (n - 1 in the denominator); 0 for a single value.
pub fn standard_deviation(values: &[f64]) -> Option<f64> {
    let degrees = values.len().saturating_sub(1).max(1);
    mean(values).map(|mean| (squares(values, mean) / degrees as f64).sqrt())
}

/// Variance of a whole population (n in the denominator).
pub fn population_variance(values: &[f64]) -> Option<f64> {
    mean(values).map(|mean| squares(values, mean) / values.len() as f64)
}

/// Values in ascending order, as [`quantile`] needs them.
pub fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted
}

/// The value below which a share `q` (0 to 1) lies, linear between the two nearest (type 7 of
/// Hyndman and Fan, as R and NumPy do). `sorted` ascends.
pub fn quantile(sorted: &[f64], q: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let position = q.clamp(0.0, 1.0) * last as f64;
    let below = position as usize;
    let (low, high) = (sorted[below], sorted[(below + 1).min(last)]);
    Some(low + (position - below as f64) * (high - low))
}

/// Jain's fairness index, (sum x)^2 / (n sum x^2): 1 if all are equal, 1/n if one has all. All zero
/// counts as equal.
pub fn jain_index(values: &[f64]) -> Option<f64> {
    let sum: f64 = values.iter().sum();
    let squares: f64 = values.iter().map(|value| value * value).sum();
    match values.len() {
        0 => None,
        _ if squares == 0.0 => Some(1.0),
        n => Some(sum * sum / (n as f64 * squares)),
    }
}

/// Unfairness as in HCF §V-B: the variance over all flows of the packets each sent in the measured time.
pub fn unfairness(packets_sent: &[u64]) -> Option<f64> {
    let values: Vec<f64> = packets_sent.iter().map(|&packets| packets as f64).collect();
    population_variance(&values)
}

/// Starvation as in HCF §V-B: the percentage of flows that sent no packet in the measured time.
pub fn starvation_percent(packets_sent: &[u64]) -> Option<f64> {
    let starved = packets_sent.iter().filter(|&&packets| packets == 0).count();
    (!packets_sent.is_empty()).then(|| 100.0 * starved as f64 / packets_sent.len() as f64)
}

/// What tables show of a set of values.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// How many.
    #[serde(skip)]
    pub count: usize,
    /// Arithmetic mean.
    pub mean: f64,
    /// Standard deviation, n - 1 in the denominator.
    pub sd: f64,
    /// Median.
    pub p50: f64,
    /// 90th percentile.
    pub p90: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile.
    pub p99: f64,
    /// 99.9th percentile.
    pub p999: f64,
    /// Largest.
    pub max: f64,
}

impl Summary {
    /// The summary of `values`, in any order; the sums are taken in ascending order.
    pub fn of(values: &[f64]) -> Option<Summary> {
        let sorted = sorted(values);
        Some(Summary {
            count: sorted.len(),
            mean: mean(&sorted)?,
            sd: standard_deviation(&sorted)?,
            p50: quantile(&sorted, 0.5)?,
            p90: quantile(&sorted, 0.9)?,
            p95: quantile(&sorted, 0.95)?,
            p99: quantile(&sorted, 0.99)?,
            p999: quantile(&sorted, 0.999)?,
            max: quantile(&sorted, 1.0)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(got: Option<f64>, expected: f64) -> bool {
        got.is_some_and(|got| (got - expected).abs() <= 1e-12 * expected.abs())
    }

    #[test]
    fn nothing_gives_none() {
        assert_eq!(mean(&[]), None);
        assert_eq!(standard_deviation(&[]), None);
        assert_eq!(quantile(&[], 0.5), None);
        assert_eq!(jain_index(&[]), None);
        assert_eq!(unfairness(&[]), None);
        assert_eq!(starvation_percent(&[]), None);
        assert_eq!(Summary::of(&[]), None);
    }

    #[test]
    fn by_hand() {
        let values = [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0];
        assert_eq!(mean(&values), Some(5.0));
        assert_eq!(population_variance(&values), Some(4.0));
        assert!(near(standard_deviation(&values), (32.0f64 / 7.0).sqrt()));
        assert_eq!(standard_deviation(&[3.0]), Some(0.0));
        assert!(near(jain_index(&[1.0, 2.0, 3.0]), 36.0 / 42.0));
        assert_eq!(jain_index(&[1.0, 0.0, 0.0, 0.0]), Some(0.25));
        assert_eq!(jain_index(&[0.0, 0.0]), Some(1.0));
        assert_eq!(unfairness(&[0, 10, 20, 10]), Some(50.0));
        assert_eq!(starvation_percent(&[0, 10, 0, 1]), Some(50.0));
    }

    /// As `numpy.quantile` gives them.
    #[test]
    fn quantiles_of_type_7() {
        let values = [1.0, 2.0, 4.0, 8.0];
        assert_eq!(quantile(&values, 0.0), Some(1.0));
        assert_eq!(quantile(&values, 0.5), Some(3.0));
        assert!(near(quantile(&values, 0.9), 6.8));
        assert_eq!(quantile(&values, 1.0), Some(8.0));
        assert_eq!(quantile(&[5.0], 0.99), Some(5.0));
    }

    #[test]
    fn summary_of_one_to_a_hundred() {
        let values: Vec<f64> = (1..=100).rev().map(f64::from).collect();
        let summary = Summary::of(&values).expect("not empty");
        assert_eq!(
            (summary.count, summary.mean, summary.p50, summary.max),
            (100, 50.5, 50.5, 100.0)
        );
        assert!(near(Some(summary.sd), (101.0f64 * 100.0 / 12.0).sqrt()));
        assert!(near(Some(summary.p90), 90.1));
        assert!(near(Some(summary.p95), 95.05));
        assert!(near(Some(summary.p99), 99.01));
        assert!(near(Some(summary.p999), 99.901));
    }
}
