// SPDX-License-Identifier: Apache-2.0
//! A scenario's fabric as data: what another substrate needs to build the same network.

use super::{Inputs, fabric, ports};
use crate::fabric::NO_MTU;
use indexmap::IndexMap;
use penstock_scenario::params::FULL_PACKET;
use penstock_scenario::units::Buffer;
use penstock_scenario::{Ecmp, PortChange, Scenario, Selector};
use serde::Serialize;

/// Nodes and ports of a scenario's fabric.
#[derive(Debug, Serialize)]
pub struct Layout {
    /// Names of the hosts.
    pub hosts: Vec<String>,
    /// Names of the switches.
    pub switches: Vec<String>,
    /// The longest round trip by propagation alone, as the policies know it, seconds.
    pub rtt_s: f64,
    /// Every port; the two of a cable follow each other.
    pub ports: Vec<Port>,
    /// Hosts that each traffic joins, by its name; a recorded trace has its own.
    pub ends: IndexMap<String, Ends>,
}

/// The hosts that a traffic joins, in the order in which its flows take them.
#[derive(Debug, Serialize)]
pub struct Ends {
    /// Those that send.
    pub from: Vec<String>,
    /// Those that receive.
    pub to: Vec<String>,
}

/// An output port, and the link that it feeds.
#[derive(Debug, Serialize)]
pub struct Port {
    /// The node that sends.
    pub from: String,
    /// The node at the far end.
    pub to: String,
    /// Bits per second.
    pub rate_bps: u64,
    /// Propagation delay, seconds.
    pub delay_s: f64,
    /// Up to how much longer a packet takes, seconds.
    pub jitter_s: f64,
    /// What it can queue, bytes; packets count as full ones.
    pub buffer_bytes: u64,
    /// The same in packets, where the scenario counts packets.
    pub buffer_packets: Option<u32>,
    /// Whether its link fails at times, its switch shares a buffer among ports or has flow control, packets have
    /// paths of their own, or its link has an MTU: what only the simulator has.
    pub loses: bool,
    /// Whether the scheme is put on it.
    pub is_protected: bool,
    /// Whether its queue is measured.
    pub is_measured: bool,
}

impl Layout {
    /// The fabric of `scenario`; `inputs` are the files that it names.
    pub fn of(scenario: &Scenario, inputs: &Inputs) -> Layout {
        let built = fabric::build(&scenario.fabric);
        let protected: Vec<u32> = ports::protected(&scenario.fabric, &built).collect();
        let measured = ports::measured(scenario, &built, inputs);
        let name = |node: u32| built.nodes[node as usize].clone();
        let loses = |link: u32| {
            let change = scenario.fabric.port_change(&built.port_name(link));
            let from = &built.nodes[built.links[link as usize].from as usize];
            change.is_some_and(PortChange::fails)
                || scenario.fabric.shared_buffer(from).is_some()
                || scenario.fabric.pfc(from).is_some()
                || scenario.fabric.ecmp() != Ecmp::Flow
                || built.links[link as usize].mtu != NO_MTU
        };
        let port = |(index, link): (usize, &crate::fabric::LinkSpec)| Port {
            from: name(link.from),
            to: name(link.to),
            rate_bps: link.rate.0,
            delay_s: link.delay.as_secs_f64(),
            jitter_s: link.jitter.as_secs_f64(),
            buffer_bytes: link.buffer.bytes(FULL_PACKET),
            buffer_packets: match link.buffer {
                Buffer::Packets(packets) => Some(packets),
                Buffer::Bytes(_) => None,
            },
            loses: loses(index as u32),
            is_protected: protected.contains(&(index as u32)),
            is_measured: measured.contains(&(index as u32)),
        };
        let hosts = |selector: &Selector| {
            let found = selector.resolve(&scenario.fabric).unwrap_or_default();
            found.into_iter().map(|host| name(host as u32)).collect()
        };
        let ends = scenario.traffic.iter().filter_map(|(name, traffic)| {
            let (from, to) = traffic.ends()?;
            let (from, to) = (hosts(from), hosts(to));
            Some((name.clone(), Ends { from, to }))
        });
        Layout {
            hosts: built.nodes[..built.hosts].to_vec(),
            switches: built.nodes[built.hosts..].to_vec(),
            rtt_s: ports::rtt(&built).as_secs_f64(),
            ports: built.links.iter().enumerate().map(port).collect(),
            ends: ends.collect(),
        }
    }
}
