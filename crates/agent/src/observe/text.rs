// SPDX-License-Identifier: Apache-2.0
//! A report as text.

use std::fmt::Write;

use super::credit::Credit;
use super::report::Report;
use super::verdict::{Assessment, rewritten};
use crate::format::{bytes, count, percent, plural, rate, sparkline, time};

/// Bursts listed: the worst, by drops and peak.
const BURSTS: usize = 10;

/// Columns of the longest bar.
const BAR: u64 = 40;

/// Renders the report as text, after the verdict.
pub fn render(assessment: &Assessment) -> String {
    let report = &assessment.report;
    let mut text = format!("{}\n\n", assessment.verdict);
    if report.active_milliseconds == 0 {
        return text;
    }
    let mut line = |name: &str, value: String| {
        let _ = writeln!(text, "{name:<10}{value}");
    };
    line("port", port(report));
    line("traffic", traffic(report));
    line("queue", queue(report));
    line("flows", flows(report));
    line("transfers", transfers(report));
    line("ACKs", acks(report));
    if let Some(credit) = &report.grant_would {
        line("grant", grant(credit));
    }
    let _ = write!(text, "\n{}\n{}", timeline(report), histogram(report));
    if !report.bursts.is_empty() {
        let _ = write!(text, "\n{}", bursts(report));
    }
    if report.unreadable_records > 0 {
        let lost = plural(report.unreadable_records, "record");
        let _ = writeln!(text, "\n{lost} could not be read and were left out.");
    }
    text
}

fn port(report: &Report) -> String {
    let rate = report.rate_bps.map_or("rate unknown".to_owned(), rate);
    let buffer = bytes(report.buffer_bytes.into());
    format!(
        "{}, {rate}, buffer {buffer}, scheme {}",
        report.interface, report.scheme
    )
}

fn traffic(report: &Report) -> String {
    let offered = (report.bytes as f64 * 8.0 / report.seconds.max(1e-9)) as u64;
    // A dropped GSO packet counts once, however many segments it had.
    let bound = if report.drops > 0 { "at least " } else { "" };
    format!(
        "{}, {} ({} offered), {} dropped ({bound}{}), {}",
        plural(report.packets, "packet"),
        bytes(report.bytes),
        rate(offered),
        count(report.drops),
        percent(report.drops, report.packets),
        plural(report.timeouts_seen, "timeout"),
    )
}

fn queue(report: &Report) -> String {
    let queue = report.queue_bytes;
    let of = |value: u32| percent(value.into(), report.buffer_bytes.into());
    format!(
        "p50 {} ({}), p90 {} ({}), p99 {} ({}), max {} ({})",
        bytes(queue.p50.into()),
        of(queue.p50),
        bytes(queue.p90.into()),
        of(queue.p90),
        bytes(queue.p99.into()),
        of(queue.p99),
        bytes(queue.max.into()),
        of(queue.max),
    )
}

fn flows(report: &Report) -> String {
    let flows = report.flows;
    format!(
        "at most {} connected, {} begun, at most {} in one ms",
        count(flows.counted.into()),
        count(flows.begun),
        count(flows.begun_in_a_millisecond.into()),
    )
}

fn transfers(report: &Report) -> String {
    let transfers = report.transfers;
    format!(
        "{} of {} in all, at most {} at once, {} begun in one ms, {} unfinished",
        count(transfers.count),
        bytes(transfers.bytes),
        count(transfers.at_once.into()),
        count(transfers.begun_in_a_millisecond.into()),
        count(transfers.unfinished),
    )
}

fn acks(report: &Report) -> String {
    format!("{} came in; {}", count(report.acks), rewritten(report))
}

fn grant(credit: &Credit) -> String {
    format!(
        "lets {} send at a time; {} wait above 1 ms, {} on average, {} at most",
        plural(credit.flows_at_a_time, "flow"),
        count(credit.waiting),
        time(credit.wait_mean_ns),
        time(credit.wait_max_ns),
    )
}

fn timeline(report: &Report) -> String {
    let step = report.seconds / report.timeline_bytes.len().max(1) as f64;
    format!(
        "longest queue per {}, full height = the buffer\n|{}|\n",
        time((step * 1e9) as u64),
        sparkline(&report.timeline_bytes, report.buffer_bytes),
    )
}

fn histogram(report: &Report) -> String {
    let most = report
        .histogram
        .iter()
        .map(|bin| bin.milliseconds)
        .max()
        .unwrap_or(0)
        .max(1);
    let mut text = format!(
        "share of the {} ms in which something left, by their longest queue\n",
        count(report.active_milliseconds)
    );
    for (tenth, bin) in report.histogram.iter().enumerate() {
        let range = match tenth {
            10 => "100 % and more".to_owned(),
            _ => format!("{:>3} - {:>3} %", tenth * 10, tenth * 10 + 10),
        };
        let bar = (bin.milliseconds * BAR).div_ceil(most) as usize;
        let share = percent(bin.milliseconds, report.active_milliseconds);
        let row = format!("  {range:<14} {share:>6} {}", "#".repeat(bar));
        let _ = writeln!(text, "{}", row.trim_end());
    }
    text
}

fn bursts(report: &Report) -> String {
    let mut worst: Vec<_> = report.bursts.iter().collect();
    worst.sort_by_key(|burst| std::cmp::Reverse((burst.drops, burst.peak_bytes, burst.length_ns)));
    worst.truncate(BURSTS);
    worst.sort_by_key(|burst| burst.start_ns);
    let title = match report.bursts.len() {
        all if all > BURSTS => format!("the {BURSTS} worst of {all} bursts"),
        all => plural(all as u64, "burst"),
    };
    let mut text = format!(
        "{title}\n  {:>9} {:>8} {:>8} {:>8} {:>6} {:>6} {:>6}\n",
        "start", "length", "peak", "arrived", "flows", "new", "drops"
    );
    for burst in worst {
        let _ = writeln!(
            text,
            "  {:>7.3} s {:>8} {:>8} {:>8} {:>6} {:>6} {:>6}",
            burst.start_ns as f64 / 1e9,
            time(burst.length_ns),
            bytes(burst.peak_bytes.into()),
            bytes(burst.bytes),
            count(burst.flows.into()),
            count(burst.flows_begun.into()),
            count(burst.drops.into()),
        );
    }
    text
}
