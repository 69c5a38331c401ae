// SPDX-License-Identifier: Apache-2.0
//! The shapes of fabrics that scenarios name.

use super::{Cable, Fabric};
use crate::network::Buffer;

impl Fabric {
    fn with_hosts(names: impl Iterator<Item = String>, longest: usize) -> Fabric {
        let nodes: Vec<String> = names.collect();
        Fabric { hosts: nodes.len(), nodes, links: Vec::new(), longest }
    }

    /// Senders and receivers on two switches, with one cable, the bottleneck, between them. Link 0
    /// is the bottleneck towards the receivers. `access_buffer` is that of the switches' ports
    /// towards hosts.
    pub fn dumbbell(
        senders: usize,
        receivers: usize,
        access: Cable,
        access_buffer: Buffer,
        bottleneck: Cable,
        bottleneck_buffer: Buffer,
    ) -> Fabric {
        let names = (1..=senders).map(|n| format!("sender{n}"));
        let mut fabric = Fabric::with_hosts(names.chain((1..=receivers).map(|n| format!("receiver{n}"))), 3);
        let left = fabric.add("left".into());
        let right = fabric.add("right".into());
        fabric.connect(left, right, bottleneck, bottleneck_buffer);
        for host in 0..senders + receivers {
            let switch = if host < senders { left } else { right };
            fabric.connect(host as u32, switch, access, access_buffer);
        }
        fabric
    }

    fn racks(racks: usize, hosts: usize, rack: &str, longest: usize, cable: Cable, buffer: Buffer) -> Fabric {
        let mut fabric = Fabric::with_hosts((1..=racks * hosts).map(|n| format!("host{n}")), longest);
        for number in 1..=racks {
            let switch = fabric.add(format!("{rack}{number}"));
            for host in (number - 1) * hosts..number * hosts {
                fabric.connect(host as u32, switch, cable, buffer);
            }
        }
        fabric
    }

    /// The single-rooted tree of SICC §5.2: every rack switch to every aggregation switch, every
    /// aggregation switch to every core switch.
    #[allow(clippy::too_many_arguments)]
    pub fn tree(
        cores: usize,
        aggregations: usize,
        racks: usize,
        hosts_per_rack: usize,
        host: Cable,
        rack: Cable,
        core: Cable,
        buffer: Buffer,
    ) -> Fabric {
        let mut fabric = Fabric::racks(racks, hosts_per_rack, "rack", 6, host, buffer);
        let first_rack = fabric.hosts as u32;
        let first_aggregation = first_rack + racks as u32;
        for number in 1..=aggregations {
            let switch = fabric.add(format!("agg{number}"));
            for rack_switch in first_rack..first_aggregation {
                fabric.connect(rack_switch, switch, rack, buffer);
            }
        }
        let first_core = first_aggregation + aggregations as u32;
        for number in 1..=cores {
            let switch = fabric.add(format!("core{number}"));
            for aggregation in first_aggregation..first_core {
                fabric.connect(aggregation, switch, core, buffer);
            }
        }
        fabric
    }

    /// Every leaf switch to every spine switch.
    pub fn leaf_spine(leaves: usize, spines: usize, hosts_per_leaf: usize, host: Cable, spine: Cable, buffer: Buffer) -> Fabric {
        let mut fabric = Fabric::racks(leaves, hosts_per_leaf, "leaf", 4, host, buffer);
        let first_leaf = fabric.hosts as u32;
        for number in 1..=spines {
            let switch = fabric.add(format!("spine{number}"));
            for leaf in first_leaf..first_leaf + leaves as u32 {
                fabric.connect(leaf, switch, spine, buffer);
            }
        }
        fabric
    }

    /// The k-ary fat-tree (Al-Fares et al., SIGCOMM 2008): `k` pods of `k/2` edge and `k/2`
    /// aggregation switches, `(k/2)^2` core switches, `k^3/4` hosts.
    pub fn fat_tree(k: usize, host: Cable, switch: Cable, buffer: Buffer) -> Fabric {
        let half = k / 2;
        let mut fabric = Fabric::with_hosts((1..=k * half * half).map(|n| format!("host{n}")), 6);
        let mut aggregations = Vec::new();
        for pod in 1..=k {
            let edges: Vec<u32> = (1..=half).map(|n| fabric.add(format!("pod{pod}-edge{n}"))).collect();
            for (number, edge) in edges.iter().enumerate() {
                let first = ((pod - 1) * half + number) * half;
                for host_number in first..first + half {
                    fabric.connect(host_number as u32, *edge, host, buffer);
                }
            }
            for number in 1..=half {
                let aggregation = fabric.add(format!("pod{pod}-agg{number}"));
                aggregations.push(aggregation);
                for edge in &edges {
                    fabric.connect(*edge, aggregation, switch, buffer);
                }
            }
        }
        for number in 0..half * half {
            let core = fabric.add(format!("core{}", number + 1));
            for pod in 0..k {
                fabric.connect(aggregations[pod * half + number / half], core, switch, buffer);
            }
        }
        fabric
    }
}
