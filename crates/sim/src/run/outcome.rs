// SPDX-License-Identifier: Apache-2.0
//! What a run found: per traffic, per port, per flow.

use super::slow::SlowFlows;
use super::traced::{EventRow, PacketRow};
use crate::controller::ControllerCounters;
use crate::stats::{self, Summary};
use crate::window::WindowCounters;
use indexmap::IndexMap;
use penstock_scenario::units::Time;
use serde::Serialize;

/// The results of one run.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// By traffic, in the scenario's order, each followed by its classes of lengths; datagrams have
    /// none.
    pub groups: IndexMap<String, GroupSummary>,
    /// By port, those measured.
    pub ports: IndexMap<String, PortSummary>,
    /// Packets lost at all ports together.
    pub drops: u64,
    /// ACKs that hosts sent because their delay was over.
    pub delayed_acks: u64,
    /// What the controller did; `None` without one.
    pub controller: Option<ControllerCounters>,
    /// Every transfer, in the order of their starts.
    pub flows: Vec<FlowRecord>,
    /// Every job, in the order of their starts.
    pub jobs: Vec<JobRow>,
    /// The measured queues over time.
    pub queues: Vec<QueueSample>,
    /// The windows of chosen flows over time.
    pub windows: Vec<WindowRow>,
    /// The packets of a port, if they are recorded, by time.
    pub packets: Vec<PacketRow>,
    /// What senders did meanwhile.
    pub events: Vec<EventRow>,
    /// What the run cost; the only part that differs between equal runs.
    pub performance: Performance,
}

/// A transfer that takes longer is late: Linux's least retransmission timeout is 200 ms.
pub const LATE: Time = Time::from_millis(190);

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

/// A class of lengths compared with the whole of its traffic.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct ClassShare {
    /// Its share of the transfers begun.
    pub flows: f64,
    /// Its share of the bytes that these are long.
    pub bytes: f64,
}

/// The transfers of one traffic, or of one class of its lengths.
#[derive(Clone, Debug, Serialize)]
pub struct GroupSummary {
    /// Transfers begun.
    pub flows: usize,
    /// Transfers whose last byte arrived.
    pub finished: usize,
    /// Transfers with an end that did not reach it: stopped, under way at the end of the run, or,
    /// in a closed loop, not even begun.
    pub unfinished: usize,
    /// Flow completion times of the finished, from the start (SYN or request) to the last byte at
    /// the receiving application. `None` where none finished.
    pub fct_s: Option<Summary>,
    /// The same over the least that each would have taken alone on the fabric. `None` where none
    /// finished, or that is not known.
    pub slowdown: Option<Summary>,
    /// Transfers finished in the measured time, by the second.
    pub flows_per_second: f64,
    /// The slowest tenth of the transfers, and what they waited for. `None` where they are not counted.
    pub slow: Option<SlowFlows>,
    /// Transfers that took longer than their deadline, or have not finished though it is past.
    /// `None` where there is no deadline.
    pub missed_deadlines: Option<usize>,
    /// Payload delivered in the measured time over the time the transfer was under way in it.
    pub goodput_bps: Option<Goodput>,
    /// Jain's index of these goodputs.
    pub jain: Option<f64>,
    /// Segments sent again.
    pub retransmits: u64,
    /// Transfers with at least one segment sent again.
    pub resent: usize,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Transfers with at least one timeout, of data or handshake.
    pub stalled: usize,
    /// Transfers that took longer than [`LATE`], or were under way for longer when they were stopped
    /// or the run ended; endless ones are never late.
    pub late: usize,
    /// Handshakes that timed out.
    pub syn_timeouts: u64,
    /// Packets lost, either direction.
    pub drops: u64,
    /// Share of the transfers under way in the measured time of which no packet arrived in it
    /// (HCF §V-B).
    pub starved: f64,
    /// Variance over the same transfers of the packets that arrived in the measured time
    /// (HCF §V-B).
    pub packets_variance: f64,
    /// Those of them in the lowest of ten equal bins from 0 to the most packets of any (HCF Fig. 4).
    pub flows_in_lowest_decile: usize,
    /// Longest time between two data packets at the receiver, of each transfer.
    pub longest_silence_s: Option<Summary>,
    /// Bytes of an epoch over the time until its last transfer finished, mean over the epochs
    /// (HCF §V-A); `None` unless a synchronized traffic finished.
    pub block_goodput_bps: Option<f64>,
    /// Time between two losses of a flow, seconds, of the flows whose windows are sampled: their time
    /// in the measured time over the times that one of them began to repair a loss, at least 1.
    /// `None` without samples.
    pub loss_cycle_s: Option<f64>,
    /// Its jobs; left out where it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jobs: Option<JobSummary>,
    /// What part of its traffic a class of lengths is; left out for a traffic as a whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share: Option<ClassShare>,
}

/// The jobs of one traffic: queries, coflows, collectives.
#[derive(Clone, Debug, Serialize)]
pub struct JobSummary {
    /// Jobs begun.
    pub begun: usize,
    /// Jobs that were over before the end of the run.
    pub finished: usize,
    /// Jobs that were not, those not begun included.
    pub unfinished: usize,
    /// Completion times of the finished: from the start of a job, its think times included, until its
    /// last stage was over. `None` where none finished.
    pub time_s: Option<Summary>,
    /// Jobs that took longer than their deadline, or have not finished though it is past. `None`
    /// where there is no deadline.
    pub missed_deadlines: Option<usize>,
    /// Jobs finished per second, from the start of the first to the end of the last. `None` where none
    /// finished.
    pub per_second: Option<f64>,
}

/// A measured port. What the datapath counts too has its name there (`core/counters.h`).
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
    /// Packets that left by the port.
    pub egress_packets: u64,
    /// Bytes that left by the port.
    pub egress_bytes: u64,
    /// Packets marked with ECN CE.
    pub ecn_marks: u64,
    /// Times that the port paused for the switch at its far end; left out without flow control there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pauses: Option<u64>,
    /// Seconds that it paused, likewise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused_s: Option<f64>,
    /// What the window scheme did, if one is on the port.
    #[serde(flatten)]
    pub window: WindowCounters,
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

impl QueueSummary {
    /// The summary of samples in any order; `max`: the longest at any time.
    pub fn of(samples: &[f64], max: u64) -> QueueSummary {
        let sorted = stats::sorted(samples);
        QueueSummary {
            mean: stats::mean(&sorted).unwrap_or(0.0),
            p99: stats::quantile(&sorted, 0.99).unwrap_or(0.0),
            max,
        }
    }
}

/// One transfer.
#[derive(Clone, Debug, Serialize)]
pub struct FlowRecord {
    /// Name of the traffic.
    pub traffic: String,
    /// Number of the client within the traffic; of a job's transfer, the job's.
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
    /// The least that it would have taken alone on the fabric, seconds; `None`: endless or unknown.
    pub ideal_s: Option<f64>,
    /// Time before retransmission timeouts, seconds.
    pub rto_wait_s: Option<f64>,
    /// Time before timeouts of its handshake, seconds.
    pub syn_wait_s: Option<f64>,
    /// Time in which the receiver delayed an ACK while it waited for more, seconds.
    pub ack_wait_s: Option<f64>,
    /// Time with data to send, none in flight and no window for it, seconds.
    pub window_wait_s: Option<f64>,
    /// Time in which the server had the request and no answer yet, seconds.
    pub server_wait_s: Option<f64>,
    /// Time with data in flight, seconds; a kernel's count, as the next two.
    pub busy_s: Option<f64>,
    /// Of it limited by the receiver's window, seconds.
    pub rwnd_limited_s: Option<f64>,
    /// Of it limited by the send buffer, seconds.
    pub sndbuf_limited_s: Option<f64>,
}

/// One job.
#[derive(Clone, Debug, Serialize)]
pub struct JobRow {
    /// Name of the traffic.
    pub traffic: String,
    /// Its number among the jobs of the traffic, which its transfers have as their `flow`.
    pub job: u32,
    /// The host that runs it, if there is one.
    pub client: Option<String>,
    /// When it began, seconds.
    pub start_s: f64,
    /// When it was over, seconds.
    pub end_s: Option<f64>,
    /// Completion time, seconds.
    pub time_s: Option<f64>,
    /// Its transfers.
    pub transfers: u32,
    /// Their bytes.
    pub bytes: u64,
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

/// The windows of a flow's sender at an instant.
#[derive(Clone, Debug, Serialize)]
pub struct WindowRow {
    /// Name of the traffic.
    pub traffic: String,
    /// Number of the client within the traffic.
    pub flow: u32,
    /// Seconds.
    pub time_s: f64,
    /// Congestion window.
    pub cwnd_bytes: u64,
    /// The window that the receiver offers, as the network has left it.
    pub rwnd_bytes: u64,
    /// What the sender may have in flight: the lesser of both.
    pub swnd_bytes: u64,
    /// Whether the sender repairs a loss, after duplicate ACKs or a timeout.
    pub recovering: bool,
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
    /// What this process has used, given its times (seconds) and packet-hops.
    pub fn measure(wall_s: f64, loop_s: f64, packet_hops: u64) -> Performance {
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
