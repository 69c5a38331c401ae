// SPDX-License-Identifier: Apache-2.0
//! The status as OpenMetrics text.

use crate::status::Status;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, text};
use prometheus_client::metrics::MetricType::{Counter, Gauge};
use prometheus_client::metrics::exemplar::Exemplar;
use prometheus_client::registry::{Registry, Unit};
use std::fmt::Error;

type Labels = Vec<(&'static str, String)>;

/// All metrics of a controller.
///
/// # Errors
/// Never, as a String takes any text.
pub fn encode(status: Status) -> Result<String, Error> {
    let mut registry = Registry::with_prefix("penstock_controller");
    registry.register_collector(Box::new(status));
    let mut text = String::new();
    text::encode(&mut text, &registry)?;
    Ok(text)
}

impl Collector for Status {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), Error> {
        for (name, help, value) in [
            ("switches", "Switches that are known", self.switches.len()),
            (
                "written_switches",
                "Switches that take rules from this controller",
                self.written,
            ),
            ("links", "Links between switches", self.links.len()),
            ("hosts", "Hosts that are known", self.hosts.len()),
        ] {
            let mut family = encoder.encode_descriptor(name, help, None, Gauge)?;
            family.encode_gauge(&(value as u64))?;
        }
        let none: Option<&Exemplar<Labels, f64>> = None;
        for (name, help, value) in [
            ("copies", "Copies of SYN and FIN", self.counters.copies),
            (
                "ignored_syns",
                "SYNs that did not count",
                self.counters.ignored_syns,
            ),
            ("queue_reports", "Queues reported", self.counters.queues),
            ("notices", "Notices to shims", self.counters.notices),
        ] {
            let mut family = encoder.encode_descriptor(name, help, None, Counter)?;
            family.encode_counter(&value, none)?;
        }
        let refused = self.refused.iter();
        let refused = refused.map(|(agent, number)| (label("agent", agent), *number));
        for (name, help, values) in [
            (
                "refused_messages",
                "Messages of agents that were refused",
                refused.collect(),
            ),
            (
                "incasts",
                "Times that incast was found ahead of a port",
                self.of_ports(|port| port.incasts),
            ),
        ] {
            let mut family = encoder.encode_descriptor(name, help, None, Counter)?;
            for (labels, value) in values {
                family
                    .encode_family(&labels)?
                    .encode_counter(&value, none)?;
            }
        }
        for (name, help, unit, values) in [
            (
                "flows",
                "Flows through a port",
                None,
                self.of_ports(|port| port.flows),
            ),
            (
                "queue",
                "The queue that was reported last",
                Some(&Unit::Bytes),
                self.of_ports(|port| port.queue_bytes.into()),
            ),
        ] {
            let mut family = encoder.encode_descriptor(name, help, unit, Gauge)?;
            for (labels, value) in values {
                family.encode_family(&labels)?.encode_gauge(&value)?;
            }
        }
        Ok(())
    }
}

impl Status {
    fn of_ports(&self, value: impl Fn(&crate::status::Port) -> u64) -> Vec<(Labels, u64)> {
        let ports = self.ports.iter();
        ports
            .map(|(port, one)| (label("port", port), value(one)))
            .collect()
    }
}

fn label(name: &'static str, value: impl ToString) -> Labels {
    vec![(name, value.to_string())]
}
