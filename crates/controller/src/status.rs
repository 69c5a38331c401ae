// SPDX-License-Identifier: Apache-2.0
//! What a running controller knows and did.

use crate::incast::Counters;
use crate::network::Controller;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// A port that is watched.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Port {
    /// The queue that was reported last.
    pub queue_bytes: u32,
    /// Flows through it.
    pub flows: u64,
    /// Times that incast was found ahead of it.
    pub incasts: u64,
}

/// A controller at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// Switches that are known, connected or not, hexadecimal.
    pub switches: Vec<String>,
    /// Those of them that are connected.
    #[serde(default)]
    pub connected: Vec<String>,
    /// How many of them take rules from this controller.
    pub written: usize,
    /// Links between them: switch and port of both ends.
    pub links: Vec<String>,
    /// Hosts by their address of Ethernet: switch and port.
    pub hosts: BTreeMap<String, String>,
    /// Whether the switches have the rules for all of these.
    pub settled: bool,
    /// What was seen and done.
    #[serde(flatten)]
    pub counters: Counters,
    /// The ports that are watched: switch and port.
    pub ports: BTreeMap<String, Port>,
    /// Messages with notices that left as Ethernet frames.
    #[serde(default)]
    pub frames: u64,
    /// Messages that were refused, by the agent's number.
    pub refused: BTreeMap<u16, u64>,
}

impl Status {
    /// That of a controller.
    pub fn of(controller: &Controller) -> Status {
        let fabric = controller.fabric();
        let place = |at: crate::fabric::Place| format!("{:016x}:{}", at.datapath, at.port);
        let datapath = |one: u64| format!("{one:016x}");
        Status {
            switches: fabric.switches().map(datapath).collect(),
            connected: controller.connected().into_iter().map(datapath).collect(),
            written: controller.written(),
            links: fabric
                .links()
                .map(|(from, to)| format!("{} {}", place(from), place(to)))
                .collect(),
            hosts: fabric
                .hosts()
                .map(|(host, at)| (host.to_string(), place(at)))
                .collect(),
            settled: controller.is_settled(),
            counters: controller.counters(),
            ports: controller
                .ports()
                .map(|(at, port)| (place(at), port))
                .collect(),
            frames: controller.frames(),
            refused: controller.refused().collect(),
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let switches = self.switches.join(", ");
        writeln!(
            f,
            "switches  {switches} ({} connected, rules written to {})",
            self.connected.len(),
            self.written
        )?;
        for link in &self.links {
            writeln!(f, "link      {link}")?;
        }
        for (host, place) in &self.hosts {
            writeln!(f, "host      {host}  {place}")?;
        }
        writeln!(
            f,
            "copies    {} ({} not counted)",
            self.counters.copies, self.counters.ignored_syns
        )?;
        writeln!(f, "queues    {}", self.counters.queues)?;
        for (place, port) in &self.ports {
            let Port {
                queue_bytes,
                flows,
                incasts,
            } = port;
            writeln!(
                f,
                "port      {place}  {queue_bytes} bytes queued, {flows} flows, {incasts} incasts"
            )?;
        }
        writeln!(f, "notices   {}", self.counters.notices)?;
        let refused: u64 = self.refused.values().sum();
        write!(f, "refused   {refused}")
    }
}
