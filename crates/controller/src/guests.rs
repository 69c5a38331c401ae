// SPDX-License-Identifier: Apache-2.0
//! Where the addresses of guests are.

use crate::agents::MAX_GUESTS;
use crate::fabric::{FORGET_NS, Mac, Place, REBIND_NS};
use std::collections::HashMap;
use std::net::IpAddr;

/// Where a guest was seen.
#[derive(Clone, Copy)]
pub(crate) struct Guest {
    pub place: Place,
    pub mac: Mac,
    last_ns: u64,
}

/// Time between two looks for guests that are silent.
const SWEEP_NS: u64 = 1_000_000_000;

/// All that were seen, by their addresses.
#[derive(Default)]
pub(crate) struct Guests {
    known: HashMap<IpAddr, Guest>,
    /// How many are at each port.
    counts: HashMap<Place, usize>,
    swept_ns: u64,
}

impl Guests {
    /// The guest with an address.
    pub fn get(&self, address: IpAddr) -> Option<Guest> {
        self.known.get(&address).copied()
    }

    /// Whether an address is known to be at this port: of two that claim it, the first, as long as it
    /// sends.
    pub fn is_at(&mut self, address: IpAddr, mac: Mac, place: Place, now_ns: u64) -> bool {
        let known = self.get(address);
        let is_refused = match known {
            Some(guest) => guest.place != place && now_ns.saturating_sub(guest.last_ns) < REBIND_NS,
            None => !self.has_room(place) && !self.sweep(place, now_ns),
        };
        if !is_refused {
            let last_ns = now_ns;
            let guest = Guest {
                place,
                mac,
                last_ns,
            };
            self.known.insert(address, guest);
            if let Some(count) = known.and_then(|guest| self.counts.get_mut(&guest.place)) {
                *count -= 1;
            }
            *self.counts.entry(place).or_default() += 1;
        }
        !is_refused
    }

    /// Whether a port may have one more, by the rule for hosts: as many as there is room for others.
    fn has_room(&self, place: Place) -> bool {
        let at = self.counts.get(&place).copied().unwrap_or_default();
        at < MAX_GUESTS - self.known.len()
    }

    /// Forgets all that have been silent for long. Returns whether a port may then have one more.
    fn sweep(&mut self, place: Place, now_ns: u64) -> bool {
        // Not for each packet of a guest that makes up addresses.
        if now_ns.abs_diff(self.swept_ns) < SWEEP_NS {
            return false;
        }
        self.swept_ns = now_ns;
        self.known
            .retain(|_, guest| now_ns.saturating_sub(guest.last_ns) < FORGET_NS);
        self.counts.clear();
        for guest in self.known.values() {
            *self.counts.entry(guest.place).or_default() += 1;
        }
        self.has_room(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_leaves_room_for_others_and_who_is_silent_is_forgotten() {
        let mut guests = Guests::default();
        let mac = Mac([2, 0, 0, 0, 0, 1]);
        let [one, other] = [1, 2].map(|port| Place { datapath: 1, port });
        let address = |number: u32| IpAddr::from(number.to_be_bytes());
        let taken = (0..70_000).filter(|number| guests.is_at(address(*number), mac, one, 1));
        assert_eq!(taken.count(), MAX_GUESTS / 2);
        assert!(guests.is_at(address(80_000), mac, other, 1));
        assert!(!guests.is_at(address(90_000), mac, one, FORGET_NS));
        assert!(guests.is_at(address(80_000), mac, other, FORGET_NS));
        assert!(guests.is_at(address(90_000), mac, one, FORGET_NS + SWEEP_NS));
        assert_eq!(guests.known.len(), 2);
    }
}
