// SPDX-License-Identifier: Apache-2.0
//! What configured ports were attached to, by interface.

use std::collections::{BTreeMap, BTreeSet};

use penstock_linux::link::Link;
use penstock_linux::{ethtool, qdisc};
use penstock_scenario::{Buffer, Deployment, Queue};

use super::config::Config;
use crate::host::interface;

/// Configured ports that this daemon has attached since it started or reloaded. It attaches each once
/// even if it is attached already, as an upgrade has other programs.
#[derive(Default)]
pub struct Settled(BTreeMap<String, Place>);

struct Place {
    /// Index of the interface.
    index: u32,
    /// Size of its queue, as configured or as its qdisc reported.
    buffer: Buffer,
    /// Speed of its link, bits per second, if the port has its rate from there.
    speed_bps: Option<u64>,
}

impl Settled {
    /// A port was attached; `speed_bps` is that of [`speed_bps`] before.
    pub fn insert(&mut self, interface: &str, index: u32, buffer: Buffer, speed_bps: Option<u64>) {
        let place = Place {
            index,
            buffer,
            speed_bps,
        };
        self.0.insert(interface.to_owned(), place);
    }

    /// A port was detached.
    pub fn remove(&mut self, interface: &str) {
        self.0.remove(interface);
    }

    /// Forgets the ports that are not to stay.
    pub fn retain(&mut self, mut stays: impl FnMut(&str) -> bool) {
        self.0.retain(|interface, _| stays(interface));
    }

    /// Whether a port was attached to the interface with this index.
    pub fn has(&self, interface: &str, index: u32) -> bool {
        let place = self.0.get(interface);
        place.is_some_and(|place| place.index == index)
    }

    /// The ports whose qdiscs report another size than they did then, or whose links another speed.
    pub fn resized(&self, config: &Config, links: &[Link]) -> BTreeSet<String> {
        let roots = qdisc::roots().unwrap_or_default();
        let is_resized = |link: &&Link| {
            let place = self.0.get(&link.name);
            let place = place.filter(|place| place.index == link.index);
            let port = config.port_of(&link.name);
            let (Some(place), Some((_, port))) = (place, port) else {
                return false;
            };
            let root = roots.iter().find(|qdisc| qdisc.interface == link.index);
            let now = root.and_then(|root| interface::buffer_by(root, link));
            let is_other_size = reads_size(port) && now.is_some_and(|now| now != place.buffer);
            // A link that is down has none.
            let speed = speed_bps(&link.name, port);
            is_other_size || (speed.is_some() && speed != place.speed_bps)
        };
        let resized = links.iter().filter(is_resized);
        resized.map(|link| link.name.clone()).collect()
    }
}

/// Speed of an interface's link, bits per second, if it is known and the port has its rate from there.
pub fn speed_bps(interface: &str, port: &Deployment) -> Option<u64> {
    let reads_speed = port.window.is_credit() && port.credit_rate().is_none();
    let speed = reads_speed.then(|| ethtool::speed_bps(interface).ok());
    speed.flatten().flatten()
}

/// Whether a port's queue is as large as a qdisc reports: of another's, and not configured.
fn reads_size(port: &Deployment) -> bool {
    port.buffer.is_none() && port.has_queue() && !matches!(port.queue, Queue::Hcf(_))
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_scenario::deployment;

    #[test]
    fn only_a_port_at_its_queue_without_a_buffer_reads_its_size() {
        let reads = |pairs: &[(&str, &str)]| {
            let pairs = pairs
                .iter()
                .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
            reads_size(&deployment(&pairs.collect::<Vec<_>>()).unwrap())
        };
        assert!(reads(&[("scheme", "fairq")]));
        assert!(!reads(&[("scheme", "fairq"), ("buffer", "128 kB")]));
        assert!(reads(&[("scheme", "grant")]));
        for side in ["receiver", "limit"] {
            let pairs = [
                ("scheme", "grant"),
                ("window.side", side),
                ("rate", "1 Gb/s"),
            ];
            assert!(!reads(&pairs), "{side}");
        }
        let unified = ("window.wscale_source", "unified");
        assert!(!reads(&[("scheme", "shim"), unified]));
    }
}
