// SPDX-License-Identifier: Apache-2.0
//! Ports as OpenMetrics text. Labels are the interface, the scheme, and the reason for which packets
//! pass; never an address.

use std::fmt::Error;

use penstock_core::definitions;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::exemplar::Exemplar;
use prometheus_client::registry::{Registry, Unit};

use super::table::GAUGES;
use crate::port::counters;
use crate::status::reading::Reading;

/// First bucket of the histogram, which holds everything below 1 kB.
const FIRST_BUCKET: usize = 10;

/// `GRANT_WAIT_BITS` of `core/grant_state.h`: the first bucket of waits holds those below 2^15 ns.
const FIRST_WAIT_BITS: i32 = 15;

type Labels = Vec<(&'static str, String)>;
type NoExemplar<'a> = Option<&'a Exemplar<Labels, f64>>;

/// All metrics of these ports; `unread` is the number of ports that could not be read.
///
/// # Errors
/// Never, as a String takes any text.
pub fn encode(readings: Vec<Reading>, unread: usize) -> Result<String, Error> {
    let mut registry = Registry::with_prefix("penstock");
    registry.register_collector(Box::new(Ports { readings, unread }));
    let mut text = String::new();
    text::encode(&mut text, &registry)?;
    Ok(text)
}

#[derive(Debug)]
struct Ports {
    readings: Vec<Reading>,
    unread: usize,
}

fn labels(reading: &Reading) -> Labels {
    vec![
        ("interface", reading.interface.clone()),
        ("scheme", reading.scheme.clone()),
    ]
}

/// One sample of a counter.
fn count(family: &mut MetricEncoder<'_>, labels: &Labels, value: u64) -> Result<(), Error> {
    let none: NoExemplar = None;
    family.encode_family(labels)?.encode_counter(&value, none)
}

impl Collector for Ports {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), Error> {
        self.about(&mut encoder)?;
        self.counters(&mut encoder)?;
        self.credit(&mut encoder)?;
        self.waits(&mut encoder)?;
        self.canary(&mut encoder)?;
        self.would_rewrite(&mut encoder)?;
        for gauge in &GAUGES {
            let unit = gauge.unit.as_ref();
            let mut family =
                encoder.encode_descriptor(gauge.name, gauge.help, unit, MetricType::Gauge)?;
            for reading in &self.readings {
                if let Some(value) = (gauge.value)(reading) {
                    family
                        .encode_family(&labels(reading))?
                        .encode_gauge(&value)?;
                }
            }
        }
        self.passed(&mut encoder)?;
        self.drops(&mut encoder)?;
        self.depth(&mut encoder)
    }
}

impl Ports {
    fn about(&self, encoder: &mut DescriptorEncoder) -> Result<(), Error> {
        // A gauge, as node_exporter's textfile collector does not support infos.
        let help = "The version of penstockd";
        encoder
            .encode_descriptor("build_info", help, None, MetricType::Gauge)?
            .encode_family(&[("version", env!("CARGO_PKG_VERSION"))])?
            .encode_gauge(&1u64)?;
        let help = "Attached ports that could not be read";
        encoder
            .encode_descriptor("unreadable_ports", help, None, MetricType::Gauge)?
            .encode_gauge(&(self.unread as u64))
    }

    fn counters(&self, encoder: &mut DescriptorEncoder) -> Result<(), Error> {
        for (index, counter) in definitions::counters().iter().enumerate() {
            let (name, unit) = match counter.word.strip_suffix("_bytes") {
                Some(stem) => (stem, Some(&Unit::Bytes)),
                None => (counter.word, None),
            };
            let mut family =
                encoder.encode_descriptor(name, counter.meaning, unit, MetricType::Counter)?;
            for reading in &self.readings {
                let value = counters::alone(&reading.counters).nth(index);
                let value = value.map_or(0, |(_, value)| value);
                count(&mut family, &labels(reading), value)?;
            }
        }
        Ok(())
    }

    fn credit(&self, encoder: &mut DescriptorEncoder) -> Result<(), Error> {
        for counter in definitions::credit_counters() {
            let (name, help) = (counter.word, counter.meaning);
            let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            for reading in &self.readings {
                let credit = reading.credit.as_ref();
                if let Some(value) = credit.and_then(|credit| credit.counters.get(name)) {
                    count(&mut family, &labels(reading), *value)?;
                }
            }
        }
        Ok(())
    }

    fn waits(&self, encoder: &mut DescriptorEncoder) -> Result<(), Error> {
        let help = "How long flows waited for each grant; the sum is of the buckets' middles";
        let unit = Some(&Unit::Seconds);
        let mut family =
            encoder.encode_descriptor("credit_wait", help, unit, MetricType::Histogram)?;
        for reading in &self.readings {
            let Some(credit) = &reading.credit else {
                continue;
            };
            let (sum, count, buckets) = waits(&credit.waits);
            family
                .encode_family(&labels(reading))?
                .encode_histogram::<Labels>(sum, count, &buckets, None)?;
        }
        Ok(())
    }

    fn canary(&self, encoder: &mut DescriptorEncoder) -> Result<(), Error> {
        for (index, counter) in definitions::canary_counters().iter().enumerate() {
            let (stem, unit) = match counter.word.strip_suffix("_bytes") {
                Some(stem) => (stem, Some(&Unit::Bytes)),
                None => (counter.word, None),
            };
            let name = format!("canary_{stem}");
            let help = format!("Of each side of a canary: {}", counter.meaning);
            let mut family = encoder.encode_descriptor(&name, &help, unit, MetricType::Counter)?;
            let canaries = self.readings.iter().filter(|r| r.policy.canary.is_some());
            for reading in canaries {
                for (side, name) in reading.sides.iter().zip(["controlled", "held_out"]) {
                    let mut labels = labels(reading);
                    labels.push(("side", name.to_owned()));
                    let value = counters::of_side(side).nth(index);
                    count(&mut family, &labels, value.map_or(0, |(_, value)| value))?;
                }
            }
        }
        Ok(())
    }

    fn would_rewrite(&self, encoder: &mut DescriptorEncoder) -> Result<(), Error> {
        let help = "ACKs that a scheme would have rewritten, while observed";
        let mut family =
            encoder.encode_descriptor("acks_would_rewrite", help, None, MetricType::Counter)?;
        for reading in &self.readings {
            for (candidate, acks) in counters::would_rewrite(&reading.counters) {
                let mut labels = labels(reading);
                labels.push(("candidate", candidate.to_owned()));
                count(&mut family, &labels, acks)?;
            }
        }
        Ok(())
    }

    fn passed(&self, encoder: &mut DescriptorEncoder) -> Result<(), Error> {
        let help = "Packets that passed without being looked at further, by reason";
        let mut family =
            encoder.encode_descriptor("passed_packets", help, None, MetricType::Counter)?;
        for reading in &self.readings {
            for (reason, passed) in counters::passed(&reading.counters) {
                let mut labels = labels(reading);
                labels.push(("reason", reason.word.to_owned()));
                count(&mut family, &labels, passed)?;
            }
        }
        Ok(())
    }

    fn drops(&self, encoder: &mut DescriptorEncoder) -> Result<(), Error> {
        let help = "Packets that the port's qdisc dropped, one that GSO is to split as one, unlike in egress_packets; restarts at 2^32";
        let mut family =
            encoder.encode_descriptor("qdisc_drops", help, None, MetricType::Counter)?;
        for reading in &self.readings {
            if let Some(drops) = reading.drops {
                count(&mut family, &labels(reading), drops.into())?;
            }
        }
        Ok(())
    }

    fn depth(&self, encoder: &mut DescriptorEncoder) -> Result<(), Error> {
        let help = "Longest queue of each millisecond in which something left, per CPU; the sum is \
                    of the buckets' middles";
        let unit = Some(&Unit::Bytes);
        let mut family =
            encoder.encode_descriptor("queue_peak", help, unit, MetricType::Histogram)?;
        for reading in &self.readings {
            let (sum, count, buckets) = histogram(&reading.depth);
            family
                .encode_family(&labels(reading))?
                .encode_histogram::<Labels>(sum, count, &buckets, None)?;
        }
        Ok(())
    }
}

/// Sum, count, and buckets by their largest value; bucket b of `depth` holds `[2^(b-1), 2^b)`.
fn histogram(depth: &[u64]) -> (f64, u64, Vec<(f64, u64)>) {
    let first = FIRST_BUCKET.min(depth.len().saturating_sub(1));
    let mut buckets = Vec::new();
    let mut small = 0;
    for (bucket, milliseconds) in depth.iter().enumerate() {
        if bucket < first {
            small += milliseconds;
            continue;
        }
        buckets.push((2f64.powi(bucket as i32) - 1.0, milliseconds + small));
        small = 0;
    }
    buckets.push((f64::INFINITY, 0));
    let middle = |bucket: usize| {
        if bucket == 0 {
            0.0
        } else {
            0.75 * 2f64.powi(bucket as i32)
        }
    };
    let sum = depth
        .iter()
        .enumerate()
        .map(|(bucket, ms)| middle(bucket) * *ms as f64)
        .sum();
    (sum, depth.iter().sum(), buckets)
}

/// Sum, count, and buckets by their largest value; `waits` as in `grant::Status`.
fn waits(waits: &[u64]) -> (f64, u64, Vec<(f64, u64)>) {
    let bound = |bucket: usize| 2f64.powi(FIRST_WAIT_BITS + bucket as i32) * 1e-9;
    let last = waits.len().saturating_sub(1);
    let upper = |bucket: usize| match bucket == last {
        true => f64::INFINITY,
        false => bound(bucket),
    };
    let buckets = waits.iter().enumerate();
    let sum = buckets
        .clone()
        .map(|(b, count)| 0.75 * bound(b) * *count as f64);
    let (sum, count) = (sum.sum(), waits.iter().sum());
    (
        sum,
        count,
        buckets.map(|(b, count)| (upper(b), *count)).collect(),
    )
}

#[cfg(test)]
#[path = "openmetrics_tests.rs"]
mod tests;
