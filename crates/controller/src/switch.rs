// SPDX-License-Identifier: Apache-2.0
//! A switch, as one connection shows it: its ports, our role at it, and the rules that it has.

use crate::fabric::MAX_HOSTS;
use crate::openflow::{
    FlowMod, Frames, HELLO, Port, Role, Route, Version, Writer, failure, number,
};
use crate::rules;
use serde::Deserialize;
use std::collections::BTreeMap;

/// Most routes of an earlier controller that are read.
const MAX_ROUTES: usize = MAX_HOSTS * MAX_HOSTS;

/// Who writes the rules of a network with several controllers. All of them foresee incast and send
/// notices, so that there is no moment without.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Writes {
    /// Each of them; they come to the same rules.
    #[default]
    All,
    /// One, the switches' master; when nothing is seen of it any more, another one.
    One,
}

/// A connection and what is known of its switch.
pub(crate) struct Switch {
    pub frames: Frames,
    pub out: Writer,
    pub version: Option<Version>,
    pub datapath: Option<u64>,
    pub ports: BTreeMap<u32, Port>,
    pub is_ready: bool,
    /// It takes rules and frames.
    pub is_ours: bool,
    /// The last request for a role.
    pub role: Option<u32>,
    /// The last election of a master that the switch knows of.
    pub election: u64,
    /// Where the rules that it had led to, as long as its links are not known.
    pub routes: Vec<Route>,
    /// The digest of the rules that were written last.
    digest: Option<u64>,
    /// The request after whose answer the rules before these may go.
    barrier: Option<u32>,
    /// A rule was refused since.
    is_refused: bool,
    /// A request other than for a rule has failed.
    has_failed: bool,
    /// The old and the new ones have no room together.
    is_full: bool,
    pub last_ns: u64,
    pub echo_ns: u64,
}

impl Switch {
    /// One that has connected.
    pub fn new(now_ns: u64) -> Switch {
        let mut switch = Switch {
            frames: Frames::default(),
            out: Writer::new(HELLO),
            version: None,
            datapath: None,
            ports: BTreeMap::new(),
            is_ready: false,
            is_ours: false,
            role: None,
            election: 0,
            routes: Vec::new(),
            digest: None,
            barrier: None,
            is_refused: false,
            has_failed: false,
            is_full: false,
            last_ns: now_ns,
            echo_ns: now_ns,
        };
        switch.out.hello();
        switch
    }

    /// Asks for a role, and for the routes and ports that it has.
    pub fn ask(&mut self, writes: Writes) {
        match writes {
            Writes::All => self.role(Role::Equal, 0),
            Writes::One => {
                self.out.asynchronous();
                self.role(Role::Same, 0);
            }
        }
        let (table, cookie, mask) = rules::ALL_ROUTES;
        self.out.rules(table, cookie, mask);
        self.out.ports();
    }

    /// Asks for a role.
    pub fn role(&mut self, role: Role, election: u64) {
        self.role = Some(self.out.role(role, election));
    }

    /// It gave this controller a role. Returns whether it takes rules from now on.
    pub fn on_role(&mut self, writes: Writes, role: Role, election: u64) -> bool {
        let is_ours = match writes {
            Writes::All => role != Role::Slave,
            Writes::One => role == Role::Master,
        };
        if writes == Writes::One && role == Role::Equal {
            self.role(Role::Slave, election);
        }
        let begins = is_ours && !self.is_ours;
        if begins {
            // Another controller may have written since.
            self.digest = None;
            self.out.add(&rules::frames_of_links());
        }
        (self.is_ours, self.election) = (is_ours, election);
        begins
    }

    /// Keeps the routes that it had, as many as there is room for.
    pub fn remember(&mut self, routes: Vec<Route>) {
        let room = MAX_ROUTES.saturating_sub(self.routes.len());
        self.routes.extend(routes.into_iter().take(room));
    }

    /// Writes its rules, unless it has them; when it has, all others of ours are removed.
    pub fn write(&mut self, digest: u64, rules: &[FlowMod]) {
        if self.digest == Some(digest) {
            return;
        }
        if std::mem::take(&mut self.is_full) {
            self.delete_others(digest);
        }
        for rule in rules {
            self.out.add(rule);
        }
        self.barrier = Some(self.out.barrier());
        self.is_refused = false;
        self.digest = Some(digest);
    }

    /// It has done all before a request: without a refusal, it has its rules.
    pub fn on_barrier(&mut self, xid: u32) {
        if self.barrier.take_if(|barrier| *barrier == xid).is_none() || !self.is_ours {
            return;
        }
        if let Some(digest) = self.digest {
            self.delete_others(digest);
        }
    }

    fn delete_others(&mut self, digest: u64) {
        for (cookie, mask) in rules::others(digest) {
            self.out.delete(cookie, mask);
        }
    }

    /// It refused a rule. Returns whether that is the first since rules were written.
    pub fn on_refusal(&mut self, kind: u16, code: u16) -> bool {
        self.digest = None;
        self.is_full |= (kind, code) == (failure::FLOW_MOD_FAILED, failure::TABLE_FULL);
        !std::mem::replace(&mut self.is_refused, true)
    }

    /// Another request failed. Returns whether that is the first.
    pub fn on_failure(&mut self) -> bool {
        !std::mem::replace(&mut self.has_failed, true)
    }

    /// The ports that have a link; the switch's own if its stack uses it.
    pub fn usable_ports(&self) -> impl Iterator<Item = u32> {
        let ports = self.ports.values().filter(|port| port.is_up);
        let numbers = ports.map(|port| port.number);
        numbers.filter(|port| *port <= number::MAX || *port == number::LOCAL)
    }
}
