// SPDX-License-Identifier: Apache-2.0
//! Gathers the results of a finished simulation.

use super::outcome::{
    ClassShare, FlowRecord, Goodput, GroupSummary, JobRow, JobSummary, LATE, Outcome, Performance,
    PortSummary, QueueSample, QueueSummary, WindowRow,
};
use super::slow;
use super::traffic::incast_pairs;
use crate::fabric::Fabric;
use crate::network::PortCounters;
use crate::queue::DropReason;
use crate::rng::Rng;
use crate::simulation::{ENDLESS, JobRecord, Record, Results, WaitsOf, WindowSample};
use crate::stats::{self, Summary};
use indexmap::IndexMap;
use penstock_scenario::units::Time;
use penstock_scenario::{Job, Scenario, Traffic};
use std::collections::HashMap;

/// The outcome of a finished simulation. `measured`: links of the measured ports.
pub(super) fn collect(
    scenario: &Scenario,
    fabric: &Fabric,
    results: Results,
    measured: &[u32],
    performance: Performance,
) -> Outcome {
    let indices: HashMap<u32, u32> = measured.iter().copied().zip(0..).collect();
    let queues = results.samples.iter().map(|sample| QueueSample {
        port: indices.get(&sample.link).copied().unwrap_or(0),
        time_s: sample.time.as_secs_f64(),
        bytes: sample.bytes,
        packets: sample.packets,
    });
    let queues: Vec<QueueSample> = queues.collect();
    let mut lengths = vec![Vec::new(); measured.len()];
    for sample in &queues {
        lengths[sample.port as usize].push(sample.bytes as f64);
    }
    let ports = measured.iter().zip(&lengths).map(|(link, lengths)| {
        let (link, counters) = &results.ports[*link as usize];
        let summary = port_summary(scenario, fabric, (*link, counters), lengths);
        (fabric.port_name(*link), summary)
    });
    Outcome {
        groups: summaries(scenario, &results.records, &results.jobs, &results.windows),
        ports: ports.collect(),
        drops: results.ports.iter().map(|(_, port)| port.dropped()).sum(),
        delayed_acks: results.delayed_acks,
        controller: results.controller,
        flows: flow_records(scenario, &results.records),
        jobs: job_rows(scenario, &results.jobs),
        queues,
        windows: window_rows(scenario, &results.windows),
        packets: Vec::new(),
        events: Vec::new(),
        performance,
    }
}

/// The transfers of each traffic but datagrams, by its name; those of each class of lengths too,
/// by names as in `web/small`.
pub fn summaries(
    scenario: &Scenario,
    records: &[Record],
    jobs: &[JobRecord],
    windows: &[WindowSample],
) -> IndexMap<String, GroupSummary> {
    let mut groups = IndexMap::new();
    for (index, (name, traffic)) in (0..).zip(&scenario.traffic) {
        if !matches!(traffic, Traffic::Udp(_)) {
            let own = records.iter().filter(|record| record.traffic == index);
            let own: Vec<&Record> = own.collect();
            let mut summary = summarize(scenario, traffic, &own);
            summary.loss_cycle_s = loss_cycle(scenario, index, windows);
            if let Traffic::Incast(spec) = traffic {
                // How many there are does not depend on what is drawn.
                let pairs = incast_pairs(spec, &scenario.fabric, &mut Rng::new(0, 0));
                let planned = pairs.len() * spec.requests as usize * spec.epochs as usize;
                summary.unfinished = planned.saturating_sub(summary.finished);
            }
            if let Traffic::Job(spec) = traffic {
                let jobs = jobs.iter().filter(|job| job.traffic == index);
                summary.jobs = Some(summarize_jobs(scenario, spec, &jobs.collect::<Vec<_>>()));
            }
            groups.insert(name.clone(), summary);
            if !traffic.varies() {
                continue;
            }
            for (class, least, most) in scenario.measure.classes() {
                let is_member = |record: &&Record| (least..=most).contains(&record.bytes);
                let members: Vec<&Record> = own.iter().copied().filter(is_member).collect();
                let mut summary = summarize(scenario, traffic, &members);
                summary.share = Some(class_share(&members, &own));
                groups.insert(format!("{name}/{class}"), summary);
            }
        }
    }
    groups
}

/// Every transfer, in the order of `records`, with names for numbers.
pub fn flow_records(scenario: &Scenario, records: &[Record]) -> Vec<FlowRecord> {
    let hosts = scenario.fabric.hosts();
    let row = |record: &Record| {
        let (name, traffic) = scenario.traffic.get_index(record.traffic as usize)?;
        Some(flow_record(scenario, &hosts, name, traffic, record))
    };
    records.iter().filter_map(row).collect()
}

/// Every job, in the order of `jobs`, with names for numbers.
pub fn job_rows(scenario: &Scenario, jobs: &[JobRecord]) -> Vec<JobRow> {
    let row = |job: &JobRecord| {
        let (name, traffic) = scenario.traffic.get_index(job.traffic as usize)?;
        let deadline = match traffic {
            Traffic::Job(spec) => spec.deadline,
            _ => None,
        };
        Some(JobRow {
            traffic: name.clone(),
            job: job.number,
            client: job
                .client
                .map(|host| scenario.fabric.host_name(host as usize)),
            start_s: job.start.as_secs_f64(),
            end_s: job.end.map(Time::as_secs_f64),
            time_s: job.end.map(|end| (end - job.start).as_secs_f64()),
            transfers: job.transfers,
            bytes: job.bytes,
            missed_deadline: deadline.map(|deadline| took(scenario, job) > deadline),
        })
    };
    jobs.iter().filter_map(row).collect()
}

/// How long a job took, or has lasted at the end of the run.
fn took(scenario: &Scenario, job: &JobRecord) -> Time {
    job.end.unwrap_or(scenario.duration) - job.start
}

fn summarize_jobs(scenario: &Scenario, spec: &Job, jobs: &[&JobRecord]) -> JobSummary {
    let ends: Vec<Time> = jobs.iter().filter_map(|job| job.end).collect();
    let finished = jobs.iter().filter(|job| job.end.is_some());
    let times: Vec<f64> = finished
        .map(|job| took(scenario, job).as_secs_f64())
        .collect();
    let rows = spec.clients.as_ref().map_or(1, |clients| {
        let hosts = clients.resolve(&scenario.fabric);
        hosts.map_or(0, |hosts| hosts.len())
    });
    let first = jobs.first().map(|job| job.start);
    let span = ends
        .iter()
        .max()
        .zip(first)
        .map(|(last, first)| *last - first);
    JobSummary {
        begun: jobs.len(),
        finished: times.len(),
        unfinished: (rows * spec.jobs as usize).saturating_sub(times.len()),
        time_s: Summary::of(&times),
        missed_deadlines: spec.deadline.map(|deadline| {
            let is_missed = |job: &&&JobRecord| took(scenario, job) > deadline;
            jobs.iter().filter(is_missed).count()
        }),
        per_second: span
            .filter(|span| *span > Time::ZERO)
            .map(|span| times.len() as f64 / span.as_secs_f64()),
    }
}

/// The windows sampled, with the traffic's name for its number.
pub fn window_rows(scenario: &Scenario, samples: &[WindowSample]) -> Vec<WindowRow> {
    let row = |sample: &WindowSample| {
        let (name, _) = scenario.traffic.get_index(sample.traffic as usize)?;
        Some(WindowRow {
            traffic: name.clone(),
            flow: sample.flow,
            time_s: sample.time.as_secs_f64(),
            cwnd_bytes: sample.cwnd,
            rwnd_bytes: sample.rwnd,
            swnd_bytes: sample.cwnd.min(sample.rwnd),
            recovering: sample.is_recovering,
        })
    };
    samples.iter().filter_map(row).collect()
}

fn deadline(traffic: &Traffic) -> Option<Time> {
    match traffic {
        Traffic::Bulk(t) => t.deadline,
        Traffic::Incast(t) => t.deadline,
        Traffic::Poisson(t) => t.deadline,
        Traffic::Trace(t) => t.deadline,
        Traffic::Udp(_) | Traffic::Job(_) => None,
    }
}

fn missed(scenario: &Scenario, traffic: &Traffic, record: &Record) -> Option<bool> {
    let end = record.end.unwrap_or(scenario.duration);
    deadline(traffic).map(|deadline| end - record.start > deadline)
}

/// Payload rate in the measured time; `None` if the transfer was not under way in it.
fn goodput(scenario: &Scenario, record: &Record) -> Option<f64> {
    let from = record.start.max(scenario.measure.from);
    let until = record.end.or(record.stopped).unwrap_or(scenario.duration);
    let span = until.saturating_sub(from);
    let bytes = record.total.since(&record.before).delivered;
    (span > Time::ZERO).then(|| bytes as f64 * 8.0 / span.as_secs_f64())
}

/// Transfers finished in the measured time, by the second.
fn rate(scenario: &Scenario, records: &[&Record]) -> f64 {
    let from = scenario.measure.from;
    let ends = records.iter().filter_map(|record| record.end);
    let finished = ends.filter(|end| *end >= from).count();
    finished as f64 / (scenario.duration - from).as_secs_f64()
}

fn is_late(scenario: &Scenario, record: &Record) -> bool {
    let until = record.end.or(record.stopped).unwrap_or(scenario.duration);
    (record.bytes < ENDLESS || record.end.is_some()) && until - record.start > LATE
}

fn summarize(scenario: &Scenario, traffic: &Traffic, records: &[&Record]) -> GroupSummary {
    let fct = |record: &&Record| record.end.map(|end| (end - record.start).as_secs_f64());
    let times: Vec<f64> = records.iter().filter_map(fct).collect();
    let slowdown = |record: &&Record| {
        let ideal = record.ideal.filter(|ideal| *ideal > Time::ZERO)?;
        Some(fct(record)? / ideal.as_secs_f64())
    };
    let slowdowns: Vec<f64> = records.iter().filter_map(slowdown).collect();
    let rates: Vec<f64> = records
        .iter()
        .filter_map(|record| goodput(scenario, record))
        .collect();
    let packets: Vec<u64> = records
        .iter()
        .filter(|record| goodput(scenario, record).is_some())
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
        unfinished: records
            .iter()
            .filter(|record| record.bytes < ENDLESS && record.end.is_none())
            .count(),
        fct_s: Summary::of(&times),
        slowdown: Summary::of(&slowdowns),
        flows_per_second: rate(scenario, records),
        slow: slow::slow_flows(records, scenario.duration),
        missed_deadlines: deadline(traffic)
            .map(|_| missed.iter().filter(|missed| **missed).count()),
        goodput_bps: Summary::of(&rates).map(|summary| Goodput {
            mean: summary.mean,
            min: rates.iter().copied().fold(f64::INFINITY, f64::min),
            max: summary.max,
        }),
        jain: stats::jain_index(&rates),
        retransmits: records.iter().map(|record| record.total.retransmits).sum(),
        resent: records.iter().filter(|r| r.total.retransmits > 0).count(),
        timeouts: records.iter().map(|record| record.total.timeouts).sum(),
        stalled: records
            .iter()
            .filter(|r| r.total.timeouts + r.total.syn_timeouts > 0)
            .count(),
        late: records.iter().filter(|r| is_late(scenario, r)).count(),
        syn_timeouts: records.iter().map(|record| record.total.syn_timeouts).sum(),
        drops: records.iter().map(|record| record.total.drops).sum(),
        starved: stats::starvation_percent(&packets).unwrap_or(0.0) / 100.0,
        packets_variance: stats::unfairness(&packets).unwrap_or(0.0),
        flows_in_lowest_decile: packets.iter().filter(|count| **count * 10 < most).count(),
        longest_silence_s: Summary::of(&silences),
        block_goodput_bps: block_goodput(traffic, records),
        loss_cycle_s: None,
        jobs: None,
        share: None,
    }
}

fn loss_cycle(scenario: &Scenario, traffic: u32, windows: &[WindowSample]) -> Option<f64> {
    let every = scenario.measure.windows.as_ref()?.every;
    let mut last = HashMap::new();
    let (mut samples, mut losses) = (0_u64, 0_u64);
    let measured = windows
        .iter()
        .filter(|sample| sample.traffic == traffic && sample.time >= scenario.measure.from);
    for sample in measured {
        let before = last.insert(sample.flow, sample.is_recovering);
        samples += 1;
        losses += u64::from(before == Some(false) && sample.is_recovering);
    }
    (samples > 0).then(|| samples as f64 * every.as_secs_f64() / losses.max(1) as f64)
}

/// Shares of nothing are 0.
fn class_share(members: &[&Record], all: &[&Record]) -> ClassShare {
    let bytes = |records: &[&Record]| records.iter().map(|record| record.bytes).sum::<u64>();
    ClassShare {
        flows: members.len() as f64 / all.len().max(1) as f64,
        bytes: bytes(members) as f64 / bytes(all).max(1) as f64,
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
    hosts: &[String],
    name: &str,
    traffic: &Traffic,
    record: &Record,
) -> FlowRecord {
    let host = |index: u32| hosts[index as usize].clone();
    let waits = slow::waits(record, scenario.duration);
    let (is_counted, is_simulated, kernel) = match record.waits_of {
        WaitsOf::Simulator => (true, true, None),
        WaitsOf::Kernel(times) => (true, false, Some(times)),
        WaitsOf::Uncounted => (false, false, None),
    };
    let counted = |wait: Time| is_counted.then(|| wait.as_secs_f64());
    let simulated = |wait: Time| is_simulated.then(|| wait.as_secs_f64());
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
        ideal_s: record.ideal.map(Time::as_secs_f64),
        rto_wait_s: counted(waits.rto),
        syn_wait_s: counted(waits.syn),
        ack_wait_s: simulated(waits.ack),
        window_wait_s: simulated(waits.window),
        server_wait_s: counted(waits.server),
        busy_s: kernel.map(|times| times.busy.as_secs_f64()),
        rwnd_limited_s: kernel.map(|times| times.receive_window.as_secs_f64()),
        sndbuf_limited_s: kernel.map(|times| times.send_buffer.as_secs_f64()),
    }
}

fn port_summary(
    scenario: &Scenario,
    fabric: &Fabric,
    (link, counters): (u32, &PortCounters),
    lengths: &[f64],
) -> PortSummary {
    let measured = scenario.duration - scenario.measure.from;
    let sending = fabric.links[link as usize]
        .rate
        .transmission(counters.measured_bytes);
    let by_reason = DropReason::ALL
        .iter()
        .map(|r| (r.name(), counters.drops[*r as usize]));
    PortSummary {
        drops: counters.dropped(),
        drops_by_reason: by_reason.collect(),
        utilization: sending.as_secs_f64() / measured.as_secs_f64(),
        queue_bytes: QueueSummary::of(lengths, counters.peak_bytes),
        egress_packets: counters.sent_packets,
        egress_bytes: counters.sent_bytes,
        ecn_marks: counters.marks,
        pauses: counters.paused.map(|(pauses, _)| pauses),
        paused_s: counters.paused.map(|(_, time)| time.as_secs_f64()),
        window: counters.window,
    }
}
