// SPDX-License-Identifier: Apache-2.0
//! What a finished simulation has counted.

use super::{HostEvent, JobRecord, Record, Sample, WindowSample};
use crate::controller::ControllerCounters;
use crate::network::{PortCounters, TracedConnection, TracedPacket};

/// What a simulation, or all shards of one, have counted.
pub struct Results {
    /// Transfers begun, in order of their start.
    pub records: Vec<Record>,
    /// Jobs begun, in order of their start.
    pub jobs: Vec<JobRecord>,
    /// Queue lengths, by time, then by link.
    pub samples: Vec<Sample>,
    /// Windows of flows, by time, then by flow.
    pub windows: Vec<WindowSample>,
    /// The link and counters of each port, by link.
    pub ports: Vec<(u32, PortCounters)>,
    /// What the controller did; `None` without one.
    pub controller: Option<ControllerCounters>,
    /// Packets sent on all links.
    pub packet_hops: u64,
    /// ACKs that hosts sent because their delay was over.
    pub delayed_acks: u64,
    /// The packets of the port that is recorded.
    pub packets: Vec<TracedPacket>,
    /// Its connections, with the traffic and number of their clients.
    pub connections: Vec<(TracedConnection, Option<(u32, u32)>)>,
    /// What sockets did, if that is recorded, by time.
    pub events: Vec<HostEvent>,
}

impl Results {
    /// The results of all shards of a fabric as one. Of shards without a controller.
    pub fn merged(shards: impl IntoIterator<Item = Results>) -> Results {
        let mut all = Results {
            records: Vec::new(),
            jobs: Vec::new(),
            samples: Vec::new(),
            windows: Vec::new(),
            ports: Vec::new(),
            controller: None,
            packet_hops: 0,
            delayed_acks: 0,
            packets: Vec::new(),
            connections: Vec::new(),
            events: Vec::new(),
        };
        for mut shard in shards {
            all.records.append(&mut shard.records);
            all.jobs.append(&mut shard.jobs);
            all.samples.append(&mut shard.samples);
            all.windows.append(&mut shard.windows);
            all.ports.append(&mut shard.ports);
            all.controller = all.controller.or(shard.controller);
            all.packet_hops += shard.packet_hops;
            all.delayed_acks += shard.delayed_acks;
            all.packets.append(&mut shard.packets);
            all.connections.append(&mut shard.connections);
            all.events.append(&mut shard.events);
        }
        let order = |record: &Record| (record.start, record.traffic, record.number);
        all.records.sort_by_key(order);
        all.samples.sort_by_key(|sample| (sample.time, sample.link));
        all.windows.sort_by_key(|sample| (sample.time, sample.flow));
        all.events.sort_by_key(|event| event.time);
        all.ports.sort_by_key(|(link, _)| *link);
        all
    }
}
