// SPDX-License-Identifier: Apache-2.0
//! Scenario files: one TOML file specifies the fabric, the TCP, the traffic, the schemes to compare
//! and what to measure. The structs here are the only definition of its keys, apart from the
//! parameters of schemes, which `core/` defines: the parser, the defaults, the JSON Schema, the
//! simulator and the agent read them.
//!
//! # Map
//!
//! Start at [`Scenario`] and [`resolve`], which goes from text to a scenario.
//!
//! | module | contents |
//! |---|---|
//! | [`document`], [`de`], [`typing`] | TOML with the place of every value; its types, with all errors at their places |
//! | [`fabric`], [`graph`], [`graphml`], [`link`], [`ports`], [`naming`], [`selector`] | topologies; lists of cables; ports that differ; names of hosts, switches and ports; sets of hosts |
//! | [`tcp`], [`traffic`], [`priority`], [`job`], [`measure`], [`seeds`] | the other tables of a scenario |
//! | [`drawn`], [`size`] | sizes and times that are fixed or drawn; names of published distributions |
//! | [`scheme`], [`queue`], [`window`], [`params`], [`definitions`] | schemes, built-in (`builtin.toml`) or one's own; their parameters, from `core/` |
//! | [`check`], [`error`] | what cannot be run; errors in one line |
//! | [`deploy`], [`policy`] | a scheme for a port of `penstockd`; which flows it controls |
//! | [`units`], [`quantities`], [`count`], [`kinds`], [`schema`] | integers with units; quantities as text; counts within a range; enums by `kind`; the JSON Schema |

mod check;
mod count;
mod de;
mod definitions;
mod deploy;
mod document;
mod drawn;
mod error;
mod fabric;
mod graph;
mod graphml;
mod job;
mod kinds;
mod link;
mod measure;
mod naming;
pub mod params;
pub mod policy;
mod ports;
mod priority;
mod quantities;
mod queue;
mod resolve;
mod schema;
mod scheme;
mod seeds;
mod selector;
mod size;
mod tcp;
mod traffic;
mod typing;
pub mod units;
mod window;

use std::path::Path;

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::Time;

pub use definitions::definitions;
pub use deploy::{Deployment, OBSERVE, SHIM, deployable, deployment, deployments};
pub use drawn::{Delay, Drawn, Quantity, Size};
pub use error::{Origin, Problem, ScenarioError, nearest};
pub use fabric::{Dumbbell, Fabric, FatTree, Graph, LeafSpine, Tree};
pub use graph::{Edge, Net};
pub use job::{After, CLIENT, Job, Pattern, Pick, Stage};
pub use link::Link;
pub use measure::{BOTTLENECK, Measure, Packets, Windows};
pub use naming::{Groups, port};
pub use policy::{MOST_RULES, Rule};
pub use ports::{Ecmp, Pfc, PortChange, SharedBuffer, Span};
pub use priority::Priority;
pub use quantities::{Bytes, Level, Share};
pub use queue::{Codel, DropTail, Drr, Hcf, Period, Pie, Queue, Red, Sfq, Threshold};
pub use schema::json_schema;
pub use scheme::{Scheme, builtin_schemes};
pub use seeds::Seeds;
pub use selector::Selector;
pub use size::PUBLISHED_SIZES;
pub use tcp::{Congestion, Profile, Recovery, Tcp};
pub use traffic::{
    Arrivals, Bulk, Bursts, Connection, Incast, LoadOf, Mode, Pairs, Poisson, Trace, Traffic, Udp,
};
pub use units::Buffer;
pub use window::{Controller, FlowCounts, Sicc, Window};

/// What ends a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Until {
    /// The run lasts for `duration`.
    #[default]
    Duration,
    /// The run ends within a ten-thousandth of `duration` after the last transfer that has an end,
    /// as ab does after its last request; at the latest after `duration`. Transfers that have not
    /// finished by then are counted as unfinished.
    Done,
}

impl Until {
    const fn is_duration(&self) -> bool {
        matches!(self, Until::Duration)
    }
}

/// An experiment: a network, its traffic, and the schemes to compare on it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// One line for tables and reports.
    pub title: String,
    /// What it shows, where it comes from, how it was made.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub about: String,
    /// Simulated time at which a run ends at the latest.
    pub duration: Time,
    /// What ends a run. Default: duration.
    #[serde(default, skip_serializing_if = "Until::is_duration")]
    pub until: Until,
    /// How many seeds (1, 2, ...) or a list of seeds. Default: 1.
    #[serde(default)]
    pub seeds: Seeds,
    /// Names of the schemes to compare, built-in or defined under `scheme`.
    pub schemes: Vec<String>,
    /// The network.
    pub fabric: Fabric,
    /// TCP of all hosts.
    #[serde(default)]
    pub tcp: Tcp,
    /// What the hosts send, by name.
    pub traffic: IndexMap<String, Traffic>,
    /// What is measured.
    #[serde(default)]
    pub measure: Measure,
    /// Schemes of one's own, or built-in ones with other parameters. Once parsed: every scheme
    /// that is compared or defined, complete.
    #[serde(default)]
    pub scheme: IndexMap<String, Scheme>,
}

impl Scenario {
    /// Reads a scenario. `origin` is the file, for messages; `overrides` are pairs of a dotted
    /// path and a value, TOML or a bare string.
    ///
    /// # Errors
    /// What is wrong, with file and line or with the override.
    pub fn parse(
        text: &str,
        origin: &Path,
        overrides: &[(String, String)],
    ) -> Result<Scenario, ScenarioError> {
        let folder = origin.parent().unwrap_or(Path::new(""));
        let refused = |problems| ScenarioError {
            file: origin.to_owned(),
            overrides: overrides
                .iter()
                .map(|(key, value)| format!("{key}={value}"))
                .collect(),
            problems,
        };
        resolve::read(text, folder, overrides).map_err(refused)
    }

    /// The TCP of the flows of one traffic under one scheme: the scenario's, over it the
    /// scheme's, over both the traffic's.
    pub fn tcp_of(&self, scheme: &Scheme, traffic: &Traffic) -> Tcp {
        let tcp = self.tcp.overlaid(&scheme.tcp);
        traffic.tcp().map_or(tcp.clone(), |own| tcp.overlaid(own))
    }

    /// Bytes of the longest packet of any traffic, headers counted, at least those of a full-size Ethernet
    /// packet.
    pub fn longest_packet(&self) -> u64 {
        let whole = |tcp: &Tcp| tcp.mss.map(|mss| u64::from(mss) + 40);
        let own = self.traffic.values().filter_map(Traffic::tcp);
        let of_schemes = self.scheme.values().map(|scheme| &scheme.tcp);
        let segments = own.chain(of_schemes).chain([&self.tcp]).filter_map(whole);
        let datagrams = self.traffic.values().filter_map(|traffic| match traffic {
            Traffic::Udp(udp) => Some(udp.packet.0),
            _ => None,
        });
        segments
            .chain(datagrams)
            .fold(params::FULL_PACKET, u64::max)
    }

    /// The scenario as TOML with every default written out; parses to an equal scenario.
    pub fn resolved(&self) -> String {
        toml::to_string(self).unwrap_or_else(|error| unreachable!("{error}"))
    }
}
