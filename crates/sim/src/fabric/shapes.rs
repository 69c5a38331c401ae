// SPDX-License-Identifier: Apache-2.0
//! The shapes of fabrics that scenarios name.

use super::{Cable, Fabric};
use penstock_scenario::Ecmp;
use penstock_scenario::units::Buffer;

/// A cable and what the switch ports on it can queue.
pub type Port = (Cable, Buffer);

impl Fabric {
    fn with_hosts(
        names: impl Iterator<Item = String>,
        longest: usize,
        host_buffer: Buffer,
    ) -> Fabric {
        let nodes: Vec<String> = names.collect();
        Fabric {
            hosts: nodes.len(),
            nodes,
            links: Vec::new(),
            is_symmetric: true,
            ecmp: Ecmp::Flow,
            longest,
            host_buffer,
        }
    }

    /// Nodes by name, `longest` links on the longest path, and the cables between nodes by their index.
    pub fn graph(
        hosts: &[String],
        switches: &[String],
        longest: usize,
        host_buffer: Buffer,
        cables: Vec<(u32, u32, Port)>,
    ) -> Fabric {
        let mut fabric = Fabric::with_hosts(hosts.iter().cloned(), longest, host_buffer);
        for name in switches {
            fabric.add(name.clone());
        }
        for (a, b, port) in cables {
            fabric.connect(a, b, port);
        }
        fabric
    }

    /// Senders and receivers on two switches, with one cable, the bottleneck, between them. Link 0
    /// is the bottleneck towards the receivers. Counts of senders, receivers and racks; with racks,
    /// the senders are on rack switches below the left one. Ports of hosts, racks and the bottleneck.
    pub fn dumbbell(
        [senders, receivers, racks]: [usize; 3],
        hosts: Buffer,
        [access, rack, bottleneck]: [Port; 3],
    ) -> Fabric {
        let names = (1..=senders).map(|n| format!("sender{n}"));
        let names = names.chain((1..=receivers).map(|n| format!("receiver{n}")));
        let mut fabric = Fabric::with_hosts(names, if racks > 0 { 4 } else { 3 }, hosts);
        let left = fabric.add("left".into());
        let right = fabric.add("right".into());
        fabric.connect(left, right, bottleneck);
        let first_rack = fabric.nodes.len() as u32;
        for number in 1..=racks {
            let switch = fabric.add(format!("rack{number}"));
            fabric.connect(switch, left, rack);
        }
        for host in 0..senders + receivers {
            let switch = match host {
                _ if host >= senders => right,
                _ if racks > 0 => first_rack + (host * racks / senders) as u32,
                _ => left,
            };
            fabric.connect(host as u32, switch, access);
        }
        fabric
    }

    fn racks(
        racks: usize,
        hosts_each: usize,
        name: &str,
        longest: usize,
        hosts: Buffer,
        port: Port,
    ) -> Fabric {
        let names = (1..=racks * hosts_each).map(|n| format!("host{n}"));
        let mut fabric = Fabric::with_hosts(names, longest, hosts);
        for number in 1..=racks {
            let switch = fabric.add(format!("{name}{number}"));
            for host in (number - 1) * hosts_each..number * hosts_each {
                fabric.connect(host as u32, switch, port);
            }
        }
        fabric
    }

    /// Adds `count` switches, each joined to all nodes of `below`.
    fn level(&mut self, name: &str, count: usize, below: std::ops::Range<u32>, port: Port) {
        for number in 1..=count {
            let switch = self.add(format!("{name}{number}"));
            for lower in below.clone() {
                self.connect(lower, switch, port);
            }
        }
    }

    /// The single-rooted tree of SICC §5.2: every rack switch to every aggregation switch, every
    /// aggregation switch to every core. Counts of cores, aggregations, racks and hosts a rack;
    /// ports of hosts, racks and cores.
    pub fn tree(
        [cores, aggregations, racks, hosts_each]: [usize; 4],
        hosts: Buffer,
        [host, rack, core]: [Port; 3],
    ) -> Fabric {
        let mut fabric = Fabric::racks(racks, hosts_each, "rack", 6, hosts, host);
        let first_rack = fabric.hosts as u32;
        let first_aggregation = first_rack + racks as u32;
        fabric.level("agg", aggregations, first_rack..first_aggregation, rack);
        let first_core = first_aggregation + aggregations as u32;
        fabric.level("core", cores, first_aggregation..first_core, core);
        fabric
    }

    /// Every leaf switch to every spine switch. Counts of leaves, spines and hosts a leaf; ports of
    /// hosts and spines.
    pub fn leaf_spine(
        [leaves, spines, hosts_each]: [usize; 3],
        hosts: Buffer,
        [host, spine]: [Port; 2],
    ) -> Fabric {
        let mut fabric = Fabric::racks(leaves, hosts_each, "leaf", 4, hosts, host);
        let first_leaf = fabric.hosts as u32;
        fabric.level(
            "spine",
            spines,
            first_leaf..first_leaf + leaves as u32,
            spine,
        );
        fabric
    }

    /// The k-ary fat-tree (Al-Fares et al., SIGCOMM 2008): `k` pods of `k/2` edge and `k/2`
    /// aggregation switches, `(k/2)^2` cores, `k^3/4` hosts.
    pub fn fat_tree(k: usize, hosts: Buffer, host: Port, switch: Port) -> Fabric {
        let half = k / 2;
        let names = (1..=k * half * half).map(|n| format!("host{n}"));
        let mut fabric = Fabric::with_hosts(names, 6, hosts);
        let mut aggregations = Vec::new();
        for pod in 1..=k {
            let first_edge = fabric.nodes.len() as u32;
            for number in 1..=half {
                let edge = fabric.add(format!("pod{pod}-edge{number}"));
                let first_host = ((pod - 1) * half + number - 1) * half;
                for host_number in first_host..first_host + half {
                    fabric.connect(host_number as u32, edge, host);
                }
            }
            aggregations.push(fabric.nodes.len() as u32);
            fabric.level(
                &format!("pod{pod}-agg"),
                half,
                first_edge..first_edge + half as u32,
                switch,
            );
        }
        for number in 0..half * half {
            let core = fabric.add(format!("core{}", number + 1));
            for first in &aggregations {
                fabric.connect(first + (number / half) as u32, core, switch);
            }
        }
        fabric
    }
}
