// SPDX-License-Identifier: Apache-2.0
//! The ports' queues: sampled, and summed up as the simulator's are.

use crate::failure::{Failure, because};
use crate::hosts::PortPlace;
use crate::namespaces::Namespaces;
use indexmap::IndexMap;
use penstock_linux::qdisc::{Counters, RootCounters};
use penstock_scenario::units::{Rate, Time};
use penstock_sim::run::{PortSummary, QueueSample, QueueSummary};
use penstock_sim::window::WindowCounters;

/// The least time between two samples: each takes some microseconds of the machine's time.
const LEAST_PERIOD: Time = Time::from_millis(1);

struct Port {
    name: String,
    rate: Rate,
    root: RootCounters,
    /// At the start of the run.
    first: Counters,
    /// At the start of the measured time.
    before: Counters,
    /// At the end.
    last: Counters,
}

impl Port {
    fn read(&mut self) -> Result<Counters, Failure> {
        let counters = self.root.read();
        counters.map_err(because(format!("port {}", self.name)))
    }
}

/// All sampled ports.
pub struct Ports {
    ports: Vec<Port>,
    period: Time,
    /// By time, then by port.
    pub samples: Vec<QueueSample>,
}

impl Ports {
    /// The ports at `places`, whose rates `rate` knows, sampled every `period`.
    pub fn open(
        places: &[PortPlace],
        rate: impl Fn(&str) -> Rate,
        period: Time,
        namespaces: &mut Namespaces,
    ) -> Result<Ports, Failure> {
        let mut ports = Vec::new();
        for place in places {
            let name = &place.name;
            namespaces.enter(place.netns)?;
            let root = RootCounters::open(&place.interface);
            let root = root.map_err(because(format!("port {name}")))?;
            let mut port = Port {
                name: name.clone(),
                rate: rate(name),
                root,
                first: Counters::default(),
                before: Counters::default(),
                last: Counters::default(),
            };
            port.first = port.read()?;
            port.before = port.first;
            ports.push(port);
        }
        Ok(Ports {
            ports,
            period: period.max(LEAST_PERIOD),
            samples: Vec::new(),
        })
    }

    /// Takes the sample of each port that was due, perhaps late; returns when to take the next.
    pub(super) fn sample(&mut self, due: Time, now: Time) -> Result<Time, Failure> {
        for (index, port) in (0..).zip(&mut self.ports) {
            let counters = port.read()?;
            self.samples.push(QueueSample {
                port: index,
                time_s: now.as_secs_f64(),
                bytes: counters.backlog_bytes.into(),
                packets: counters.backlog_packets,
            });
        }
        let next = due + self.period;
        Ok(if next > now { next } else { now + self.period })
    }

    /// What was sent before now does not count as utilization.
    pub(super) fn start_measuring(&mut self) -> Result<(), Failure> {
        for port in &mut self.ports {
            port.before = port.read()?;
        }
        Ok(())
    }

    /// The run is over.
    pub(super) fn finish(&mut self) -> Result<(), Failure> {
        for port in &mut self.ports {
            port.last = port.read()?;
        }
        Ok(())
    }

    /// By name. `measured`: how long the measured time was. Longest queues are those seen in samples;
    /// what only the switch's programs know (`ecn_marks`, `acks` ...) is zero.
    pub fn summaries(&self, measured: Time) -> IndexMap<String, PortSummary> {
        let summary = |(index, port): (u32, &Port)| {
            let samples = self.samples.iter().filter(|sample| sample.port == index);
            let lengths: Vec<f64> = samples.clone().map(|sample| sample.bytes as f64).collect();
            let sending = port
                .rate
                .transmission(port.last.sent_bytes - port.before.sent_bytes);
            let drops = u64::from(port.last.drops.wrapping_sub(port.first.drops));
            let summary = PortSummary {
                pauses: None,
                paused_s: None,
                drops,
                drops_by_reason: IndexMap::from([("qdisc", drops)]),
                utilization: sending.as_secs_f64() / measured.as_secs_f64(),
                queue_bytes: QueueSummary::of(
                    &lengths,
                    samples.map(|sample| sample.bytes).max().unwrap_or(0),
                ),
                egress_packets: port.last.sent_packets - port.first.sent_packets,
                egress_bytes: port.last.sent_bytes - port.first.sent_bytes,
                ecn_marks: 0,
                window: WindowCounters::default(),
            };
            (port.name.clone(), summary)
        };
        (0..).zip(&self.ports).map(summary).collect()
    }
}
