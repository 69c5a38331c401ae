// SPDX-License-Identifier: Apache-2.0
//! What a run found: per traffic, per port, per flow.

use crate::controller::ControllerCounters;
use crate::fabric::Fabric;
use crate::queue::DropReason;
use crate::scenario::{Scenario, Traffic};
use crate::simulation::{ENDLESS, Record, Simulation};
use crate::stats::{self, Summary};
use crate::units::Time;
use indexmap::IndexMap;
use serde::Serialize;

/// The results of one run.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// By traffic, in the scenario's order; datagrams have none.
    pub groups: IndexMap<String, GroupSummary>,
    /// By port, those measured.
    pub ports: IndexMap<String, PortSummary>,
    /// Packets lost at all ports together.
    pub drops: u64,
    /// What the controller did; `None` without one.
    pub controller: Option<ControllerCounters>,
    /// Every transfer, in the order of their starts.
    pub flows: Vec<FlowRecord>,
    /// The measured queues over time.
    pub queues: Vec<QueueSample>,
    /// What the run cost; the only part that differs between equal runs.
    pub performance: Performance,
}

/// A set of times, seconds.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Distribution {
    /// Arithmetic mean.
    pub mean: f64,
    /// Standard deviation (n - 1).
    pub sd: f64,
    /// Median.
    pub p50: f64,
    /// 90th percentile.
    pub p90: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile.
    pub p99: f64,
    /// Largest.
    pub max: f64,
}

impl From<Summary> for Distribution {
    fn from(s: Summary) -> Distribution {
        Distribution {
            mean: s.mean,
            sd: s.sd,
            p50: s.p50,
            p90: s.p90,
            p95: s.p95,
            p99: s.p99,
            max: s.max,
        }
    }
}

/// Goodput of a traffic's transfers, bits per second.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Goodput {
    /// Mean over the transfers.
    pub mean: f64,
    /// Smallest.
    pub min: f64,
    /// Largest.
    pub max: f64,
}

/// The transfers of one traffic.
#[derive(Clone, Debug, Serialize)]
pub struct GroupSummary {
    /// Transfers begun.
    pub flows: usize,
    /// Transfers whose last byte arrived.
    pub finished: usize,
    /// Flow completion times of the finished, from the start (SYN or request) to the last byte at
    /// the receiving application. `None` where none finished.
    pub fct_s: Option<Distribution>,
    /// Transfers that took longer than their deadline, or have not finished though it is past.
    /// `None` where there is no deadline.
    pub missed_deadlines: Option<usize>,
    /// Payload delivered in the measured time over the time the transfer was under way in it.
    pub goodput_bps: Option<Goodput>,
    /// Jain's index of these goodputs.
    pub jain: Option<f64>,
    /// Segments sent again.
    pub retransmits: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Transfers with at least one timeout, of data or handshake.
    pub stalled: usize,
    /// Handshakes that timed out.
    pub syn_timeouts: u64,
    /// Packets lost, either direction.
    pub drops: u64,
    /// Share of transfers of which no packet arrived in the measured time (HCF §V-B).
    pub starved: f64,
    /// Variance over the transfers of the packets that arrived in the measured time (HCF §V-B).
    pub packets_variance: f64,
    /// Transfers in the first of ten equal bins from 0 to the most packets of any (HCF Fig. 4).
    pub first_bin: usize,
    /// Longest time between two data packets at the receiver, of each transfer.
    pub longest_silence_s: Option<Distribution>,
    /// Bytes of an epoch over the time until its last transfer finished, mean over the epochs
    /// (HCF §V-A); `None` unless a synchronized traffic finished.
    pub block_goodput_bps: Option<f64>,
}

/// A measured port.
#[derive(Clone, Debug, Serialize)]
pub struct PortSummary {
    /// Packets lost.
    pub drops: u64,
    /// The same by reason.
    pub drops_by_reason: IndexMap<&'static str, u64>,
    /// Share of the measured time in which the port was sending.
    pub utilization: f64,
    /// The queue, the packet in transmission included.
    pub queue_bytes: QueueSummary,
    /// Packets sent.
    pub sent_packets: u64,
    /// Bytes sent.
    pub sent_bytes: u64,
    /// Packets marked congestion experienced.
    pub marks: u64,
    /// Windows lowered in ACKs.
    pub rewrites: u64,
    /// Times that clamping began.
    pub clamps: u64,
    /// Windows that the floor kept from being lower.
    pub floors: u64,
}

/// A queue's length, bytes.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct QueueSummary {
    /// Mean of the samples.
    pub mean: f64,
    /// 99th percentile of the samples.
    pub p99: f64,
    /// Longest at any time.
    pub max: u64,
}

/// One transfer.
#[derive(Clone, Debug, Serialize)]
pub struct FlowRecord {
    /// Name of the traffic.
    pub traffic: String,
    /// Number of the client within the traffic.
    pub flow: u32,
    /// Host that sends.
    pub source: String,
    /// Host that receives.
    pub destination: String,
    /// When it began, seconds.
    pub start_s: f64,
    /// When it finished, seconds.
    pub end_s: Option<f64>,
    /// Bytes to move; `None`: endless.
    pub bytes: Option<u64>,
    /// Bytes delivered.
    pub delivered_bytes: u64,
    /// Flow completion time, seconds.
    pub fct_s: Option<f64>,
    /// Goodput in the measured time, bits per second.
    pub goodput_bps: Option<f64>,
    /// Data packets that arrived in the measured time.
    pub packets: u64,
    /// Segments sent again.
    pub retransmits: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Handshakes that timed out.
    pub syn_timeouts: u64,
    /// Packets lost, either direction.
    pub drops: u64,
    /// Longest time between two data packets, seconds.
    pub longest_silence_s: f64,
    /// Whether the deadline was missed; `None` without one.
    pub missed_deadline: Option<bool>,
}

/// A queue at an instant.
#[derive(Clone, Debug, Serialize)]
pub struct QueueSample {
    /// Index among the outcome's ports.
    pub port: u32,
    /// Seconds.
    pub time_s: f64,
    /// Bytes, the packet in transmission included.
    pub bytes: u64,
    /// Packets, likewise.
    pub packets: u32,
}

/// What the run cost.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Performance {
    /// Seconds from the scenario to the results.
    pub wall_s: f64,
    /// Seconds in the event loop.
    pub loop_s: f64,
    /// Packets sent on links, data and ACKs.
    pub packet_hops: u64,
    /// Packet-hops per second of the event loop.
    pub packet_hops_per_s: f64,
    /// Largest memory of the process so far.
    pub peak_rss_bytes: u64,
}

impl Performance {
    pub(super) fn measure(wall_s: f64, loop_s: f64, packet_hops: u64) -> Performance {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kibibytes =
            peak.and_then(|text| text.trim().trim_end_matches(" kB").parse::<u64>().ok());
        Performance {
            wall_s,
            loop_s,
            packet_hops,
            packet_hops_per_s: packet_hops as f64 / loop_s.max(1e-9),
            peak_rss_bytes: kibibytes.unwrap_or(0) * 1024,
        }
    }
}

/// Gathers the results of a finished simulation. `measured`: links of the measured ports.
pub(super) fn collect(
    scenario: &Scenario,
    fabric: &Fabric,
    simulation: &Simulation,
    measured: &[u32],
    performance: Performance,
) -> Outcome {
    let mut groups = IndexMap::new();
    let mut flows = Vec::with_capacity(simulation.records.len());
    for (index, (name, traffic)) in scenario.traffic.iter().enumerate() {
        let records: Vec<&Record> = simulation
            .records
            .iter()
            .filter(|record| record.traffic == index as u32)
            .collect();
        if !matches!(traffic, Traffic::Udp(_)) {
            groups.insert(name.clone(), summarize(scenario, traffic, &records));
        }
    }
    for record in &simulation.records {
        if let Some((name, traffic)) = scenario.traffic.get_index(record.traffic as usize) {
            flows.push(flow_record(scenario, fabric, name, traffic, record));
        }
    }
    let queues = simulation.queues.samples.iter().map(|sample| QueueSample {
        port: measured
            .iter()
            .position(|link| *link == sample.link)
            .unwrap_or(0) as u32,
        time_s: sample.time.as_secs_f64(),
        bytes: sample.bytes,
        packets: sample.packets,
    });
    let queues: Vec<QueueSample> = queues.collect();
    let ports = measured.iter().enumerate().map(|(index, link)| {
        let lengths = queues.iter().filter(|sample| sample.port == index as u32);
        let lengths: Vec<f64> = lengths.map(|sample| sample.bytes as f64).collect();
        (
            fabric.port_name(*link),
            port_summary(scenario, fabric, simulation, *link, &lengths),
        )
    });
    let all_links = 0..fabric.links.len() as u32;
    Outcome {
        groups,
        ports: ports.collect(),
        drops: all_links
            .map(|link| {
                simulation
                    .network
                    .counters(link, scenario.duration)
                    .drops
                    .iter()
                    .sum::<u64>()
            })
            .sum(),
        controller: simulation
            .controller
            .as_ref()
            .map(|controller| controller.counters()),
        flows,
        queues,
        performance,
    }
}

fn deadline(traffic: &Traffic) -> Option<Time> {
    match traffic {
        Traffic::Bulk(t) => t.deadline,
        Traffic::Incast(t) => t.deadline,
        Traffic::Poisson(t) => t.deadline,
        Traffic::Trace(t) => t.deadline,
        Traffic::Udp(_) => None,
    }
}

fn missed(scenario: &Scenario, traffic: &Traffic, record: &Record) -> Option<bool> {
    let end = record.end.unwrap_or(scenario.duration);
    deadline(traffic).map(|deadline| end - record.start > deadline)
}

/// Payload rate in the measured time; `None` if the transfer was not under way in it.
fn goodput(scenario: &Scenario, record: &Record) -> Option<f64> {
    let from = record.start.max(scenario.measure.from);
    let span = record.end.unwrap_or(scenario.duration).saturating_sub(from);
    let bytes = record.total.since(&record.before).delivered;
    (span > Time::ZERO).then(|| bytes as f64 * 8.0 / span.as_secs_f64())
}

fn summarize(scenario: &Scenario, traffic: &Traffic, records: &[&Record]) -> GroupSummary {
    let fct = |record: &&Record| record.end.map(|end| (end - record.start).as_secs_f64());
    let times: Vec<f64> = records.iter().filter_map(fct).collect();
    let rates: Vec<f64> = records
        .iter()
        .filter_map(|record| goodput(scenario, record))
        .collect();
    let packets: Vec<u64> = records
        .iter()
        .map(|r| r.total.since(&r.before).packets)
        .collect();
    let silences: Vec<f64> = records
        .iter()
        .map(|record| record.silence.as_secs_f64())
        .collect();
    let missed: Vec<bool> = records
        .iter()
        .filter_map(|r| missed(scenario, traffic, r))
        .collect();
    let most = packets.iter().copied().max().unwrap_or(0);
    GroupSummary {
        flows: records.len(),
        finished: times.len(),
        fct_s: Summary::of(&times).map(Distribution::from),
        missed_deadlines: deadline(traffic)
            .map(|_| missed.iter().filter(|missed| **missed).count()),
        goodput_bps: Summary::of(&rates).map(|summary| Goodput {
            mean: summary.mean,
            min: rates.iter().copied().fold(f64::INFINITY, f64::min),
            max: summary.max,
        }),
        jain: stats::jain_index(&rates),
        retransmits: records.iter().map(|record| record.total.retransmits).sum(),
        timeouts: records.iter().map(|record| record.total.timeouts).sum(),
        stalled: records
            .iter()
            .filter(|r| r.total.timeouts + r.total.syn_timeouts > 0)
            .count(),
        syn_timeouts: records.iter().map(|record| record.total.syn_timeouts).sum(),
        drops: records.iter().map(|record| record.total.drops).sum(),
        starved: stats::starvation_percent(&packets).unwrap_or(0.0) / 100.0,
        packets_variance: stats::unfairness(&packets).unwrap_or(0.0),
        first_bin: packets.iter().filter(|count| **count * 10 < most).count(),
        longest_silence_s: Summary::of(&silences).map(Distribution::from),
        block_goodput_bps: block_goodput(traffic, records),
    }
}

fn block_goodput(traffic: &Traffic, records: &[&Record]) -> Option<f64> {
    let Traffic::Incast(spec) = traffic else {
        return None;
    };
    let mut goodputs = Vec::new();
    for epoch in 0..u64::from(spec.epochs) {
        let first = spec.start + Time(epoch * spec.every.unwrap_or(Time::ZERO).0);
        let next = spec.every.map_or(Time::NEVER, |every| first + every);
        let is_last = epoch + 1 == u64::from(spec.epochs);
        let block = records
            .iter()
            .filter(|r| r.start >= first && (is_last || r.start < next));
        let ends: Option<Vec<Time>> = block.clone().map(|record| record.end).collect();
        let last = ends?.into_iter().max()?;
        let bytes: u64 = block.map(|record| record.bytes).sum();
        goodputs.push(bytes as f64 * 8.0 / (last - first).as_secs_f64());
    }
    stats::mean(&goodputs)
}

fn flow_record(
    scenario: &Scenario,
    fabric: &Fabric,
    name: &str,
    traffic: &Traffic,
    record: &Record,
) -> FlowRecord {
    let host = |index: u32| fabric.nodes[index as usize].clone();
    FlowRecord {
        traffic: name.to_owned(),
        flow: record.number,
        source: host(record.source),
        destination: host(record.destination),
        start_s: record.start.as_secs_f64(),
        end_s: record.end.map(Time::as_secs_f64),
        bytes: (record.bytes < ENDLESS).then_some(record.bytes),
        delivered_bytes: record.total.delivered,
        fct_s: record.end.map(|end| (end - record.start).as_secs_f64()),
        goodput_bps: goodput(scenario, record),
        packets: record.total.since(&record.before).packets,
        retransmits: record.total.retransmits,
        timeouts: record.total.timeouts,
        syn_timeouts: record.total.syn_timeouts,
        drops: record.total.drops,
        longest_silence_s: record.silence.as_secs_f64(),
        missed_deadline: missed(scenario, traffic, record),
    }
}

fn port_summary(
    scenario: &Scenario,
    fabric: &Fabric,
    simulation: &Simulation,
    link: u32,
    lengths: &[f64],
) -> PortSummary {
    let counters = simulation.network.counters(link, scenario.duration);
    let sorted = stats::sorted(lengths);
    let measured = scenario.duration - scenario.measure.from;
    let sending = fabric.links[link as usize]
        .rate
        .transmission(counters.measured_bytes);
    let by_reason = DropReason::ALL
        .iter()
        .map(|r| (r.name(), counters.drops[*r as usize]));
    PortSummary {
        drops: counters.drops.iter().sum(),
        drops_by_reason: by_reason.collect(),
        utilization: sending.as_secs_f64() / measured.as_secs_f64(),
        queue_bytes: QueueSummary {
            mean: stats::mean(&sorted).unwrap_or(0.0),
            p99: stats::quantile(&sorted, 0.99).unwrap_or(0.0),
            max: counters.peak_bytes,
        },
        sent_packets: counters.sent_packets,
        sent_bytes: counters.sent_bytes,
        marks: counters.marks,
        rewrites: counters.window.rewrites,
        clamps: counters.window.clamps,
        floors: counters.window.floors,
    }
}
