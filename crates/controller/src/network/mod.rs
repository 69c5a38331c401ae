// SPDX-License-Identifier: Apache-2.0
//! The controller: what arrives by connections and datagrams changes what it knows, and leaves what
//! is to be sent. What switches send is in `messages`, what is done as time passes in `upkeep`.

mod messages;
mod upkeep;

use crate::agents::Agents;
use crate::fabric::{Fabric, Mac, Place};
use crate::followers::Followers;
use crate::guests::Guests;
use crate::incast::{Counters, Incast};
use crate::lldp::Lldp;
use crate::openflow::{Action, Error};
use crate::recent::Recent;
use crate::rules::Reason;
use crate::segment::Segment;
use crate::status;
use crate::switch::{Switch, Writes};
use penstock_core::Params;
use penstock_sdn::message::{self, Body, Key, MAX_NOTICES, Notice, Received};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::SocketAddr;

/// After a change of the network, further ones are waited for.
const SETTLE_NS: u64 = 100_000_000;

/// Most other controllers of which frames are numbered, those included that ended.
const MAX_OTHERS: usize = 256;

/// Number of a connection with a switch.
pub type Connection = usize;

/// The controller.
pub struct Controller {
    fabric: Fabric,
    incast: Incast,
    /// Of the ports that are watched.
    watched: BTreeMap<Place, Params>,
    /// Links that are configured, and whether there may be others.
    links: Vec<(Place, Place)>,
    finds_links: bool,
    /// Of each link, the round of LLDP in which a frame was seen on it last.
    seen: BTreeMap<(Place, Place), u64>,
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
    /// The same after a refusal.
    retry_ns: Option<u64>,
    lldp_ns: u64,
    ticked_ns: u64,
    /// Number of the last frames.
    round: u64,
    writes: Writes,
    /// The greatest number of the frames of each other controller, and when one was seen last.
    others: Recent<u64, u64>,
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
            links: Vec::new(),
            finds_links: true,
            seen: BTreeMap::new(),
            lldp,
            switches: BTreeMap::new(),
            agents: Agents::new(agents),
            guests: Guests::default(),
            followers: Followers::default(),
            touched: Vec::new(),
            paths: HashMap::new(),
            rules_ns: None,
            retry_ns: None,
            lldp_ns: 0,
            ticked_ns: 0,
            round: 0,
            writes,
            others: Recent::default(),
            other_ns: 0,
            datagrams: Vec::new(),
            frames: 0,
        }
    }

    /// Links that are there whether LLDP finds them or not, each by the ports at its ends. Unless
    /// `finds_others`, they are all.
    #[must_use]
    pub fn with_links(mut self, links: Vec<(Place, Place)>, finds_others: bool) -> Controller {
        (self.links, self.finds_links) = (links, finds_others);
        self
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

    /// The switches that are connected.
    pub fn connected(&self) -> BTreeSet<u64> {
        let all = self.switches.values();
        all.filter_map(|one| one.datapath).collect()
    }

    /// The switch of a connection, once it has sent its number.
    pub fn datapath(&self, connection: Connection) -> Option<u64> {
        self.switches.get(&connection)?.datapath
    }

    /// How many switches take rules from this controller.
    pub fn written(&self) -> usize {
        self.switches.values().filter(|one| one.is_ours).count()
    }

    /// Whether the rules for all that is known were sent, and none was refused.
    pub fn is_settled(&self) -> bool {
        self.rules_ns.is_none() && self.retry_ns.is_none()
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

    fn on_packet(&mut self, place: Place, reason: Reason, data: &[u8], now_ns: u64) {
        let is_changed = match reason {
            Reason::Lldp => {
                let seen = self.lldp.read(data);
                // Guests get frames, too, and may send them again: of one that ended.
                if let Some(seen) = seen
                    && let Some((sender, number)) = seen.other
                    && seen.from != place
                    && !self.fabric.is_edge(place)
                    && self.others.get(&sender).is_none_or(|last| number > last)
                {
                    self.others.insert(sender, number, MAX_OTHERS);
                    self.other_ns = now_ns;
                    self.outvote(sender);
                }
                let link = seen.filter(|_| self.finds_links);
                link.is_some_and(|seen| {
                    let link = (seen.from.min(place), seen.from.max(place));
                    if let Some(round) = self.seen.get_mut(&link) {
                        *round = self.round;
                    }
                    self.fabric.add_link(seen.from, place)
                })
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
        // Each pair of addresses has an entry in `paths`: only those of hosts that are known.
        if reason == Reason::Segment
            && self.fabric.is_edge(place)
            && let Some(segment) = Segment::read(data)
            && self.fabric.place(segment.macs.0) == Some(place)
            && self.fabric.place(segment.macs.1).is_some()
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
        // Of a switch that has connected again, the connection before may not be closed yet.
        let mut switches = self.switches.iter_mut().rev();
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
