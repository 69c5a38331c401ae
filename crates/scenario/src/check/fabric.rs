// SPDX-License-Identifier: Apache-2.0
//! Fabrics that cannot be built.

use super::Checker;
use crate::error::unknown;
use crate::measure::matches;
use crate::{Buffer, Fabric};

/// More hosts than a run could hold.
const MOST_HOSTS: u64 = 1_000_000;
/// More switches or links per switch than a run could hold.
const MOST_LINKS: u64 = 10_000_000;
/// Names of switches in an error.
const SHOWN: usize = 8;
/// A full-size Ethernet packet.
const PACKET_BYTES: u64 = 1500;

impl Checker<'_> {
    /// Whether hosts and switches can be enumerated.
    pub(super) fn fabric(&mut self, fabric: &Fabric) -> bool {
        let before = self.problems.len();
        match fabric {
            Fabric::Dumbbell(f) => {
                self.counts(&[("senders", f.senders), ("receivers", f.receivers)]);
                let shares = f.racks == 0 || f.senders.is_multiple_of(f.racks);
                self.require(shares, "fabric.racks", || {
                    format!(
                        "do not share {} senders equally; allowed: 0 or a divisor",
                        f.senders
                    )
                });
            }
            Fabric::Tree(f) => self.counts(&[
                ("cores", f.cores),
                ("aggregations", f.aggregations),
                ("racks", f.racks),
                ("hosts_per_rack", f.hosts_per_rack),
            ]),
            Fabric::LeafSpine(f) => self.counts(&[
                ("leaves", f.leaves),
                ("spines", f.spines),
                ("hosts_per_leaf", f.hosts_per_leaf),
            ]),
            Fabric::FatTree(f) => {
                let is_valid = (2..=64).contains(&f.k) && f.k.is_multiple_of(2);
                self.require(is_valid, "fabric.k", || {
                    format!("is {}; allowed: an even number from 2 to 64", f.k)
                });
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
        let is_buildable = self.problems.len() == before;
        self.buffer(Some(fabric.buffer()), "fabric.buffer");
        self.buffer(Some(fabric.host_buffer()), "fabric.host_buffer");
        for (name, link) in fabric.links() {
            self.buffer(link.buffer, &format!("fabric.{name}.buffer"));
        }
        for (pattern, buffer) in fabric.buffers_at() {
            self.buffer(Some(*buffer), &format!("fabric.buffer_at.{pattern}"));
        }
        if is_buildable {
            self.switch_names(fabric);
        }
        is_buildable
    }

    /// Each name and pattern is that of a switch.
    fn switch_names(&mut self, fabric: &Fabric) {
        let buffers = fabric.buffers_at().keys();
        let buffers = buffers.map(|name| (name, format!("fabric.buffer_at.{name}")));
        let schemes = fabric.scheme_at().iter().enumerate();
        let schemes = schemes.map(|(index, name)| (name, format!("fabric.scheme_at[{index}]")));
        let named: Vec<(&String, String)> = buffers.chain(schemes).collect();
        if named.is_empty() {
            return;
        }
        let switches = fabric.switches();
        let allowed: Vec<&str> = switches.iter().map(String::as_str).take(SHOWN).collect();
        for (pattern, key) in named {
            let is_known = switches.iter().any(|switch| matches(pattern, switch));
            self.require(is_known, &key, || unknown("switch", pattern, &allowed));
        }
    }

    fn counts(&mut self, counts: &[(&str, u32)]) {
        for (name, count) in counts {
            self.at_least_one(*count, &format!("fabric.{name}"));
        }
    }

    fn buffer(&mut self, buffer: Option<Buffer>, key: &str) {
        let Some(buffer) = buffer else { return };
        let holds_one = buffer.bytes(PACKET_BYTES) >= PACKET_BYTES;
        self.require(holds_one, key, || {
            format!("{buffer} is less than one packet; allowed: 1 packet or 1500 B and more")
        });
    }
}
