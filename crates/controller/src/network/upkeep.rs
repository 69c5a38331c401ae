// SPDX-License-Identifier: Apache-2.0
//! What the controller does as time passes: rules, links, signs of life.

use super::{Connection, Controller};
use crate::fabric::{FIND_NS, Mac, Place};
use crate::openflow::{Action, Role, number};
use crate::rules;
use crate::switch::{Switch, Writes};
use std::collections::BTreeSet;

const SECOND_NS: u64 = 1_000_000_000;
const LLDP_NS: u64 = SECOND_NS;
/// Silence after which a switch is asked for a sign of life, and after which it is given up.
const ECHO_NS: u64 = 2 * SECOND_NS;
const GIVE_UP_NS: u64 = 3 * ECHO_NS;
/// Time without a frame of another controller after which this one writes rules.
const STAND_IN_NS: u64 = 3 * LLDP_NS;
/// Rounds of LLDP without a frame in either direction after which a link is gone. Full queues lose some, and
/// over a link that is dropped by mistake broadcasts go round.
const MISSED_ROUNDS: u64 = 10;
/// Where a frame for the other controllers of a switch leaves it: there is no such port.
const NOWHERE: u32 = 0;

impl Controller {
    /// Does what is due. Returns the connections that are to be closed.
    pub fn tick(&mut self, now_ns: u64) -> Vec<Connection> {
        let due = [self.rules_ns, self.retry_ns];
        if due.into_iter().flatten().any(|due| due <= now_ns) {
            self.retry_ns = None;
            let is_more = self.fabric.settle(now_ns);
            self.paths.clear();
            self.rules_ns = is_more.then_some(now_ns + FIND_NS);
            self.recall(now_ns);
            self.write_rules();
        }
        if self.lldp_ns <= now_ns {
            self.lldp_ns = now_ns + LLDP_NS;
            self.find_links();
            self.drop_links(now_ns);
            self.stand_in(now_ns);
        }
        // Of a pause of its own it cannot conclude that a switch was silent: what came waits to be read.
        let is_late = now_ns.saturating_sub(self.ticked_ns) >= ECHO_NS;
        self.ticked_ns = now_ns;
        for switch in self.switches.values_mut() {
            if is_late {
                switch.last_ns = now_ns;
            }
            let silent_ns = now_ns.saturating_sub(switch.last_ns.max(switch.echo_ns));
            if silent_ns >= ECHO_NS && switch.version.is_some() {
                switch.echo_ns = now_ns;
                switch.out.echo(&[]);
            }
        }
        let is_lost = |one: &Switch| now_ns.saturating_sub(one.last_ns) >= GIVE_UP_NS;
        let lost = self.switches.iter().filter(|(_, one)| is_lost(one));
        lost.map(|(connection, _)| *connection).collect()
    }

    /// Learns the hosts to which the rules of an earlier controller led.
    fn recall(&mut self, now_ns: u64) {
        for switch in self.switches.values_mut() {
            let known = switch.datapath.filter(|one| self.fabric.is_known(*one));
            let Some(datapath) = known else { continue };
            for route in std::mem::take(&mut switch.routes) {
                let port = route.port;
                let place = Place { datapath, port };
                self.fabric.add_host(Mac(route.destination), place, now_ns);
            }
        }
    }

    /// Writes the rules of all switches, and then removes those before.
    fn write_rules(&mut self) {
        let rules = rules::all(&self.fabric, self.agents.take_frames());
        for switch in self.switches.values_mut().filter(|one| one.is_ours) {
            let known = switch.datapath.filter(|one| self.fabric.is_known(*one));
            let rules = known.and_then(|datapath| rules.get(&datapath));
            if let Some((digest, rules)) = rules {
                switch.write(*digest, rules);
            }
        }
    }

    /// If only one writes, and nothing is seen of another one: it is this one.
    fn stand_in(&mut self, now_ns: u64) {
        if self.writes == Writes::One && now_ns.saturating_sub(self.other_ns) >= STAND_IN_NS {
            self.take_all();
        }
    }

    /// Two that begin at once may each become the master of some switches. The one of the greater number then
    /// takes them all.
    pub(super) fn outvote(&mut self, other: u64) {
        let is_master = || self.switches.values().any(|one| one.is_ours);
        if self.writes == Writes::One && other < self.lldp.sender() && is_master() {
            self.take_all();
        }
    }

    fn take_all(&mut self) {
        let ready = self.switches.values_mut().filter(|one| one.is_ready);
        for switch in ready.filter(|one| !one.is_ours) {
            switch.role(Role::Master, switch.election.wrapping_add(1));
        }
    }

    fn find_links(&mut self) {
        self.round += 1;
        for switch in self.switches.values_mut().filter(|one| one.is_ours) {
            let Some(datapath) = switch.datapath else {
                continue;
            };
            for port in switch.usable_ports().collect::<Vec<_>>() {
                let frame = self.lldp.frame(Place { datapath, port }, self.round);
                switch.out.packet_out(&[Action::Output(port)], &frame);
            }
            if self.writes == Writes::One {
                // The rule for frames of links copies it to all controllers, also where no link is.
                let port = NOWHERE;
                let frame = self.lldp.frame(Place { datapath, port }, self.round);
                switch
                    .out
                    .packet_out(&[Action::Output(number::TABLE)], &frame);
            }
        }
    }

    /// Drops links that were found, and of which nothing is seen any more although both ends send.
    fn drop_links(&mut self, now_ns: u64) {
        let ours = self.switches.values().filter(|one| one.is_ours);
        let ours: BTreeSet<u64> = ours.filter_map(|one| one.datapath).collect();
        let links: BTreeSet<_> = self.fabric.links().collect();
        self.seen.retain(|link, _| links.contains(link));
        for link in links {
            let sends = |end: Place| ours.contains(&end.datapath);
            let is_given = self.links.contains(&link) || self.links.contains(&(link.1, link.0));
            let last_round = self.seen.entry(link).or_insert(self.round);
            if is_given || !sends(link.0) || !sends(link.1) {
                *last_round = self.round;
            } else if self.round - *last_round > MISSED_ROUNDS {
                self.fabric.remove_link(link.0, link.1, now_ns);
                self.paths.clear();
                self.rules_ns.get_or_insert(now_ns);
            }
        }
    }
}
