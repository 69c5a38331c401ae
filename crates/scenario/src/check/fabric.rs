// SPDX-License-Identifier: Apache-2.0
//! Fabrics that cannot be built.

use super::Checker;
use crate::count::Hosts;
use crate::error::unknown;
use crate::graph;
use crate::measure::matches;
use crate::units::Rate;
use crate::{Buffer, Bytes, Fabric, Pfc, PortChange, SharedBuffer};

/// More hosts than a run could hold.
const MOST_HOSTS: u64 = Hosts::MOST as u64;
/// More switches or links per switch than a run could hold.
const MOST_LINKS: u64 = 10_000_000;
/// Names of switches in an error.
const SHOWN: usize = 8;
/// Thresholds of real switches go up to 16 times what is free.
const MOST_ALPHA: f64 = 1024.0;
/// Slower links would take minutes for a packet.
const SLOWEST: Rate = Rate(1000);

impl Checker<'_> {
    /// Whether hosts and switches can be enumerated.
    pub(super) fn fabric(&mut self, fabric: &Fabric, packet: u64) -> bool {
        let before = self.problems.len();
        match fabric {
            Fabric::Dumbbell(f) => {
                let shares = f.racks == 0 || f.senders.is_multiple_of(f.racks);
                self.require(shares, "fabric.racks", || {
                    format!(
                        "do not share {} senders equally; allowed: 0 or a divisor",
                        f.senders
                    )
                });
            }
            Fabric::Tree(_) | Fabric::LeafSpine(_) => {}
            Fabric::FatTree(f) => self.require(f.k.is_multiple_of(2), "fabric.k", || {
                format!("is {}; allowed: an even number", f.k)
            }),
            Fabric::Graph(f) => {
                let has_edges = !f.edges.is_empty() || f.file.is_some();
                self.require(has_edges, "fabric.edges", || {
                    "is missing; allowed: edges or file".to_owned()
                });
                let found = match &f.file {
                    Some(path) => graph::read(path).map(drop).map_err(|what| ("file", what)),
                    None => f.clone().find(),
                };
                if let (true, Err((key, what))) = (has_edges, found) {
                    self.refuse(&format!("fabric.{key}"), what);
                }
            }
        }
        let is_valid = self.problems.len() == before;
        if is_valid {
            let hosts = fabric.host_count();
            self.require(hosts <= MOST_HOSTS, "fabric", || {
                format!("has {hosts} hosts; allowed: at most {MOST_HOSTS}")
            });
            let links = fabric.switch_link_count();
            self.require(links <= MOST_LINKS, "fabric", || {
                format!("has {links} links between switches; allowed: at most {MOST_LINKS}")
            });
        }
        if let Fabric::Graph(graph) = fabric {
            for (number, edge) in graph.edges.iter().enumerate() {
                self.slowest(edge.rate, &format!("fabric.edges[{number}]"));
            }
        }
        let is_buildable = self.problems.len() == before;
        self.buffer(Some(fabric.buffer()), packet, "fabric.buffer");
        self.buffer(Some(fabric.host_buffer()), packet, "fabric.host_buffer");
        for (name, link) in fabric.links() {
            self.slowest(Some(link.rate), &format!("fabric.{name}.rate"));
            self.buffer(link.buffer, packet, &format!("fabric.{name}.buffer"));
            self.mtu(link.mtu, &format!("fabric.{name}.mtu"));
        }
        for (pattern, buffer) in fabric.buffers_at() {
            self.buffer(
                Some(*buffer),
                packet,
                &format!("fabric.buffer_at.{pattern}"),
            );
        }
        for (pattern, shared) in fabric.shared_at() {
            self.shared_buffer(shared, packet, &format!("fabric.shared_at.{pattern}"));
        }
        for (pattern, pfc) in fabric.pfc_at() {
            self.pfc(pfc, packet, &format!("fabric.pfc_at.{pattern}"));
        }
        for (pattern, change) in fabric.port_at() {
            self.port_change(change, packet, &format!("fabric.port_at.{pattern}"));
        }
        if is_buildable {
            let at = |key: &str, name: &String| (name.clone(), format!("fabric.{key}.{name}"));
            let buffers = fabric.buffers_at().keys().map(|name| at("buffer_at", name));
            let shared = fabric.shared_at().keys().map(|name| at("shared_at", name));
            let pfc = fabric.pfc_at().keys().map(|name| at("pfc_at", name));
            let schemes = fabric.scheme_at().iter().enumerate();
            let schemes = schemes.map(|(n, name)| (name.clone(), format!("fabric.scheme_at[{n}]")));
            let named = buffers.chain(shared).chain(pfc).chain(schemes).collect();
            self.names("switch", named, || fabric.switches());
            let ports = fabric.port_at().keys().map(|name| at("port_at", name));
            self.names("port", ports.collect(), || fabric.ports());
        }
        is_buildable
    }

    /// Each name and pattern, with where it is written, fits a switch or a port.
    fn names(&mut self, what: &str, named: Vec<(String, String)>, known: impl Fn() -> Vec<String>) {
        if named.is_empty() {
            return;
        }
        let known = known();
        let allowed: Vec<&str> = known.iter().map(String::as_str).take(SHOWN).collect();
        for (pattern, key) in named {
            let is_known = known.iter().any(|name| matches(&pattern, name));
            self.require(is_known, &key, || unknown(what, &pattern, &allowed));
        }
    }

    fn shared_buffer(&mut self, shared: &SharedBuffer, packet: u64, key: &str) {
        let alpha = shared.alpha;
        let is_valid = alpha > 0.0 && alpha <= MOST_ALPHA;
        self.require(is_valid, &format!("{key}.alpha"), || {
            format!("is {alpha}; allowed: above 0, at most {MOST_ALPHA}")
        });
        if is_valid {
            let alone = shared.alone(packet);
            let holds_one = u64::from(alone.as_bytes()) >= packet;
            self.require(holds_one, &format!("{key}.size"), || {
                format!(
                    "leaves a port {alone}, less than one packet; allowed: more, or a larger alpha"
                )
            });
        }
    }

    fn port_change(&mut self, change: &PortChange, packet: u64, key: &str) {
        self.slowest(change.rate, &format!("{key}.rate"));
        self.buffer(change.buffer, packet, &format!("{key}.buffer"));
        self.mtu(change.mtu, &format!("{key}.mtu"));
        let loss = change.loss.0;
        self.require((0.0..=1.0).contains(&loss), &format!("{key}.loss"), || {
            format!("is {loss}; allowed: from 0 to 1 (100 %)")
        });
        for (index, span) in change.down.iter().enumerate() {
            self.require(span.from < span.to, &format!("{key}.down[{index}]"), || {
                "ends before it begins; allowed: `to` after `from`".to_owned()
            });
        }
    }

    fn mtu(&mut self, mtu: Option<Bytes>, key: &str) {
        // The least for IPv4 hosts is 576 bytes (RFC 791); the most that the length field counts.
        let Some(mtu) = mtu else { return };
        self.require((576..=65_535).contains(&mtu.0), key, || {
            format!("is {mtu}; allowed: 576 B to 65535 B")
        });
    }

    fn pfc(&mut self, pfc: &Pfc, packet: u64, key: &str) {
        self.require(pfc.pause.0 >= packet, &format!("{key}.pause"), || {
            let least = Bytes(packet);
            format!(
                "{} is less than one packet; allowed: {least} and more",
                pfc.pause
            )
        });
        self.require(
            pfc.resume() <= pfc.pause.0,
            &format!("{key}.resume"),
            || format!("is above pause, {}", pfc.pause),
        );
    }

    fn slowest(&mut self, rate: Option<Rate>, key: &str) {
        let Some(rate) = rate else { return };
        self.require(rate >= SLOWEST, key, || {
            format!("is {rate}; allowed: {SLOWEST} and more")
        });
    }

    fn buffer(&mut self, buffer: Option<Buffer>, packet: u64, key: &str) {
        let Some(buffer) = buffer else { return };
        self.require(buffer.bytes(packet) >= packet, key, || {
            let least = Bytes(packet);
            format!("{buffer} is less than one packet; allowed: 1 packet or {least} and more")
        });
    }
}
