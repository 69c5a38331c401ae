// SPDX-License-Identifier: Apache-2.0
//! The numbers of a recording.

use indexmap::IndexMap;
use serde::Serialize;

use super::bursts::{self, Burst, Line};
use super::credit::Credit;
use super::fan_in::{FanIn, Transfer, begun_within_a_millisecond};
use super::quantiles::{Bin, Quantiles, histogram};
use crate::port::config::OBSERVE;
use crate::port::counters::scheme_names;
use crate::port::records::Sample;

/// Columns of the timeline.
const COLUMNS: u64 = 60;

/// A recording of a port.
#[derive(Debug, Default)]
pub struct Look {
    /// The port's name.
    pub interface: String,
    /// The scheme attached to it; `observe` changes nothing.
    pub scheme: String,
    /// CLOCK_MONOTONIC.
    pub began_ns: u64,
    /// CLOCK_MONOTONIC.
    pub ended_ns: u64,
    /// Buffer and rate.
    pub line: Line,
    /// By time.
    pub samples: Vec<Sample>,
    /// By begin.
    pub transfers: Vec<Transfer>,
    /// Segments repeated after their flow was silent for 190 ms or more.
    pub timeouts_seen: u64,
    /// Records that could not be read.
    pub unreadable: u64,
    /// The sides on which packets passed that the programs did not see.
    pub blind: Vec<&'static str>,
}

/// Numbers of connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Flows {
    /// Most connections counted at one time.
    pub counted: u32,
    /// Connections that began.
    pub begun: u64,
    /// Most connections that began in one millisecond.
    pub begun_in_a_millisecond: u32,
}

/// Numbers of transfers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Transfers {
    /// Transfers open at some time of the recording.
    pub count: u64,
    /// Of these, those whose end was not seen.
    pub unfinished: u64,
    /// Payload, repeated segments left out.
    pub bytes: u64,
    /// Most whose data arrived within the time in which a full buffer drains.
    pub at_once: u32,
    /// Most that began within one millisecond.
    pub begun_in_a_millisecond: u32,
}

/// The numbers of a recording, as in JSON.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The port.
    pub interface: String,
    /// The scheme attached to it.
    pub scheme: String,
    /// Length of the recording.
    pub seconds: f64,
    /// Its buffer.
    pub buffer_bytes: u32,
    /// Its rate, if known.
    pub rate_bps: Option<u64>,
    /// Milliseconds in which something left.
    pub active_milliseconds: u64,
    /// Packets that wanted to leave.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Packets that the qdisc dropped; one that GSO is to split counts as one, but as its segments in
    /// `packets`.
    pub drops: u64,
    /// Data or SYNs repeated after their flow was silent for 190 ms or more: almost always a
    /// retransmission timeout, which Linux never sets below 200 ms.
    pub timeouts_seen: u64,
    /// Why the programs cannot read its queue, which then counts as empty; none if they can.
    pub queue_unseen: Option<String>,
    /// The sides on which packets passed that the programs did not see: what is reported lacks these.
    pub blind: Vec<&'static str>,
    /// The longest queue of each active millisecond.
    pub queue_bytes: Quantiles,
    /// The same in tenths of the buffer.
    pub histogram: Vec<Bin>,
    /// Longest queue in each sixtieth of the recording.
    pub timeline_bytes: Vec<u32>,
    /// Connections.
    pub flows: Flows,
    /// What they sent.
    pub transfers: Transfers,
    /// ACKs that came in by the port.
    pub acks: u64,
    /// Of these, those whose window the scheme lowered.
    pub acks_rewritten: u64,
    /// Those that each scheme would have rewritten, while observed: on this very traffic, not on
    /// what would be sent under it.
    pub acks_would_rewrite: IndexMap<&'static str, u64>,
    /// What Grant would have done, while observed; none if the rate is not known.
    pub grant_would: Option<Credit>,
    /// Milliseconds in a row with a long queue; times since the recording began.
    pub bursts: Vec<Burst>,
    /// Records of the ring buffers that could not be read.
    pub unreadable_records: u64,
}

impl Report {
    /// Computes the numbers of a recording.
    pub fn of(look: &Look) -> Report {
        let samples = &look.samples;
        let fan_in = FanIn::of(&look.transfers, look.line.hold_ns());
        let queues: Vec<u32> = samples.iter().map(|sample| sample.queue_max).collect();
        let total = |field: fn(&Sample) -> u32| samples.iter().map(|s| u64::from(field(s))).sum();
        let most = |field: fn(&Sample) -> u32| samples.iter().map(field).max().unwrap_or(0);
        let transfers = transfers(look, &fan_in);
        let acks: u64 = total(|s| s.acks);
        Report {
            interface: look.interface.clone(),
            scheme: look.scheme.clone(),
            seconds: look.ended_ns.saturating_sub(look.began_ns) as f64 / 1e9,
            buffer_bytes: look.line.buffer_bytes,
            rate_bps: look.line.rate_bps,
            active_milliseconds: samples.len() as u64,
            packets: total(|s| s.packets),
            bytes: total(|s| s.bytes),
            drops: drops(samples),
            timeouts_seen: look.timeouts_seen,
            queue_unseen: None,
            blind: look.blind.clone(),
            queue_bytes: Quantiles::of(queues.clone()),
            histogram: histogram(&queues, look.line.buffer_bytes),
            timeline_bytes: timeline(look),
            flows: Flows {
                counted: most(|s| s.flows),
                begun: total(|s| s.flows_begun),
                begun_in_a_millisecond: most(|s| s.flows_begun),
            },
            transfers,
            acks,
            // A SYN is rewritten too, and is no ACK.
            acks_rewritten: acks.min(total(|s| s.acks_rewritten)),
            acks_would_rewrite: would_rewrite(samples)
                .map(|(scheme, count)| (scheme, acks.min(count)))
                .collect(),
            grant_would: (look.scheme == OBSERVE)
                .then(|| Credit::of(&look.transfers, look.line))
                .flatten(),
            bursts: bursts(look, &fan_in),
            unreadable_records: look.unreadable,
        }
    }

    /// Flows that sent at once: transfers, or connections if no transfers were recorded.
    pub fn at_once(&self) -> u32 {
        match self.transfers.count {
            0 => self.flows.counted,
            _ => self.transfers.at_once,
        }
    }
}

/// Pairs of a scheme and the ACKs that it would have rewritten.
fn would_rewrite(samples: &[Sample]) -> impl Iterator<Item = (&'static str, u64)> {
    let names = scheme_names().enumerate().skip(1);
    names.map(|(scheme, name)| {
        let counts = samples.iter().map(|s| u64::from(s.would_rewrite[scheme]));
        (name, counts.sum())
    })
}

fn drops(samples: &[Sample]) -> u64 {
    let pairs = samples.windows(2);
    pairs
        .map(|pair| u64::from(pair[1].drops.wrapping_sub(pair[0].drops)))
        .sum()
}

fn bursts(look: &Look, fan_in: &FanIn) -> Vec<Burst> {
    let mut bursts = bursts::find(&look.samples, look.line);
    for burst in &mut bursts {
        if !look.transfers.is_empty() {
            burst.flows = fan_in.most(burst.start_ns, burst.end_ns());
        }
        burst.start_ns = burst.start_ns.saturating_sub(look.began_ns);
    }
    bursts
}

fn transfers(look: &Look, fan_in: &FanIn) -> Transfers {
    let all = &look.transfers;
    let at_once = fan_in.most(look.began_ns, look.ended_ns);
    Transfers {
        count: all.len() as u64,
        unfinished: all.iter().filter(|t| !t.is_finished).count() as u64,
        bytes: all.iter().map(|t| t.bytes).sum(),
        at_once,
        begun_in_a_millisecond: begun_within_a_millisecond(all),
    }
}

fn timeline(look: &Look) -> Vec<u32> {
    let span = look.ended_ns.saturating_sub(look.began_ns).max(1);
    let mut columns = vec![0; COLUMNS as usize];
    for sample in &look.samples {
        let into = sample.time_ns.saturating_sub(look.began_ns).min(span - 1);
        let column = (u128::from(into) * u128::from(COLUMNS) / u128::from(span)) as usize;
        columns[column] = sample.queue_max.max(columns[column]);
    }
    columns
}

#[cfg(test)]
#[path = "report_tests.rs"]
pub(super) mod tests;
