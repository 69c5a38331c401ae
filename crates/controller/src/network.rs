// SPDX-License-Identifier: Apache-2.0
//! The controller: what arrives by connections and datagrams changes what it knows, and leaves what
//! is to be sent.

use crate::agents::Agents;
use crate::fabric::{FIND_NS, Fabric, Mac, Place};
use crate::followers::Followers;
use crate::guests::Guests;
use crate::incast::{Counters, Incast};
use crate::lldp::Lldp;
use crate::openflow::{Action, Error, Header, Message, Role, Version, failure};
use crate::rules::{self, Reason};
use crate::segment::Segment;
use crate::status;
use crate::switch::{Switch, Writes};
use penstock_core::Params;
use penstock_sdn::message::{self, Body, Key, MAX_NOTICES, Notice, Received};
use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;

const SECOND_NS: u64 = 1_000_000_000;
/// After a change of the network, further ones are waited for.
const SETTLE_NS: u64 = SECOND_NS / 10;
const LLDP_NS: u64 = SECOND_NS;
/// Silence after which a switch is asked for a sign of life, and after which it is given up.
const ECHO_NS: u64 = 2 * SECOND_NS;
const GIVE_UP_NS: u64 = 3 * ECHO_NS;
/// Time without a frame of another controller after which this one writes rules.
const STAND_IN_NS: u64 = 3 * LLDP_NS;

/// Number of a connection with a switch.
pub type Connection = usize;

/// The controller.
pub struct Controller {
    fabric: Fabric,
    incast: Incast,
    /// Of the ports that are watched.
    watched: BTreeMap<Place, Params>,
    lldp: Lldp,
    switches: BTreeMap<Connection, Switch>,
    agents: Agents,
    guests: Guests,
    followers: Followers,
    /// Connections with something to be sent, if nothing is due otherwise.
    touched: Vec<Connection>,
    /// Paths forth and back, as long as the network does not change.
    paths: HashMap<(Mac, Mac), (Vec<Place>, Vec<Place>)>,
    /// When the rules are to be written again.
    rules_ns: Option<u64>,
    lldp_ns: u64,
    /// Number of the last frames.
    round: u64,
    writes: Writes,
    /// The frame of another controller that was seen last: whose, its number and when it came.
    other: (u64, u64),
    other_ns: u64,
    datagrams: Vec<(SocketAddr, Vec<u8>)>,
    /// Messages that left as frames.
    frames: u64,
}

impl Controller {
    /// A controller that knows no switch.
    ///
    /// Of each agent, `agents` has the key, and whether it takes frames; `lldp` makes and reads the frames
    /// that find links.
    pub fn new(
        incast: Incast,
        watched: BTreeMap<Place, Params>,
        agents: BTreeMap<u16, (Key, bool)>,
        lldp: Lldp,
        writes: Writes,
    ) -> Controller {
        Controller {
            fabric: Fabric::default(),
            incast,
            watched,
            lldp,
            switches: BTreeMap::new(),
            agents: Agents::new(agents),
            guests: Guests::default(),
            followers: Followers::default(),
            touched: Vec::new(),
            paths: HashMap::new(),
            rules_ns: None,
            lldp_ns: 0,
            round: 0,
            writes,
            other: (0, 0),
            other_ns: 0,
            datagrams: Vec::new(),
            frames: 0,
        }
    }

    /// What was seen and done.
    pub fn counters(&self) -> Counters {
        self.incast.counters()
    }

    /// The ports that are watched.
    pub fn ports(&self) -> impl Iterator<Item = (Place, status::Port)> {
        self.incast.ports()
    }

    /// Switches, links and hosts.
    pub fn fabric(&self) -> &Fabric {
        &self.fabric
    }

    /// How many switches take rules from this controller.
    pub fn written(&self) -> usize {
        self.switches.values().filter(|one| one.is_ours).count()
    }

    /// Whether the rules for all that is known were sent.
    pub fn is_settled(&self) -> bool {
        self.rules_ns.is_none()
    }

    /// Messages of each agent that were refused.
    pub fn refused(&self) -> impl Iterator<Item = (u16, u64)> {
        self.agents.refused()
    }

    /// Messages that left as Ethernet frames.
    pub fn frames(&self) -> u64 {
        self.frames
    }

    /// A switch has connected.
    pub fn connect(&mut self, connection: Connection, now_ns: u64) {
        let switch = Switch::new(now_ns);
        self.switches.insert(connection, switch);
    }

    /// A connection is closed. The switch goes on as it was; its links are kept until another
    /// switch takes its place, as rules for those that are connected still lead through it.
    pub fn disconnect(&mut self, connection: Connection) {
        let gone = self.switches.remove(&connection);
        let Some(datapath) = gone.and_then(|switch| switch.datapath) else {
            return;
        };
        // What passes until it is there again is not seen.
        let is_there = |one: &Switch| one.datapath == Some(datapath);
        if !self.switches.values().any(is_there) {
            let places = self.watched.keys();
            let places = places.filter(|place| place.datapath == datapath);
            places.for_each(|place| self.incast.forget(*place));
        }
    }

    /// Bytes of a switch.
    ///
    /// # Errors
    /// It does not speak OpenFlow; the connection is to be closed.
    pub fn on_bytes(
        &mut self,
        connection: Connection,
        bytes: &[u8],
        now_ns: u64,
    ) -> Result<(), Error> {
        let Some(switch) = self.switches.get_mut(&connection) else {
            return Ok(());
        };
        switch.last_ns = now_ns;
        self.touched.push(connection);
        let mut frames = std::mem::take(&mut switch.frames);
        frames.push(bytes);
        while let Some((header, body)) = frames.take()? {
            self.on_message(connection, header, body, now_ns)?;
        }
        if let Some(switch) = self.switches.get_mut(&connection) {
            switch.frames = frames;
        }
        Ok(())
    }

    fn on_message(
        &mut self,
        connection: Connection,
        header: Header,
        body: &[u8],
        now_ns: u64,
    ) -> Result<(), Error> {
        let Some(switch) = self.switches.get_mut(&connection) else {
            return Ok(());
        };
        let version = switch.version.unwrap_or(Version::V13);
        match Message::read(version, header, body)? {
            Message::Hello(Some(version)) if switch.version.is_none() => {
                switch.version = Some(version);
                switch.out.set_version(version);
                switch.out.features();
            }
            Message::Hello(_) if switch.version.is_none() => {
                return Err(Error::Version(header.version));
            }
            Message::EchoRequest(data) => switch.out.echo_reply(header.xid, data),
            Message::Features { datapath, .. } => {
                switch.datapath = Some(datapath);
                switch.ask(self.writes);
            }
            Message::Routes(routes, _) => {
                switch.remember(routes);
            }
            Message::Ports(ports, more) => {
                switch
                    .ports
                    .extend(ports.into_iter().map(|port| (port.number, port)));
                switch.is_ready |= !more;
                self.on_ports(connection, now_ns);
            }
            Message::PortStatus(_, port) => {
                switch.ports.insert(port.number, port);
                self.on_ports(connection, now_ns);
            }
            Message::Role(role, election) => {
                let begins = switch.on_role(self.writes, role, election);
                if begins {
                    self.rules_ns.get_or_insert(now_ns + SETTLE_NS);
                }
            }
            Message::Error(failure::BAD_REQUEST, failure::IS_SLAVE) => switch.is_ours = false,
            Message::Error(failure::ROLE_REQUEST_FAILED, _) => {
                switch.out.role(Role::Same, 0);
            }
            Message::PacketIn {
                cookie,
                in_port: Some(in_port),
                data,
                ..
            } => {
                if let (Some(datapath), Some(reason)) = (switch.datapath, Reason::of(cookie)) {
                    let place = Place {
                        datapath,
                        port: in_port,
                    };
                    self.on_packet(place, reason, data, now_ns);
                }
            }
            _ => (),
        }
        Ok(())
    }

    fn on_ports(&mut self, connection: Connection, now_ns: u64) {
        let Some(switch) = self.switches.get(&connection).filter(|one| one.is_ready) else {
            return;
        };
        let Some(datapath) = switch.datapath else {
            return;
        };
        self.fabric
            .set_ports(datapath, switch.usable_ports().collect(), now_ns);
        self.paths.clear();
        for (place, params) in &self.watched {
            if place.datapath == datapath {
                self.incast.watch(*place, params);
            }
        }
        self.rules_ns.get_or_insert(now_ns + SETTLE_NS);
        // Not at once: a guest may have its link go up and down all the time.
        self.lldp_ns = self.lldp_ns.min(now_ns + SETTLE_NS);
    }

    fn on_packet(&mut self, place: Place, reason: Reason, data: &[u8], now_ns: u64) {
        let is_changed = match reason {
            Reason::Lldp => {
                let seen = self.lldp.read(data);
                if let Some(other) = seen.and_then(|seen| seen.other)
                    && (other.0 != self.other.0 || other.1 > self.other.1)
                {
                    (self.other, self.other_ns) = (other, now_ns);
                }
                seen.is_some_and(|seen| self.fabric.add_link(seen.from, place))
            }
            Reason::Segment | Reason::Miss => {
                let host = Mac::at(data, 6);
                host.is_some_and(|host| self.fabric.add_host(host, place, now_ns))
            }
            Reason::None => false,
        };
        if is_changed {
            self.paths.clear();
            self.rules_ns.get_or_insert(now_ns + SETTLE_NS);
        }
        if reason == Reason::Segment
            && self.fabric.is_edge(place)
            && let Some(segment) = Segment::read(data)
            && self
                .guests
                .is_at(segment.flow.source.ip(), segment.macs.0, place, now_ns)
        {
            let (path, back) = self
                .paths
                .entry(segment.macs)
                .or_insert_with_key(|(from, to)| {
                    let path = |from, to| self.fabric.path(from, to).unwrap_or_default();
                    (path(*from, *to), path(*to, *from))
                });
            let notices = self.incast.on_copy(place, &segment, path, back, now_ns);
            self.notify(notices);
        }
    }

    /// A datagram of an agent; `random` is drawn by chance.
    pub fn on_datagram(&mut self, from: SocketAddr, bytes: &[u8], random: u64, now_ns: u64) {
        match self.agents.take(from, bytes, random, now_ns) {
            Some((_, Received::Answer(answer))) => self.datagrams.push((from, answer)),
            Some((number, Received::Body(Body::Hello(_)))) => {
                self.send(number, &Body::Notices(Vec::new())); // a sign of life
            }
            Some((number, Received::Body(Body::Ask(ask)))) => {
                self.followers.ask(number, &ask, &self.incast, now_ns);
            }
            Some((_, Received::Body(Body::Queues(report)))) => {
                let notices = self.incast.on_queues(&report, now_ns);
                self.notify(notices);
            }
            Some((_, Received::Body(_))) | None => (),
        }
    }

    fn notify(&mut self, notices: Vec<Notice>) {
        for (number, notices) in self.agents.by_shim(notices) {
            for some in notices.chunks(MAX_NOTICES) {
                self.send(number, &Body::Notices(some.to_vec()));
            }
        }
    }

    /// Sends what agents are to know of the flows of ports, as far as it is time. Returns whether something
    /// is left, of which the time comes soon.
    pub fn report(&mut self, now_ns: u64) -> bool {
        for (number, body) in self.followers.due(&mut self.incast, now_ns) {
            self.send(number, &body);
        }
        self.followers.is_owing()
    }

    /// Sends a message to an agent: notices in a frame to a guest of it whose port is known, or in a
    /// datagram.
    fn send(&mut self, number: u16, body: &Body) {
        let source = match body {
            Body::Notices(notices) => notices.first().map(|notice| notice.source),
            _ => None,
        };
        let Some(sealed) = self.agents.seal(number, body) else {
            return;
        };
        let guest = source.filter(|_| sealed.takes_frames);
        let guest = guest.and_then(|source| self.guests.get(source));
        let guest = guest.filter(|guest| self.fabric.is_edge(guest.place));
        let mut switches = self.switches.iter_mut();
        let switch = guest
            .and_then(|guest| switches.find(|(_, one)| one.datapath == Some(guest.place.datapath)));
        if let (Some(guest), Some((connection, switch))) = (guest, switch) {
            self.touched.push(*connection);
            self.frames += 1;
            let frame = message::frame(guest.mac.0, &sealed.bytes);
            let out = [Action::Output(guest.place.port)];
            switch.out.packet_out(&out, &frame);
        } else {
            self.datagrams.push((sealed.address, sealed.bytes));
        }
    }

    /// Does what is due. Returns the connections that are to be closed.
    pub fn tick(&mut self, now_ns: u64) -> Vec<Connection> {
        if self.rules_ns.is_some_and(|due| due <= now_ns) {
            let is_more = self.fabric.settle(now_ns);
            self.paths.clear();
            self.rules_ns = is_more.then_some(now_ns + FIND_NS);
            self.recall(now_ns);
            self.write_rules();
        }
        if self.lldp_ns <= now_ns {
            self.lldp_ns = now_ns + LLDP_NS;
            self.find_links();
            self.stand_in(now_ns);
        }
        for switch in self.switches.values_mut() {
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
            let ready = self.switches.values_mut().filter(|one| one.is_ready);
            for switch in ready.filter(|one| !one.is_ours) {
                switch
                    .out
                    .role(Role::Master, switch.election.wrapping_add(1));
            }
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
        }
    }

    /// What is to be sent to a switch; what was sent is to be taken from the front.
    pub fn output(&mut self, connection: Connection) -> Option<&mut Vec<u8>> {
        Some(self.switches.get_mut(&connection)?.out.bytes())
    }

    /// The connections with something to be sent, other than by [`Controller::tick`].
    pub fn touched(&mut self) -> Vec<Connection> {
        std::mem::take(&mut self.touched)
    }

    /// The connections with switches.
    pub fn connections(&self) -> Vec<Connection> {
        self.switches.keys().copied().collect()
    }

    /// The datagrams that are to be sent.
    pub fn datagrams(&mut self) -> Vec<(SocketAddr, Vec<u8>)> {
        std::mem::take(&mut self.datagrams)
    }
}
