// SPDX-License-Identifier: Apache-2.0
//! What configured ports were attached to, by interface.

use std::collections::BTreeMap;

use penstock_scenario::{Buffer, Deployment, Queue};

use crate::attach::buffer_of;

/// Configured ports that this daemon has attached since it started or reloaded. It attaches each once
/// even if it is attached already, as an upgrade has other programs.
#[derive(Default)]
pub struct Settled(BTreeMap<String, Place>);

struct Place {
    /// Index of the interface.
    index: u32,
    /// Size of its queue, as configured or as its qdisc reported.
    buffer: Buffer,
}

impl Settled {
    /// A port was attached.
    pub fn insert(&mut self, interface: &str, index: u32, buffer: Buffer) {
        self.0.insert(interface.to_owned(), Place { index, buffer });
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

    /// Whether the qdisc of a port reports another size than it did then. HCF's is its own.
    pub fn is_resized(&self, interface: &str, port: &Deployment) -> bool {
        let is_own = matches!(port.queue, Queue::Hcf(_));
        let place = self.0.get(interface).filter(|_| !is_own);
        place.is_some_and(|place| {
            let now = buffer_of(interface, place.index, port);
            now.is_ok_and(|now| now != place.buffer)
        })
    }
}
