// SPDX-License-Identifier: Apache-2.0
//! Cutting a fabric into shards that only meet over links with a delay.

use crate::fabric::{Fabric, LinkSpec};
use penstock_scenario::units::Time;

/// Which shard each node and each port belongs to.
#[derive(Clone, Debug)]
pub struct Partition {
    /// By node; [`Partition::SHARED`] for a switch whose ports belong to several shards.
    nodes: Vec<u16>,
    /// The shard of each link's port.
    ports: Vec<u16>,
    shards: usize,
    lookahead: Time,
}

impl Partition {
    /// The owner of a switch whose ports belong to several shards.
    pub const SHARED: u16 = u16::MAX;

    /// The fabric as one shard.
    pub fn whole(fabric: &Fabric) -> Partition {
        Partition {
            nodes: vec![0; fabric.nodes.len()],
            ports: vec![0; fabric.links.len()],
            shards: 1,
            lookahead: Time::NEVER,
        }
    }

    /// The fabric as `shards` shards, or as many as it has switches with hosts, if those are fewer.
    ///
    /// Racks stay whole, and a switch whose cables all lead to one shard belongs to it. Any other
    /// switch is shared: each of its ports belongs to the shard it leads to. Where `shares` is false
    /// such switches are dealt out to the shards in turn instead. A fabric in which a link between
    /// shards would have no delay stays one shard.
    pub fn new(fabric: &Fabric, shards: usize, shares: bool) -> Partition {
        let mut edges: Vec<u32> = host_cables(fabric).map(|(_, switch)| switch).collect();
        edges.sort_unstable();
        edges.dedup();
        let shards = shards.min(edges.len());
        if shards < 2 {
            return Partition::whole(fabric);
        }
        let mut nodes = vec![Partition::SHARED; fabric.nodes.len()];
        for (rank, edge) in edges.iter().enumerate() {
            nodes[*edge as usize] = (rank * shards / edges.len()) as u16;
        }
        for (host, switch) in host_cables(fabric) {
            nodes[host as usize] = nodes[switch as usize];
        }
        let mut dealt = 0;
        for switch in fabric.hosts..fabric.nodes.len() {
            if nodes[switch] == Partition::SHARED {
                let mut neighbours = neighbours(fabric, &nodes, switch);
                neighbours.sort_unstable();
                neighbours.dedup();
                if let [only] = neighbours[..] {
                    nodes[switch] = only;
                } else if !shares {
                    nodes[switch] = (dealt % shards) as u16;
                    dealt += 1;
                }
            }
        }
        let owner_of_port = |(number, link): (usize, &LinkSpec)| {
            let ends = [link.from, link.to].map(|node| nodes[node as usize]);
            let owner = ends.into_iter().find(|shard| *shard != Partition::SHARED);
            owner.unwrap_or((number / 2 % shards) as u16)
        };
        let ports: Vec<u16> = fabric.links.iter().enumerate().map(owner_of_port).collect();
        let crosses = |(link, port): &(&LinkSpec, &u16)| nodes[link.to as usize] != **port;
        let crossing = fabric.links.iter().zip(&ports).filter(crosses);
        match crossing.map(|(link, _)| link.delay).min() {
            Some(Time::ZERO) | None => Partition::whole(fabric),
            Some(lookahead) => Partition {
                nodes,
                ports,
                shards,
                lookahead,
            },
        }
    }

    /// How many shards there are.
    pub fn shards(&self) -> usize {
        self.shards
    }

    /// Least delay of a link that may lead from one shard to another: what leaves a shard arrives
    /// later than this. [`Time::NEVER`] for one shard.
    pub fn lookahead(&self) -> Time {
        self.lookahead
    }

    /// The shard of a node, or [`Partition::SHARED`]; a host always has one.
    pub fn of_node(&self, node: u32) -> u16 {
        self.nodes[node as usize]
    }

    /// The shard of a link's port.
    pub fn of_port(&self, link: u32) -> u16 {
        self.ports[link as usize]
    }
}

/// The shards that a switch's cables lead to, as far as they are known.
fn neighbours(fabric: &Fabric, nodes: &[u16], switch: usize) -> Vec<u16> {
    let leaving = fabric
        .links
        .iter()
        .filter(|link| link.from as usize == switch);
    let shards = leaving.map(|link| nodes[link.to as usize]);
    shards.filter(|shard| *shard != Partition::SHARED).collect()
}

/// Hosts and the switches they are on.
fn host_cables(fabric: &Fabric) -> impl Iterator<Item = (u32, u32)> {
    let cables = fabric.links.iter().map(|link| (link.from, link.to));
    cables.filter(|(from, _)| fabric.is_host(*from))
}
