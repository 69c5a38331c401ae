// SPDX-License-Identifier: Apache-2.0
//! Where the addresses of guests are.

use crate::agents::MAX_GUESTS;
use crate::fabric::{Mac, Place, REBIND_NS};
use std::collections::HashMap;
use std::net::IpAddr;

/// Where a guest was seen.
#[derive(Clone, Copy)]
pub(crate) struct Guest {
    pub place: Place,
    pub mac: Mac,
    last_ns: u64,
}

/// All that were seen, by their addresses.
#[derive(Default)]
pub(crate) struct Guests(HashMap<IpAddr, Guest>);

impl Guests {
    /// The guest with an address.
    pub fn get(&self, address: IpAddr) -> Option<Guest> {
        self.0.get(&address).copied()
    }

    /// Whether an address is known to be at this port: of two that claim it, the first, as long as it
    /// sends.
    pub fn is_at(&mut self, address: IpAddr, mac: Mac, place: Place, now_ns: u64) -> bool {
        let known = self.0.get(&address);
        let is_refused = known.map_or(self.0.len() >= MAX_GUESTS, |guest| {
            guest.place != place && now_ns.saturating_sub(guest.last_ns) < REBIND_NS
        });
        if !is_refused {
            let last_ns = now_ns;
            let guest = Guest {
                place,
                mac,
                last_ns,
            };
            self.0.insert(address, guest);
        }
        !is_refused
    }
}
