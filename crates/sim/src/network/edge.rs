// SPDX-License-Identifier: Apache-2.0
//! Where a network ends: links whose packets arrive in another network.

use super::link::{End, InFlight, Link};
use super::sacks::{SackList, are_carried};
use super::{Network, Paths};
use crate::fabric::LinkSpec;
use penstock_scenario::units::Time;

impl Network {
    /// Cuts `link`: its port works on, but what it sends is to be taken by [`Network::take_sent`].
    pub fn cut(&mut self, link: u32) {
        self.links[link as usize].end = End::Away;
    }

    /// Adds a link without a port, by which packets [`Network::enter`] at a switch; returns its number.
    pub fn add_entrance(&mut self, spec: &LinkSpec) -> u32 {
        let link = Link::new(spec.rate, spec.delay, spec.buffer, End::Switch);
        self.links.push(link);
        self.links.len() as u32 - 1
    }

    /// Hands the packets that the cut `link` was given since the last call to `each`, with their SACK
    /// blocks, oldest first. `handed` counts them for this link, from 0.
    #[inline]
    pub(crate) fn take_sent(
        &mut self,
        now: Time,
        link: u32,
        handed: &mut u32,
        mut each: impl FnMut(&Paths, InFlight, Option<SackList>),
    ) {
        let port = &mut self.links[link as usize];
        let taken = port.ring.taken();
        for index in handed.wrapping_sub(taken)..port.ring.len() {
            let entry = *port.ring.get(index);
            each(&self.paths, entry, self.sacks.take_list(&entry.packet));
        }
        *handed = taken.wrapping_add(port.ring.len());
        port.forget_sent(now);
    }

    /// A packet comes in by `link` from another network, to arrive later than anything done so far.
    /// `sacks`: the SACK blocks of the packets that carry some, those of this one first.
    #[inline]
    pub(crate) fn enter<'a>(
        &mut self,
        link: u32,
        mut entry: InFlight,
        sacks: &mut impl Iterator<Item = &'a SackList>,
    ) {
        if are_carried(&entry.packet)
            && let Some(list) = sacks.next()
        {
            entry.packet.options = self.sacks.put(list.blocks());
        }
        let ring = &mut self.links[link as usize].ring;
        if ring.is_empty() {
            let source = self.first_link + link as usize;
            self.calendar.set(source, entry.arrives);
        }
        ring.push(entry);
    }
}
