// SPDX-License-Identifier: Apache-2.0
//! How hosts, switches and ports are called, in one place.
//!
//! | fabric | hosts, in order | groups | switches, in order |
//! |---|---|---|---|
//! | dumbbell | `sender1` ... then `receiver1` ... | `senders`, `receivers`, `rack1` ... | `left`, `right`, `rack1` ... |
//! | tree | `host1` ... rack after rack | `rack1` ... | `core1` ..., `agg1` ..., `rack1` ... |
//! | leaf-spine | `host1` ... leaf after leaf | `leaf1` ... | `leaf1` ..., `spine1` ... |
//! | fat-tree | `host1` ... pod after pod, edge after edge | `pod1` ..., `pod1-edge1` ... | `core1` ..., then by pod `pod1-agg1` ..., `pod1-edge1` ... |
//! | graph | those of its edges, switch after switch | each switch with hosts | those of its edges |
//!
//! Names count from 1. The group `all` holds every host. A slice of a group counts from 0 and
//! leaves its end out, as in most programming languages: `senders[0..20]` is `sender1` to
//! `sender20`. A port is called by its two ends: `left->right`, `rack3->host100`, `host1->rack1`.

use std::ops::Range;

use indexmap::IndexMap;

use super::fabric::Fabric;

/// Groups of hosts, each a range of host indices.
pub type Groups = IndexMap<String, Range<usize>>;

fn numbered(prefix: &str, count: u32) -> impl Iterator<Item = String> {
    (1..=count).map(move |i| format!("{prefix}{i}"))
}

/// `count` groups of `size` hosts each, from host `first` on.
fn split(groups: &mut Groups, prefix: &str, count: u32, size: usize, first: usize) {
    for (i, name) in numbered(prefix, count).enumerate() {
        let start = first + i * size;
        groups.insert(name, start..start + size);
    }
}

/// The name of the port at `from` that sends to `to`.
pub fn port(from: &str, to: &str) -> String {
    format!("{from}->{to}")
}

impl Fabric {
    /// How many hosts there are.
    pub fn host_count(&self) -> u64 {
        match self {
            Fabric::Dumbbell(f) => u64::from(f.senders) + u64::from(f.receivers),
            Fabric::Tree(f) => u64::from(f.racks) * u64::from(f.hosts_per_rack),
            Fabric::LeafSpine(f) => u64::from(f.leaves) * u64::from(f.hosts_per_leaf),
            Fabric::FatTree(f) => (u64::from(f.k) * u64::from(f.k)).saturating_mul(f.k.into()) / 4,
            Fabric::Graph(f) => f.net.hosts.len() as u64,
        }
    }

    /// The name of the host of this index.
    pub fn host_name(&self, host: usize) -> String {
        match self {
            Fabric::Dumbbell(f) if host < f.senders as usize => format!("sender{}", host + 1),
            Fabric::Dumbbell(f) => format!("receiver{}", host - f.senders as usize + 1),
            Fabric::Graph(f) => f.net.hosts[host].clone(),
            _ => format!("host{}", host + 1),
        }
    }

    /// The hosts' names, by index.
    pub fn hosts(&self) -> Vec<String> {
        match self {
            Fabric::Dumbbell(f) => numbered("sender", f.senders)
                .chain(numbered("receiver", f.receivers))
                .collect(),
            Fabric::Graph(f) => f.net.hosts.clone(),
            _ => (1..=self.host_count())
                .map(|i| format!("host{i}"))
                .collect(),
        }
    }

    /// The groups of hosts, `all` first.
    pub fn groups(&self) -> Groups {
        let mut groups = Groups::new();
        let all = self.host_count() as usize;
        groups.insert("all".to_owned(), 0..all);
        match self {
            Fabric::Dumbbell(f) => {
                let senders = f.senders as usize;
                groups.insert("senders".to_owned(), 0..senders);
                groups.insert("receivers".to_owned(), senders..all);
                split(
                    &mut groups,
                    "rack",
                    f.racks,
                    f.senders_per_rack() as usize,
                    0,
                );
            }
            Fabric::Tree(f) => split(&mut groups, "rack", f.racks, f.hosts_per_rack as usize, 0),
            Fabric::LeafSpine(f) => {
                split(&mut groups, "leaf", f.leaves, f.hosts_per_leaf as usize, 0);
            }
            Fabric::FatTree(f) => {
                let half = f.k / 2;
                let edge = half as usize;
                split(&mut groups, "pod", f.k, edge * edge, 0);
                for pod in 1..=f.k {
                    let first = (pod as usize - 1) * edge * edge;
                    split(&mut groups, &format!("pod{pod}-edge"), half, edge, first);
                }
            }
            Fabric::Graph(f) => {
                for (host, (switch, _)) in f.net.places.iter().enumerate() {
                    let name = &f.net.switches[*switch];
                    let group = groups.entry(name.clone()).or_insert(host..host);
                    group.end = host + 1;
                }
            }
        }
        groups
    }

    /// The switches' names, in the order of the table above.
    pub fn switches(&self) -> Vec<String> {
        match self {
            Fabric::Dumbbell(f) => ["left".to_owned(), "right".to_owned()]
                .into_iter()
                .chain(numbered("rack", f.racks))
                .collect(),
            Fabric::Tree(f) => numbered("core", f.cores)
                .chain(numbered("agg", f.aggregations))
                .chain(numbered("rack", f.racks))
                .collect(),
            Fabric::LeafSpine(f) => numbered("leaf", f.leaves)
                .chain(numbered("spine", f.spines))
                .collect(),
            Fabric::FatTree(f) => {
                let half = f.k / 2;
                let mut names: Vec<String> = numbered("core", half * half).collect();
                for pod in 1..=f.k {
                    names.extend(numbered(&format!("pod{pod}-agg"), half));
                    names.extend(numbered(&format!("pod{pod}-edge"), half));
                }
                names
            }
            Fabric::Graph(f) => f.net.switches.clone(),
        }
    }

    /// The switch that the host of this index hangs on.
    pub fn switch_of(&self, host: usize) -> String {
        match self {
            Fabric::Dumbbell(f) if host < f.senders as usize && f.racks > 0 => {
                format!("rack{}", host / f.senders_per_rack() as usize + 1)
            }
            Fabric::Dumbbell(f) if host < f.senders as usize => "left".to_owned(),
            Fabric::Dumbbell(_) => "right".to_owned(),
            Fabric::Tree(f) => format!("rack{}", host / f.hosts_per_rack as usize + 1),
            Fabric::LeafSpine(f) => format!("leaf{}", host / f.hosts_per_leaf as usize + 1),
            Fabric::FatTree(f) => {
                let half = f.k as usize / 2;
                let edge = host / half;
                format!("pod{}-edge{}", edge / half + 1, edge % half + 1)
            }
            Fabric::Graph(f) => f.net.switches[f.net.places[host].0].clone(),
        }
    }

    /// How many links join switches.
    pub fn switch_link_count(&self) -> u64 {
        match self {
            Fabric::Dumbbell(f) => 1 + u64::from(f.racks),
            Fabric::Tree(f) => {
                u64::from(f.aggregations).saturating_mul(u64::from(f.racks) + u64::from(f.cores))
            }
            Fabric::LeafSpine(f) => u64::from(f.leaves) * u64::from(f.spines),
            Fabric::FatTree(f) => {
                let half = u64::from(f.k / 2);
                2 * u64::from(f.k).saturating_mul(half * half)
            }
            Fabric::Graph(f) => f.net.cables.len() as u64,
        }
    }

    /// The pairs of switches that a link joins, the lower one first. In a fat-tree the aggregation
    /// switches of the same number share the cores `(n-1)*k/2 + 1` to `n*k/2`.
    pub fn switch_links(&self) -> Vec<(String, String)> {
        let mesh = |lower: &str, lowers: u32, upper: &str, uppers: u32| {
            numbered(lower, lowers)
                .flat_map(|from| numbered(upper, uppers).map(move |to| (from.clone(), to)))
                .collect::<Vec<_>>()
        };
        match self {
            Fabric::Dumbbell(f) => std::iter::once(("left".to_owned(), "right".to_owned()))
                .chain(numbered("rack", f.racks).map(|rack| (rack, "left".to_owned())))
                .collect(),
            Fabric::Tree(f) => {
                let mut links = mesh("rack", f.racks, "agg", f.aggregations);
                links.extend(mesh("agg", f.aggregations, "core", f.cores));
                links
            }
            Fabric::LeafSpine(f) => mesh("leaf", f.leaves, "spine", f.spines),
            Fabric::FatTree(f) => {
                let half = f.k / 2;
                let mut links = Vec::new();
                for pod in 1..=f.k {
                    let agg = format!("pod{pod}-agg");
                    links.extend(mesh(&format!("pod{pod}-edge"), half, &agg, half));
                    links.extend((0..half * half).map(|core| {
                        let from = format!("{agg}{}", core / half + 1);
                        (from, format!("core{}", core + 1))
                    }));
                }
                links
            }
            Fabric::Graph(f) => {
                let name = |switch: &usize| f.net.switches[*switch].clone();
                let cables = f.net.cables.iter();
                cables.map(|(a, b, _)| (name(a), name(b))).collect()
            }
        }
    }

    /// The names of all ports, the switches' among themselves first.
    pub fn ports(&self) -> Vec<String> {
        let hosts = (0..self.host_count() as usize)
            .map(|host| (self.host_name(host), self.switch_of(host)));
        let links = self.switch_links().into_iter().chain(hosts);
        links
            .flat_map(|(lower, upper)| [port(&lower, &upper), port(&upper, &lower)])
            .collect()
    }
}
