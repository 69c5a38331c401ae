// SPDX-License-Identifier: Apache-2.0
//! What is measured.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::count::{Recorded, Transfers};
use super::fabric::Fabric;
use super::quantities::Bytes;
use crate::units::Time;

/// Time between samples of queues where none is given, and least samples of a run: with fewer a burst
/// of a short run would fall between two.
const QUEUE_EVERY: (Time, u64) = (Time::from_millis(1), 200);
/// All are kept in memory.
const MOST_SAMPLES: u64 = 100_000_000;

const fn one() -> u32 {
    1
}

/// Flows whose senders' windows are sampled over time: the congestion window, the window that the
/// receiver offers, and what the sender may have in flight, the lesser of both.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Windows {
    /// Name of the traffic.
    pub traffic: String,
    /// The first so many flows of it. Default: 1.
    #[serde(with = "Transfers", default = "one")]
    pub flows: u32,
    /// Time between samples.
    pub every: Time,
}

fn most_packets() -> u32 {
    100_000
}

/// A port whose packets are recorded one by one, with the ACKs that come back next to it and what the
/// senders did meanwhile: for the report's timelines of flows, its replay of a burst, and
/// `penstock export`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Packets {
    /// The port, as in "left->right". Default: the first of the measured ports.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<String>,
    /// Nothing before is recorded. Default: 0 s.
    pub from: Time,
    /// Packets at most, data and ACKs. Default: 100000.
    #[serde(with = "Recorded")]
    pub most: u32,
    /// Name of a traffic whose packets are recorded for longer: as many again, after those of all.
    /// Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub traffic: Option<String>,
}

impl Default for Packets {
    fn default() -> Packets {
        Packets {
            port: None,
            from: Time::ZERO,
            most: most_packets(),
            traffic: None,
        }
    }
}

/// What is measured, and from when.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Measure {
    /// What happens before is not counted in goodput, utilization, starvation and the variance of
    /// packets (HCF §V-B). Default: 0 s.
    pub from: Time,
    /// Names of ports, as in "left->right"; `*` stands for any text; "bottleneck" is a dumbbell's
    /// "left->right". Default: the bottleneck of a dumbbell, else the switch ports to the
    /// traffic's destinations.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<String>,
    /// Time between samples of the measured queues. Default: 1 ms, in runs of less than 200 ms a 200th of
    /// the duration, but at least 1 us.
    pub queue_every: Time,
    /// Flows whose windows are sampled over time. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub windows: Option<Windows>,
    /// A port whose packets are recorded one by one; `{}` takes the first of the measured ports.
    /// Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packets: Option<Packets>,
    /// Classes of transfers by length, each with its largest: `{ small = "1 MB", large = "1 GB" }`.
    /// Every traffic whose sizes vary has its results once more for each class, called as in
    /// `web/small`. Default: none.
    #[serde(skip_serializing_if = "IndexMap::is_empty")]
    pub sizes: IndexMap<String, Bytes>,
}

impl Default for Measure {
    fn default() -> Measure {
        Measure {
            from: Time::ZERO,
            ports: Vec::new(),
            queue_every: QUEUE_EVERY.0,
            windows: None,
            packets: None,
            sizes: IndexMap::new(),
        }
    }
}

impl Measure {
    /// Time between samples of queues in a run of this length, where none is given.
    pub fn queue_every(duration: Time) -> Time {
        let (longest, samples) = QUEUE_EVERY;
        let shortest = Time::from_micros(1);
        let usual = Time(duration.0 / samples).clamp(shortest, longest);
        usual.max(Measure::least_every(duration))
    }

    /// The least time between samples that do not fill the memory.
    pub fn least_every(duration: Time) -> Time {
        Time(duration.0 / MOST_SAMPLES)
    }
}

/// The bottleneck's name in a dumbbell.
pub const BOTTLENECK: &str = "left->right";

impl Measure {
    /// The classes by length, shortest first: name, least and most bytes.
    pub fn classes(&self) -> Vec<(&str, u64, u64)> {
        let mut ends: Vec<(&str, u64)> = self
            .sizes
            .iter()
            .map(|(name, most)| (name.as_str(), most.0))
            .collect();
        ends.sort_by_key(|(_, most)| *most);
        let mut least = 0;
        let class = |(name, most)| (name, std::mem::replace(&mut least, most + 1), most);
        ends.into_iter().map(class).collect()
    }

    /// Whether the port called `name` is to be measured; `None` where no ports are named, as the
    /// traffic then decides.
    pub fn selects(&self, fabric: &Fabric, name: &str) -> Option<bool> {
        let is_dumbbell = matches!(fabric, Fabric::Dumbbell(_));
        match self.ports.as_slice() {
            [] if is_dumbbell => Some(name == BOTTLENECK),
            [] => None,
            patterns => Some(patterns.iter().any(|pattern| {
                let pattern = match pattern.as_str() {
                    "bottleneck" if is_dumbbell => BOTTLENECK,
                    other => other,
                };
                matches(pattern, name)
            })),
        }
    }
}

/// Whether `name` is `pattern`, whose `*` stand for any text.
pub(super) fn matches(pattern: &str, name: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else {
        return pattern == name;
    };
    let Some(tail) = name.strip_prefix(head) else {
        return false;
    };
    (0..=tail.len())
        .filter(|at| tail.is_char_boundary(*at))
        .any(|at| matches(rest, &tail[at..]))
}
