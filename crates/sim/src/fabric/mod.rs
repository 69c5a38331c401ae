// SPDX-License-Identifier: Apache-2.0
//! The fabric: hosts, switches and the cables between them, as data.
//!
//! `shapes` builds the fabrics that scenarios name; [`Routes`] finds the paths between hosts, with
//! equal-cost multi-path. What moves in a fabric is a [`Network`](crate::network::Network).

mod routes;
mod shapes;

use penstock_scenario::Ecmp;
use penstock_scenario::units::Buffer;
use penstock_scenario::units::{Rate, Time};
pub use routes::Routes;

/// One direction of a cable with the output port that feeds it. Links `2n` and `2n + 1` are the two
/// directions of one cable.
#[derive(Clone, Debug)]
pub struct LinkSpec {
    /// Index of the node whose port this is.
    pub from: u32,
    /// Index of the node at the far end.
    pub to: u32,
    /// Speed of the port.
    pub rate: Rate,
    /// Propagation delay.
    pub delay: Time,
    /// Up to how much longer a packet takes, at random.
    pub jitter: Time,
    /// What the port can queue.
    pub buffer: Buffer,
    /// Longest packet, headers counted.
    pub mtu: u32,
    /// How often it is chosen among links that lead as near, where they differ.
    pub weight: u32,
}

/// Rate and delay of a cable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cable {
    /// Bits per second, each direction.
    pub rate: Rate,
    /// Propagation delay, one way.
    pub delay: Time,
    /// Up to how much longer a packet takes, at random.
    pub jitter: Time,
    /// Longest packet, headers counted.
    pub mtu: u32,
}

/// Any packet fits.
pub const NO_MTU: u32 = u32::MAX;

/// Hosts come first among the nodes, then the switches.
#[derive(Clone, Debug)]
pub struct Fabric {
    /// Names of all nodes.
    pub nodes: Vec<String>,
    /// How many of them are hosts.
    pub hosts: usize,
    /// All links.
    pub links: Vec<LinkSpec>,
    /// Whether both directions of a connection take the same switches.
    pub is_symmetric: bool,
    /// How switches choose among links that lead equally near.
    pub ecmp: Ecmp,
    longest: usize,
    host_buffer: Buffer,
}

impl Fabric {
    /// Whether `node` is a host.
    pub fn is_host(&self, node: u32) -> bool {
        (node as usize) < self.hosts
    }

    /// Links on the longest of the paths between hosts.
    pub fn longest_path(&self) -> usize {
        self.longest
    }

    /// `from->to`, as ports are named in scenarios and reports.
    pub fn port_name(&self, link: u32) -> String {
        let link = &self.links[link as usize];
        format!(
            "{}->{}",
            self.nodes[link.from as usize], self.nodes[link.to as usize]
        )
    }

    fn add(&mut self, name: String) -> u32 {
        self.nodes.push(name);
        self.nodes.len() as u32 - 1
    }

    /// A cable between `a` and `b`.
    fn connect(&mut self, a: u32, b: u32, (cable, buffer): shapes::Port) {
        for (from, to) in [(a, b), (b, a)] {
            let buffer = if self.is_host(from) {
                self.host_buffer
            } else {
                buffer
            };
            self.links.push(LinkSpec {
                from,
                to,
                rate: cable.rate,
                delay: cable.delay,
                jitter: cable.jitter,
                buffer,
                mtu: cable.mtu,
                weight: (cable.rate.0 / 1_000_000).clamp(1, u32::MAX.into()) as u32,
            });
        }
    }
}
