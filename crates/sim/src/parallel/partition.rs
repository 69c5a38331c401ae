// SPDX-License-Identifier: Apache-2.0
//! A fabric in parts that only meet over links with a delay, so that each can be simulated for so
//! long without a look at the others.

use crate::fabric::{Fabric, LinkSpec};
use penstock_scenario::units::Time;

/// Which part each node and each port belongs to.
#[derive(Clone, Debug)]
pub struct Partition {
    /// By node; [`Partition::SHARED`] for a switch whose ports belong to several parts.
    pub nodes: Vec<u16>,
    /// The part of each link's port.
    pub ports: Vec<u16>,
    /// How many parts there are.
    pub parts: usize,
    /// Least delay of a link that may lead from one part to another: what leaves a part arrives
    /// later than this.
    pub lookahead: Time,
}

impl Partition {
    /// The owner of a switch that several parts share.
    pub const SHARED: u16 = u16::MAX;

    /// The fabric in one part.
    pub fn whole(fabric: &Fabric) -> Partition {
        Partition {
            nodes: vec![0; fabric.nodes.len()],
            ports: vec![0; fabric.links.len()],
            parts: 1,
            lookahead: Time::NEVER,
        }
    }

    /// The fabric in `parts` parts, or in as many as it has switches with hosts, if those are fewer.
    /// Racks stay whole, and a switch whose cables lead to one part belongs to it. A switch between
    /// parts is shared: each of its ports belongs to the part it leads to. Where `shares` is false
    /// such a switch belongs to the one with the fewest of them. The fabric in one part where a link
    /// between parts would have no delay.
    pub fn new(fabric: &Fabric, parts: usize, shares: bool) -> Partition {
        let mut edges: Vec<u32> = host_cables(fabric).map(|(_, switch)| switch).collect();
        edges.sort_unstable();
        edges.dedup();
        let parts = parts.min(edges.len());
        if parts < 2 {
            return Partition::whole(fabric);
        }
        let mut nodes = vec![Partition::SHARED; fabric.nodes.len()];
        for (rank, edge) in edges.iter().enumerate() {
            nodes[*edge as usize] = (rank * parts / edges.len()) as u16;
        }
        for (host, switch) in host_cables(fabric) {
            nodes[host as usize] = nodes[switch as usize];
        }
        let mut between = 0;
        for switch in fabric.hosts..fabric.nodes.len() {
            if nodes[switch] == Partition::SHARED {
                let mut led_to = led_to(fabric, &nodes, switch);
                led_to.sort_unstable();
                led_to.dedup();
                if let [only] = led_to[..] {
                    nodes[switch] = only;
                } else if !shares {
                    nodes[switch] = (between % parts) as u16;
                    between += 1;
                }
            }
        }
        let port = |(number, link): (usize, &LinkSpec)| {
            let ends = [link.from, link.to].map(|node| nodes[node as usize]);
            let owner = ends.into_iter().find(|part| *part != Partition::SHARED);
            owner.unwrap_or((number / 2 % parts) as u16)
        };
        let ports: Vec<u16> = fabric.links.iter().enumerate().map(port).collect();
        let leaves = |(link, port): &(&LinkSpec, &u16)| nodes[link.to as usize] != **port;
        let crossing = fabric.links.iter().zip(&ports).filter(leaves);
        match crossing.map(|(link, _)| link.delay).min() {
            Some(Time::ZERO) | None => Partition::whole(fabric),
            Some(lookahead) => Partition {
                nodes,
                ports,
                parts,
                lookahead,
            },
        }
    }
}

/// The parts that a switch's cables lead to, as far as they are known.
fn led_to(fabric: &Fabric, nodes: &[u16], switch: usize) -> Vec<u16> {
    let own = fabric
        .links
        .iter()
        .filter(|link| link.from as usize == switch);
    let parts = own.map(|link| nodes[link.to as usize]);
    parts.filter(|part| *part != Partition::SHARED).collect()
}

/// Hosts and the switches they are on.
fn host_cables(fabric: &Fabric) -> impl Iterator<Item = (u32, u32)> {
    let cables = fabric.links.iter().map(|link| (link.from, link.to));
    cables.filter(|(from, _)| fabric.is_host(*from))
}
