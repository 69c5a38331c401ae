// SPDX-License-Identifier: Apache-2.0
//! The network: which hosts and switches there are and what joins them.
//!
//! How hosts, switches and ports are named is defined in [`super::naming`].

use std::path::PathBuf;

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::count::{Hosts, HostsOrNone, Ports};
use super::graph::{Edge, Net};
use super::kinds::kinds;
use super::link::Link;
use super::measure::{BOTTLENECK, matches};
use super::naming::port;
use super::ports::{Ecmp, Pfc, PortChange, SharedBuffer};
use super::quantities::Buffer;
use super::traffic::LoadOf;
use crate::units::Rate;

/// The network.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Fabric {
    /// Senders, a switch, the bottleneck, a switch, receivers.
    Dumbbell(Dumbbell),
    /// A single-rooted tree of three levels (SICC §5.2, Fig. 8).
    Tree(Tree),
    /// Two levels, each leaf joined to each spine.
    LeafSpine(LeafSpine),
    /// Three levels of switches with k ports (Al-Fares, Loukissas, Vahdat, SIGCOMM 2008).
    FatTree(FatTree),
    /// Any cables between hosts and switches.
    Graph(Graph),
}

kinds!(Fabric {
    "dumbbell" => Dumbbell,
    "tree" => Tree,
    "leaf-spine" => LeafSpine,
    "fat-tree" => FatTree,
    "graph" => Graph,
});

/// Buffer of a switch port where no other is given: 83 packets, 125 kB of 1500 B (SICC §5.1).
const fn port_buffer() -> Buffer {
    Buffer::Packets(83)
}

/// Queue of a host's own port: long enough that no packet is lost before the network.
const fn host_buffer() -> Buffer {
    Buffer::Packets(1000)
}

const fn one() -> u32 {
    1
}

#[allow(clippy::trivially_copy_pass_by_ref)]
const fn is_zero(count: &u32) -> bool {
    *count == 0
}

const fn yes() -> bool {
    true
}

#[allow(clippy::trivially_copy_pass_by_ref)]
const fn is_true(flag: &bool) -> bool {
    *flag
}

#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_flow(ecmp: &Ecmp) -> bool {
    *ecmp == Ecmp::Flow
}

/// A struct of a fabric, with the keys that all fabrics have behind its own.
macro_rules! fabric {
    ($(#[$doc:meta])* pub struct $name:ident { $($keys:tt)* }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub struct $name {
            $($keys)*
            /// Buffer of every switch port. Default: 83 packets (SICC §5.1).
            #[serde(default = "port_buffer")]
            pub buffer: Buffer,
            /// Buffer of each port of some switches, by name, over that of a link or of the fabric:
            /// `{ left = "256 kB", "rack*" = "4 MB" }`; `*` stands for any text, and the first name
            /// that fits counts. Default: none.
            #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
            pub buffer_at: IndexMap<String, Buffer>,
            /// Buffers that all ports of a switch share, by its name or a pattern, over any other:
            /// `{ "leaf*" = { size = "4 MB", alpha = 1.0 } }`. Default: none, each port has its own.
            #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
            pub shared_at: IndexMap<String, SharedBuffer>,
            /// What is different at some ports, by name or pattern:
            /// `{ "leaf1->spine2" = { rate = "1 Gb/s", loss = "0.1 %" } }`; the first name that fits
            /// counts. Default: nothing.
            #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
            pub port_at: IndexMap<String, PortChange>,
            /// Queue of each host's own port. Default: 1000 packets.
            #[serde(default = "host_buffer")]
            pub host_buffer: Buffer,
            /// Names of the switches whose ports have the scheme, as in `["left", "rack*"]`; in a
            /// dumbbell, their ports to other switches. All other ports are drop-tail. Default: `left`
            /// and `right` in a dumbbell, elsewhere all.
            #[serde(default, skip_serializing_if = "Vec::is_empty")]
            pub scheme_at: Vec<String>,
            /// Whether both directions of a connection take the same switches. If not, each takes one
            /// of the equal paths at random, as where switches hash addresses and ports in their order.
            /// Default: true.
            #[serde(default = "yes", skip_serializing_if = "is_true")]
            pub symmetric_paths: bool,
            /// How switches choose among links that lead equally near. Default: flow.
            #[serde(default, skip_serializing_if = "is_flow")]
            pub ecmp: Ecmp,
            /// Switches with priority flow control, by name or pattern: `{ "*" = { pause = "60 kB" } }`. Default: none.
            #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
            pub pfc_at: IndexMap<String, Pfc>,
        }
    };
}

fabric! {
    /// Two switches, `left` and `right`, joined by the bottleneck. The senders are at the left one, or
    /// in racks below it.
    pub struct Dumbbell {
        /// Hosts at the left switch, or in the racks below it: `sender1`, `sender2` ...
        #[serde(with = "Hosts")]
        pub senders: u32,
        /// Hosts at the right switch: `receiver1`, `receiver2` ...
        #[serde(with = "Hosts")]
        pub receivers: u32,
        /// Racks, `rack1` ..., that share the senders equally, each with a top-of-rack switch below the
        /// left one. Default: 0, all senders are at the left switch itself.
        #[serde(with = "HostsOrNone", default, skip_serializing_if = "is_zero")]
        pub racks: u32,
        /// The link of each host to its switch.
        pub access: Link,
        /// Top-of-rack switch to the left switch. Default: as `access`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub rack_link: Option<Link>,
        /// The link between the switches.
        pub bottleneck: Link,
    }
}

fabric! {
    /// Racks of hosts under aggregation switches under cores.
    ///
    /// Every rack switch is joined to every aggregation switch, and every aggregation switch to every
    /// core.
    pub struct Tree {
        /// Core switches. Default: 1.
        #[serde(with = "Hosts", default = "one")]
        pub cores: u32,
        /// Aggregation switches.
        #[serde(with = "Hosts")]
        pub aggregations: u32,
        /// Racks, each with one top-of-rack switch.
        #[serde(with = "Hosts")]
        pub racks: u32,
        /// Hosts in each rack.
        #[serde(with = "Hosts")]
        pub hosts_per_rack: u32,
        /// Host to top-of-rack switch.
        pub host_link: Link,
        /// Top-of-rack switch to aggregation switch.
        pub rack_link: Link,
        /// Aggregation switch to core.
        pub core_link: Link,
    }
}

fabric! {
    /// Leaves of hosts, each joined to every spine.
    pub struct LeafSpine {
        /// Leaf switches.
        #[serde(with = "Hosts")]
        pub leaves: u32,
        /// Spine switches.
        #[serde(with = "Hosts")]
        pub spines: u32,
        /// Hosts at each leaf.
        #[serde(with = "Hosts")]
        pub hosts_per_leaf: u32,
        /// Host to leaf.
        pub host_link: Link,
        /// Leaf to spine.
        pub spine_link: Link,
    }
}

fabric! {
    /// `k` pods of `k/2` edge and `k/2` aggregation switches, `k²/4` cores, `k³/4` hosts.
    pub struct FatTree {
        /// Ports of each switch; even.
        #[serde(with = "Ports")]
        pub k: u32,
        /// Host to edge switch.
        pub host_link: Link,
        /// Switch to switch. Default: as `host_link`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub switch_link: Option<Link>,
    }
}

fabric! {
    /// Cables between named nodes: a list, or a file.
    pub struct Graph {
        /// The cables: two names each, then a rate and a delay if they differ:
        /// `[["server1", "tor1"], ["tor1", "core", "40 Gb/s"]]`.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub edges: Vec<Edge>,
        /// A file of more cables: GraphML (.graphml), or a line `node,node[,rate[,delay]]` for each; relative to the
        /// scenario's folder.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub file: Option<PathBuf>,
        /// Names or patterns of the nodes that are hosts. Default: those with one cable, or none with
        /// `hosts_per_switch`.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub hosts: Vec<String>,
        /// Hosts to add at each switch: NAME-host1 ... Default: 0.
        #[serde(with = "HostsOrNone", default, skip_serializing_if = "is_zero")]
        pub hosts_per_switch: u32,
        /// The link of each host to its switch.
        pub host_link: Link,
        /// The links between switches. Default: as `host_link`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub switch_link: Option<Link>,
        /// What the edges are, once they are read.
        #[serde(skip)]
        pub net: Net,
    }
}

impl Graph {
    /// The link between switches.
    pub fn switch_link(&self) -> &Link {
        self.switch_link.as_ref().unwrap_or(&self.host_link)
    }
}

/// The value of the first name or pattern that fits.
fn first_fit<'a, T>(named: &'a IndexMap<String, T>, name: &str) -> Option<&'a T> {
    let mut named = named.iter();
    let fitting = named.find(|(pattern, _)| matches(pattern, name));
    fitting.map(|(_, value)| value)
}

/// A value that fabrics of all kinds have.
macro_rules! of_any {
    ($self:ident, $fabric:ident => $value:expr) => {
        match $self {
            Fabric::Dumbbell($fabric) => $value,
            Fabric::Tree($fabric) => $value,
            Fabric::LeafSpine($fabric) => $value,
            Fabric::FatTree($fabric) => $value,
            Fabric::Graph($fabric) => $value,
        }
    };
}

impl Fabric {
    /// Buffer of a switch port where its link gives none.
    pub const fn buffer(&self) -> Buffer {
        of_any!(self, fabric => fabric.buffer)
    }

    /// Buffer of the switch ports that send on `link`, where their switch has none of its own.
    pub fn buffer_of(&self, link: &Link) -> Buffer {
        link.buffer.unwrap_or(self.buffer())
    }

    /// Buffers of the ports of some switches, by the names of these or patterns.
    pub const fn buffers_at(&self) -> &IndexMap<String, Buffer> {
        of_any!(self, fabric => &fabric.buffer_at)
    }

    /// Buffer of each port of a switch, if it has one of its own.
    pub fn buffer_at(&self, switch: &str) -> Option<Buffer> {
        first_fit(self.buffers_at(), switch).copied()
    }

    /// Buffers that the ports of some switches share, by the names of these or patterns.
    pub const fn shared_at(&self) -> &IndexMap<String, SharedBuffer> {
        of_any!(self, fabric => &fabric.shared_at)
    }

    /// The buffer that the ports of a switch share, if they do.
    pub fn shared_buffer(&self, switch: &str) -> Option<&SharedBuffer> {
        first_fit(self.shared_at(), switch)
    }

    /// What is different at some ports, by the names of these or patterns.
    pub const fn port_at(&self) -> &IndexMap<String, PortChange> {
        of_any!(self, fabric => &fabric.port_at)
    }

    /// What is different at a port, if anything is.
    pub fn port_change(&self, port: &str) -> Option<&PortChange> {
        first_fit(self.port_at(), port)
    }

    /// Names or patterns of the switches that have the scheme; empty for the default.
    pub fn scheme_at(&self) -> &[String] {
        of_any!(self, fabric => &fabric.scheme_at)
    }

    /// Whether a switch has the scheme.
    pub fn has_scheme(&self, switch: &str) -> bool {
        match (self.scheme_at(), self) {
            ([], Fabric::Dumbbell(_)) => ["left", "right"].contains(&switch),
            ([], _) => true,
            (named, _) => named.iter().any(|pattern| matches(pattern, switch)),
        }
    }

    /// Whether both directions of a connection take the same switches.
    pub const fn has_symmetric_paths(&self) -> bool {
        of_any!(self, fabric => fabric.symmetric_paths)
    }

    /// How switches choose among links that lead equally near.
    pub const fn ecmp(&self) -> Ecmp {
        of_any!(self, fabric => fabric.ecmp)
    }

    /// Switches with priority flow control, by the names of these or patterns.
    pub const fn pfc_at(&self) -> &IndexMap<String, Pfc> {
        of_any!(self, fabric => &fabric.pfc_at)
    }

    /// The priority flow control of a switch, if it has it.
    pub fn pfc(&self, switch: &str) -> Option<&Pfc> {
        first_fit(self.pfc_at(), switch)
    }

    /// Queue of each host's own port.
    pub const fn host_buffer(&self) -> Buffer {
        of_any!(self, fabric => fabric.host_buffer)
    }

    /// The link of each host to its switch.
    const fn host_link(&self) -> &Link {
        match self {
            Fabric::Dumbbell(fabric) => &fabric.access,
            Fabric::Tree(fabric) => &fabric.host_link,
            Fabric::LeafSpine(fabric) => &fabric.host_link,
            Fabric::FatTree(fabric) => &fabric.host_link,
            Fabric::Graph(fabric) => &fabric.host_link,
        }
    }

    /// What a load of 1 is for a traffic between these hosts: by default the rate of a dumbbell's
    /// bottleneck, elsewhere those of the sources' links.
    pub fn full_load(&self, of: Option<LoadOf>, from: &[usize], to: &[usize]) -> Rate {
        let sum = |hosts: &[usize], are_sources| {
            let rates = hosts
                .iter()
                .map(|host| self.host_rate(*host, are_sources).0);
            Rate(rates.sum())
        };
        match (of, self) {
            (None | Some(LoadOf::Bottleneck), Fabric::Dumbbell(fabric)) => {
                self.rate_of(BOTTLENECK, fabric.bottleneck.rate)
            }
            (Some(LoadOf::Destinations), _) => sum(to, false),
            _ => sum(from, true),
        }
    }

    /// The rate of the link from a host that is a source, or to one that is none.
    fn host_rate(&self, host: usize, is_source: bool) -> Rate {
        let own = match self {
            Fabric::Graph(fabric) => {
                let edge = fabric.net.places[host].1;
                edge.and_then(|edge| fabric.edges[edge].rate)
            }
            _ => None,
        };
        let rate = own.unwrap_or(self.host_link().rate);
        if self.port_at().is_empty() {
            return rate;
        }
        let (host, switch) = (self.host_name(host), self.switch_of(host));
        match is_source {
            true => self.rate_of(&port(&host, &switch), rate),
            false => self.rate_of(&port(&switch, &host), rate),
        }
    }

    /// The rate of a port, which is that of its `link` unless it differs.
    fn rate_of(&self, port: &str, link: Rate) -> Rate {
        let change = self.port_change(port);
        change.and_then(|change| change.rate).unwrap_or(link)
    }

    /// All links, with their keys.
    pub fn links(&self) -> Vec<(&'static str, &Link)> {
        match self {
            Fabric::Dumbbell(fabric) => [
                ("access", &fabric.access),
                ("bottleneck", &fabric.bottleneck),
            ]
            .into_iter()
            .chain(fabric.rack_link.as_ref().map(|link| ("rack_link", link)))
            .collect(),
            Fabric::Tree(fabric) => vec![
                ("host_link", &fabric.host_link),
                ("rack_link", &fabric.rack_link),
                ("core_link", &fabric.core_link),
            ],
            Fabric::LeafSpine(fabric) => vec![
                ("host_link", &fabric.host_link),
                ("spine_link", &fabric.spine_link),
            ],
            Fabric::FatTree(FatTree {
                host_link,
                switch_link,
                ..
            })
            | Fabric::Graph(Graph {
                host_link,
                switch_link,
                ..
            }) => std::iter::once(("host_link", host_link))
                .chain(switch_link.as_ref().map(|link| ("switch_link", link)))
                .collect(),
        }
    }
}

impl Dumbbell {
    /// The link of each rack.
    pub fn rack_link(&self) -> &Link {
        self.rack_link.as_ref().unwrap_or(&self.access)
    }

    /// Senders in each rack; all of them without racks.
    pub fn senders_per_rack(&self) -> u32 {
        self.senders / self.racks.max(1)
    }
}

impl FatTree {
    /// The link between switches.
    pub fn switch_link(&self) -> &Link {
        self.switch_link.as_ref().unwrap_or(&self.host_link)
    }
}
