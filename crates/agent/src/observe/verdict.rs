// SPDX-License-Identifier: Apache-2.0
//! The verdict on a recording: one sentence for the operator.

use serde::Serialize;

use super::report::Report;
use crate::format::{bytes, count, percent, plural, time};
use crate::port::config::OBSERVE;
use crate::status::WHY_BLIND;

/// Segments that a new connection sends at once (RFC 6928), of 1460 bytes each.
const INITIAL_WINDOW_BYTES: u32 = 10 * 1460;

/// Kinds of traffic at a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Packets passed that the programs did not see.
    Blind,
    /// Nothing left by it.
    Idle,
    /// No burst, no drop.
    Calm,
    /// No drop, and the queue cannot be read.
    Unseen,
    /// More flows at once than the buffer has room for their initial windows, and bursts.
    Incast,
    /// The queue is a quarter of the buffer or more for half of the time, by few flows.
    StandingQueue,
    /// Bursts of few flows.
    Bursts,
    /// Drops without a visible burst: another queue drops, or the buffer is smaller than
    /// configured.
    Drops,
}

/// Number of flows from which their initial windows together overflow a buffer.
pub fn incast_flows(buffer_bytes: u32) -> u32 {
    (buffer_bytes / INITIAL_WINDOW_BYTES + 1).max(2)
}

/// A report with the verdict on it, as in JSON.
#[derive(Clone, Debug, Serialize)]
pub struct Assessment {
    /// One line for the operator.
    pub verdict: String,
    /// The kind of traffic.
    pub kind: Kind,
    /// The numbers.
    #[serde(flatten)]
    pub report: Report,
}

impl Assessment {
    /// Judges a report.
    pub fn of(report: Report) -> Assessment {
        let kind = kind(&report);
        Assessment {
            verdict: sentence(kind, &report),
            kind,
            report,
        }
    }
}

fn kind(report: &Report) -> Kind {
    let is_standing = report.queue_bytes.p50 >= (report.buffer_bytes / 4).max(1);
    let is_wide = report.at_once() >= incast_flows(report.buffer_bytes);
    if !report.blind.is_empty() {
        return Kind::Blind;
    }
    match (
        report.active_milliseconds,
        report.bursts.len(),
        report.drops,
    ) {
        (0, _, _) => Kind::Idle,
        (_, 0, 0) if report.queue_unseen.is_some() => Kind::Unseen,
        (_, 0, 0) => Kind::Calm,
        (_, 0, _) => Kind::Drops,
        _ if is_wide => Kind::Incast,
        _ if is_standing => Kind::StandingQueue,
        _ => Kind::Bursts,
    }
}

/// The kind of traffic, the evidence, and what a scheme did or would have done.
fn sentence(kind: Kind, report: &Report) -> String {
    let span = time((report.seconds * 1e9) as u64);
    let name = match kind {
        Kind::Blind => {
            let sides = report.blind.join(" and ");
            return format!("blind at {sides}: in {span} {WHY_BLIND}");
        }
        Kind::Idle => return format!("idle: nothing left by {} in {span}", report.interface),
        Kind::Calm => {
            return format!(
                "calm: in {span} the queue reached {} and nothing was dropped; {}",
                longest_queue(report),
                acks(report),
            );
        }
        Kind::Unseen => {
            return format!(
                "unseen: in {span} nothing was dropped, but the queue cannot be read; {}",
                acks(report),
            );
        }
        Kind::Drops if report.queue_unseen.is_some() => {
            return format!(
                "drops: {} in {span}; the queue cannot be read",
                count(report.drops)
            );
        }
        Kind::Drops => {
            return format!(
                "drops: {} in {span}, though the queue reached only {}; is the buffer as large as configured?",
                count(report.drops),
                longest_queue(report),
            );
        }
        Kind::Incast => "incast",
        Kind::StandingQueue => "standing queue",
        Kind::Bursts => "bursts",
    };
    let longest = report.bursts.iter().map(|burst| burst.length_ns).max();
    let queue = match report.queue_unseen {
        Some(_) => "a queue that cannot be read".to_owned(),
        None => format!("queue up to {}", longest_queue(report)),
    };
    let timeouts = match report.timeouts_seen {
        0 => String::new(),
        timeouts => format!(", {}", plural(timeouts, "timeout")),
    };
    format!(
        "{name}: {} in {span} (longest {}), {} at once, {queue}, {}{timeouts}; {}",
        plural(report.bursts.len() as u64, "burst"),
        time(longest.unwrap_or(0)),
        plural(report.at_once().into(), "flow"),
        plural(report.drops, "drop"),
        acks(report),
    )
}

/// The longest queue, of the buffer.
fn longest_queue(report: &Report) -> String {
    let share = percent(report.queue_bytes.max.into(), report.buffer_bytes.into());
    format!("{share} of {}", bytes(report.buffer_bytes.into()))
}

fn acks(report: &Report) -> String {
    if report.acks == 0 {
        return "no ACK came in by it".to_owned();
    }
    format!("{} of the ACKs", rewritten(report))
}

/// The share of ACKs that the scheme rewrote, or that schemes would have rewritten.
pub fn rewritten(report: &Report) -> String {
    let share = |part| percent(part, report.acks);
    if report.scheme != OBSERVE {
        return format!("{} rewrote {}", report.scheme, share(report.acks_rewritten));
    }
    let mut verb = " would have rewritten";
    let all = report.acks_would_rewrite.iter();
    let shares: Vec<String> = all
        .map(|(scheme, count)| format!("{scheme}{} {}", std::mem::take(&mut verb), share(*count)))
        .collect();
    shares.join(", ")
}
