// SPDX-License-Identifier: Apache-2.0
//! The numbers and paths of connections.

use super::Context;
use crate::fabric::{Fabric, NO_MTU, Routes};
use crate::network::TracedConnection;
use crate::packet::FlowId;
use crate::rng::Rng;
use penstock_scenario::units::Time;
use std::collections::VecDeque;

/// A number of a closed connection is given away again after this time, in which its last packets
/// have surely left the network.
const QUIET: Time = Time::from_secs(2);

/// Stream of the random numbers by which ACKs choose a path of their own.
const BACK: u64 = u64::MAX;

/// Opens connections, and takes their numbers back once they are closed.
pub struct Connections {
    routes: Routes,
    /// The links that the connection opened last may take, those of the data first; there and back they
    /// are the same cables in a symmetric fabric, and only those of the data are here.
    path: Vec<u32>,
    /// One of several paths of the data.
    one: Vec<u32>,
    /// The same for the ACKs.
    back: Vec<u32>,
    /// Longest packet of each link.
    mtu: Vec<u32>,
    /// Whether both directions take the same cables.
    is_symmetric: bool,
    /// Closed connections that this shard has numbered, oldest first.
    closed: VecDeque<(Time, FlowId)>,
    /// Seed of the choices among equal paths.
    hash_seed: u64,
}

/// A connection to be opened.
#[derive(Clone, Copy)]
pub struct Opening {
    /// The flow that carries the data.
    pub data: FlowId,
    /// Chooses among equal paths.
    pub hash: u64,
    /// When it opens.
    pub time: Time,
}

impl Connections {
    /// No connections yet.
    pub fn new(fabric: &Fabric, seed: u64) -> Connections {
        Connections {
            routes: Routes::new(fabric),
            path: Vec::new(),
            one: Vec::new(),
            back: Vec::new(),
            mtu: fabric.links.iter().map(|link| link.mtu).collect(),
            is_symmetric: fabric.is_symmetric,
            closed: VecDeque::new(),
            hash_seed: Rng::new(seed, 1).bits(),
        }
    }

    /// A number for a new connection; returns the opener's flow.
    pub fn number(&mut self, context: &Context) -> FlowId {
        let now = context.now;
        let quiet = self.closed.pop_front_if(|(since, _)| *since + QUIET <= now);
        quiet.map_or_else(
            || {
                let least = context.hosts.connections();
                FlowId(2 * context.shard.next_own_number(least) as u32)
            },
            |(_, opener)| opener,
        )
    }

    /// The hash of the connection that is number `stream` of all.
    pub fn hash(&self, stream: u64) -> u64 {
        Rng::new(self.hash_seed, stream).bits()
    }

    /// The connection comes to be: its path between two hosts, source of the data first, and the
    /// sockets at both ends, of a client and with a TCP configuration by their indices.
    pub fn open(
        &mut self,
        context: &mut Context,
        Opening { data, hash, time }: Opening,
        (source, destination): (u32, u32),
        (client, config): (u32, u32),
    ) {
        let Connections {
            routes,
            path,
            one,
            back,
            ..
        } = self;
        path.clear();
        let back_hash = Rng::new(hash, BACK).bits();
        let most = context.network.most_variants();
        let mut variant = 0;
        loop {
            let variants = routes.variant(source, destination, hash, variant, one);
            if self.is_symmetric {
                back.clear();
                back.extend(one.iter().rev().map(|link| link ^ 1));
            } else {
                routes.variant(destination, source, back_hash, variant, back);
            }
            let number = variant as usize;
            context.network.set_paths(data, number, one, back);
            path.append(one);
            if !self.is_symmetric {
                path.append(back);
            }
            variant += 1;
            if variant >= variants.min(most as u64) {
                break;
            }
        }
        context.network.trace_connection(TracedConnection {
            time,
            data,
            source,
            destination,
            client,
            traffic: config,
        });
        let mtu = path.iter().map(|link| self.mtu[*link as usize]).min();
        let config = context.hosts.fitting(config, mtu.unwrap_or(NO_MTU));
        if let Some(controller) = context.controller {
            controller.on_connect(data, source, destination);
        }
        let opener = FlowId(data.0 & !1);
        context.hosts.open(opener, client, config, time);
    }

    /// The links that the connection opened last takes, one of each cable in a symmetric fabric.
    pub fn path(&self) -> &[u32] {
        &self.path
    }

    /// A socket of the connection of `flow` has closed: once both are, its number waits for its next
    /// use.
    pub fn release(&mut self, context: &Context, flow: FlowId) {
        let is_own = context.shard.is_own_number(flow.connection());
        if is_own && context.hosts.is_closed(flow) && context.hosts.is_closed(flow.reverse()) {
            self.closed.push_back((context.now, FlowId(flow.0 & !1)));
        }
    }
}
