// SPDX-License-Identifier: Apache-2.0
//! The packets of a port and what senders did, as rows with names.

use super::measured;
use crate::fabric::Fabric;
use crate::network::{TracePlan, TracedConnection, TracedPacket};
use crate::packet::FlowId;
use crate::simulation::{Happening, HostEvent, Results};
use penstock_scenario::units::Time;
use penstock_scenario::{BOTTLENECK, Scenario};
use serde::Serialize;
use std::collections::HashMap;

/// A packet at the recorded port.
#[derive(Clone, Debug, Serialize)]
pub struct PacketRow {
    /// When it came, seconds.
    pub time_s: f64,
    /// When its last bit had left, seconds; `None`: it was lost, or waits at the end of the run.
    pub left_s: Option<f64>,
    /// Why it was lost; `None`: it was not.
    pub lost: Option<&'static str>,
    /// Name of the traffic; `None`: datagrams.
    pub traffic: Option<String>,
    /// Number of the client within the traffic.
    pub flow: Option<u32>,
    /// Number of the connection.
    pub connection: u32,
    /// Host that sends the packet.
    pub source: String,
    /// Host that receives it.
    pub destination: String,
    /// Whether it leaves by the port; else it came in next to it.
    pub forward: bool,
    /// Whether it is the opener's.
    pub opener: bool,
    /// Sequence number.
    pub seq: u32,
    /// Acknowledgement number.
    pub ack: u32,
    /// Payload, bytes.
    pub payload: u16,
    /// Bytes of the IP and TCP headers.
    pub header: u8,
    /// The simulator's flags ([`crate::packet::flag`]).
    pub flags: u16,
    /// The window field as it came.
    pub window: u16,
    /// The window field as it went on.
    pub window_after: u16,
    /// Timestamp.
    pub ts_val: u32,
    /// Timestamp echoed.
    pub ts_ecr: u32,
    /// Of a SYN what it offers, as [`crate::packet::SynOptions::pack`] has it.
    pub syn_options: u32,
    /// SACK blocks, as in "10-20 30-40".
    pub sack: String,
    /// Bytes in the queue that it met.
    pub queue_bytes: u64,
    /// Whether the port marked it.
    pub marked: bool,
    /// Whether the port made it.
    pub own: bool,
}

/// What happened at a sender.
#[derive(Clone, Debug, Serialize)]
pub struct EventRow {
    /// Seconds.
    pub time_s: f64,
    /// Number of the connection.
    pub connection: u32,
    /// The host.
    pub host: String,
    /// What: "window", "rto", "syn_timeout", "probe", "window_probe", "delayed_ack", "retransmit".
    pub event: &'static str,
    /// Congestion window.
    pub cwnd_bytes: Option<u32>,
    /// Window that the peer offers.
    pub window_bytes: Option<u32>,
    /// Sent and not acknowledged.
    pub in_flight_bytes: Option<u32>,
}

/// What the scenario has recorded of a port.
pub fn plan(scenario: &Scenario, fabric: &Fabric, ports: &[u32]) -> Option<TracePlan> {
    let packets = scenario.measure.packets.as_ref()?;
    let link = match packets.port.as_deref() {
        None => *ports.first()?,
        Some(name) => {
            let name = if name == "bottleneck" {
                BOTTLENECK
            } else {
                name
            };
            (0..fabric.links.len() as u32).find(|link| fabric.port_name(*link) == name)?
        }
    };
    Some(TracePlan {
        link,
        from: packets.from,
        most: packets.most as usize,
        traffic: packets
            .traffic
            .as_ref()
            .and_then(|name| scenario.traffic.get_index_of(name))
            .map(|index| index as u32),
    })
}

/// The name of the port that a scenario has recorded.
pub fn recorded_port(scenario: &Scenario, inputs: &super::Inputs) -> Option<String> {
    let fabric = super::build_fabric(&scenario.fabric);
    let plan = plan(scenario, &fabric, &measured(scenario, &fabric, inputs))?;
    Some(fabric.port_name(plan.link))
}

type Connection = (TracedConnection, Option<(u32, u32)>);

/// Finds whose a packet is: numbers of connections are used again.
struct Owners<'a> {
    connections: &'a [Connection],
    by_number: HashMap<usize, Vec<usize>>,
}

impl<'a> Owners<'a> {
    fn new(connections: &'a [Connection]) -> Owners<'a> {
        let mut by_number: HashMap<usize, Vec<usize>> = HashMap::new();
        for (index, (connection, _)) in connections.iter().enumerate() {
            let number = connection.data.connection();
            by_number.entry(number).or_default().push(index);
        }
        Owners {
            connections,
            by_number,
        }
    }

    fn of(&self, flow: FlowId, time: Time) -> Option<(u32, &'a Connection)> {
        let all = self.by_number.get(&flow.connection())?;
        let is_open = |index: &&usize| self.connections[**index].0.time <= time;
        let index = all.iter().rev().find(is_open)?;
        Some((*index as u32, &self.connections[*index]))
    }
}

/// The rows of all packets and events, by time.
pub fn rows(
    scenario: &Scenario,
    fabric: &Fabric,
    results: &mut Results,
) -> (Vec<PacketRow>, Vec<EventRow>) {
    results
        .connections
        .sort_by_key(|(connection, _)| connection.time);
    let owners = Owners::new(&results.connections);
    let packet = |traced: &TracedPacket| packet_row(scenario, fabric, &owners, traced);
    let packets: Vec<PacketRow> = results.packets.iter().filter_map(packet).collect();
    let event = |event: &HostEvent| event_row(fabric, &owners, event);
    let events = results.events.iter().filter_map(event).collect();
    (packets, events)
}

fn packet_row(
    scenario: &Scenario,
    fabric: &Fabric,
    owners: &Owners,
    traced: &TracedPacket,
) -> Option<PacketRow> {
    let packet = &traced.packet;
    let (number, (connection, client)) = owners.of(packet.flow, traced.time)?;
    let (source, destination) = match packet.flow == connection.data {
        true => (connection.source, connection.destination),
        false => (connection.destination, connection.source),
    };
    let name = |host: u32| fabric.nodes[host as usize].clone();
    let traffic = client.and_then(|(traffic, _)| scenario.traffic.get_index(traffic as usize));
    let is_syn = packet.has(crate::packet::flag::SYN);
    let blocks = traced.sack.iter();
    let blocks: Vec<String> = blocks.map(|b| format!("{}-{}", b.left, b.right)).collect();
    Some(PacketRow {
        time_s: traced.time.as_secs_f64(),
        left_s: traced.left.map(Time::as_secs_f64),
        lost: traced.lost.map(|reason| reason.name()),
        traffic: traffic.map(|(name, _)| name.clone()),
        flow: client.map(|(_, flow)| flow),
        connection: number,
        source: name(source),
        destination: name(destination),
        forward: traced.is_forward,
        opener: packet.flow.is_opener(),
        seq: packet.seq,
        ack: packet.ack,
        payload: packet.payload,
        header: packet.header,
        flags: packet.flags,
        window: packet.window,
        window_after: traced.window,
        ts_val: packet.ts_val,
        ts_ecr: packet.ts_ecr,
        syn_options: if is_syn { packet.options } else { 0 },
        sack: blocks.join(" "),
        queue_bytes: traced.queue,
        marked: traced.is_marked,
        own: traced.is_own,
    })
}

fn event_row(fabric: &Fabric, owners: &Owners, event: &HostEvent) -> Option<EventRow> {
    let (number, (connection, _)) = owners.of(event.flow, event.time)?;
    let host = match event.flow == connection.data {
        true => connection.source,
        false => connection.destination,
    };
    let (name, variables) = match event.what {
        Happening::Window {
            cwnd,
            window,
            in_flight,
        } => ("window", Some((cwnd, window, in_flight))),
        Happening::Rto => ("rto", None),
        Happening::SynTimeout => ("syn_timeout", None),
        Happening::Probe => ("probe", None),
        Happening::WindowProbe => ("window_probe", None),
        Happening::DelayedAck => ("delayed_ack", None),
        Happening::Retransmit => ("retransmit", None),
    };
    Some(EventRow {
        time_s: event.time.as_secs_f64(),
        connection: number,
        host: fabric.nodes[host as usize].clone(),
        event: name,
        cwnd_bytes: variables.map(|(cwnd, _, _)| cwnd),
        window_bytes: variables.map(|(_, window, _)| window),
        in_flight_bytes: variables.map(|(_, _, in_flight)| in_flight),
    })
}
