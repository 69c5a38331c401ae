// SPDX-License-Identifier: Apache-2.0
//! Switches, links and hosts, and routes that are the same forth and back (SICC §4.1).

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};

/// An address of Ethernet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mac(pub [u8; 6]);

impl Mac {
    /// That at an offset of a frame.
    pub fn at(frame: &[u8], offset: usize) -> Option<Mac> {
        Some(Mac(*frame.get(offset..)?.first_chunk()?))
    }

    /// Whether it is that of one host.
    pub fn is_of_host(self) -> bool {
        self.0[0] & 1 == 0 && self.0 != [0; 6]
    }
}

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

/// A port of a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The switch, `datapath_id`.
    pub datapath: u64,
    /// The port's number.
    pub port: u32,
}

/// What is known of the network.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fabric {
    /// The ports of each switch that have a link, and since when.
    switches: BTreeMap<u64, BTreeMap<u32, u64>>,
    /// Whatever leads to a switch was found at the ports that were there before.
    settled_ns: u64,
    /// The far end of each port that leads to another switch.
    links: BTreeMap<Place, Place>,
    /// Where each host is, and when it was last seen there.
    hosts: BTreeMap<Mac, (Place, u64)>,
}

/// Silence after which an address may appear at another port: until then who claims it is not
/// believed, as long as the port where it was first seen has a link.
pub const REBIND_NS: u64 = 5_000_000_000;

/// Silence after which an address may be forgotten for another one. A host with old connections and a
/// route is as silent; it is flooded to until it is seen again.
pub const FORGET_NS: u64 = 300_000_000_000;

/// Time in which a link between two switches is found; until then a port is taken to lead nowhere, as
/// frames that are flooded over an unknown link go round forever.
pub const FIND_NS: u64 = 1_500_000_000;

/// Most hosts; more are not learned, and reached by flooding. Each pair is a rule of each switch on its way.
pub const MAX_HOSTS: usize = 256;

/// Links from each switch to some, by these; of one state of the network.
pub type Distances = BTreeMap<u64, BTreeMap<u64, u32>>;

impl Fabric {
    /// A switch has these ports, those without a link left out.
    pub fn set_ports(&mut self, datapath: u64, ports: BTreeSet<u32>, now_ns: u64) {
        let before = self.switches.remove(&datapath).unwrap_or_default();
        let since = |port| (port, before.get(&port).copied().unwrap_or(now_ns));
        let ports = ports.into_iter().map(since).collect();
        self.switches.insert(datapath, ports);
        self.forget();
    }

    /// Ports that have been there for [`FIND_NS`] lead to hosts, if no link was found. Returns whether
    /// there are others.
    pub fn settle(&mut self, now_ns: u64) -> bool {
        self.settled_ns = now_ns.saturating_sub(FIND_NS);
        let mut since = self.switches.values().flat_map(BTreeMap::values);
        since.any(|since| *since > self.settled_ns)
    }

    /// Whether a switch has ports of which it is known where they lead.
    pub fn is_known(&self, datapath: u64) -> bool {
        let mut since = self
            .switches
            .get(&datapath)
            .into_iter()
            .flat_map(BTreeMap::values);
        since.any(|since| *since <= self.settled_ns)
    }

    /// Drops links and hosts of ports that are gone.
    fn forget(&mut self) {
        let switches = &self.switches;
        let is_there = |place: &Place| {
            let ports = switches.get(&place.datapath);
            ports.is_some_and(|ports| ports.contains_key(&place.port))
        };
        self.links.retain(|from, to| is_there(from) && is_there(to));
        self.hosts.retain(|_, (place, _)| is_there(place));
    }

    /// A frame that left by one port has arrived at the other: a link, in both directions. Returns
    /// whether it is new.
    pub fn add_link(&mut self, from: Place, to: Place) -> bool {
        if self.links.get(&from) == Some(&to) || from.datapath == to.datapath {
            return false;
        }
        for end in [from, to] {
            if let Some(old) = self.links.remove(&end) {
                self.links.remove(&old);
            }
            self.hosts.retain(|_, (place, _)| *place != end);
        }
        self.links.insert(from, to);
        self.links.insert(to, from);
        self.forget();
        true
    }

    /// A link is not there any more. Where its ports lead has to be found again.
    pub fn remove_link(&mut self, from: Place, to: Place, now_ns: u64) {
        for end in [from, to] {
            self.links.remove(&end);
            let ports = self.switches.get_mut(&end.datapath);
            if let Some(since) = ports.and_then(|ports| ports.get_mut(&end.port)) {
                *since = now_ns;
            }
        }
    }

    /// A frame of a host has arrived at a port. Returns whether that is new; it is ignored at ports
    /// that lead to switches, and if the host is at another one ([`REBIND_NS`]).
    pub fn add_host(&mut self, host: Mac, place: Place, now_ns: u64) -> bool {
        if !host.is_of_host() || !self.is_edge(place) {
            return false;
        }
        let known = self.hosts.get(&host).copied();
        if known.is_none() && !self.has_room(place) && !self.forget_one(place, now_ns)
            || known.is_some_and(|(at, last_ns)| {
                at != place && now_ns.saturating_sub(last_ns) < REBIND_NS
            })
        {
            return false;
        }
        self.hosts.insert(host, (place, now_ns));
        known.is_none_or(|(at, _)| at != place)
    }

    /// Whether a port may have one more host: as many as there is room for others. A guest that makes
    /// up addresses takes half of the room, and leaves some for each further port.
    fn has_room(&self, place: Place) -> bool {
        let at = self.hosts.values().filter(|(at, _)| *at == place).count();
        at < MAX_HOSTS - self.hosts.len()
    }

    /// Forgets the host that has been silent for longest, if that is long, for one at this port: one
    /// there, as far as there is any. Returns whether it did.
    fn forget_one(&mut self, place: Place, now_ns: u64) -> bool {
        let has_any = self.hosts.values().any(|(at, _)| *at == place);
        let hosts = self.hosts.iter();
        let hosts = hosts.filter(|(_, (at, _))| *at == place || !has_any);
        let oldest = hosts.min_by_key(|(_, (_, last_ns))| *last_ns);
        let oldest =
            oldest.filter(|(_, (_, last_ns))| now_ns.saturating_sub(*last_ns) >= FORGET_NS);
        let oldest = oldest.map(|(host, _)| *host);
        oldest.is_some_and(|host| self.hosts.remove(&host).is_some())
    }

    /// Whether a port exists and is known to lead to no switch.
    pub fn is_edge(&self, place: Place) -> bool {
        let since = self
            .switches
            .get(&place.datapath)
            .and_then(|ports| ports.get(&place.port));
        since.is_some_and(|since| *since <= self.settled_ns) && !self.links.contains_key(&place)
    }

    /// All hosts, and where they are.
    pub fn hosts(&self) -> impl Iterator<Item = (Mac, Place)> {
        self.hosts.iter().map(|(host, (place, _))| (*host, *place))
    }

    /// Where a host is.
    pub fn place(&self, host: Mac) -> Option<Place> {
        self.hosts.get(&host).map(|(place, _)| *place)
    }

    /// All links, each once.
    pub fn links(&self) -> impl Iterator<Item = (Place, Place)> {
        let both = self.links.iter().map(|(from, to)| (*from, *to));
        both.filter(|(from, to)| from < to)
    }

    /// All switches.
    pub fn switches(&self) -> impl Iterator<Item = u64> {
        self.switches.keys().copied()
    }

    /// Ports of a switch that are known to lead to no other.
    pub fn edges(&self, datapath: u64) -> impl Iterator<Item = u32> {
        let ports = self.switches.get(&datapath).into_iter();
        let ports = ports.flat_map(BTreeMap::keys).copied();
        ports.filter(move |&port| self.is_edge(Place { datapath, port }))
    }

    /// The ports by which frames from one host to another leave, in their order. It is one of the
    /// shortest paths, chosen by both addresses, and the same switches and links as back.
    pub fn path(&self, from: Mac, to: Mac) -> Option<Vec<Place>> {
        self.path_by(&mut Distances::new(), from, to)
    }

    /// The same with the distances of other paths, to which it adds those that are missing.
    pub fn path_by(&self, known: &mut Distances, from: Mac, to: Mac) -> Option<Vec<Place>> {
        let (first, last) = if from <= to { (from, to) } else { (to, from) };
        let [(start, _), (end, _)] = [*self.hosts.get(&first)?, *self.hosts.get(&last)?];
        let mut choice = DefaultHasher::new();
        (first, last).hash(&mut choice);
        let distances = known
            .entry(end.datapath)
            .or_insert_with(|| self.distances(end.datapath));
        let mut at = start.datapath;
        let mut places = Vec::new();
        for left in (0..*distances.get(&at)?).rev() {
            let nearer: Vec<_> = self
                .links_of(at)
                .filter(|(_, to)| distances.get(&to.datapath) == Some(&left))
                .collect();
            let (out, next) = nearer[(choice.finish() % nearer.len() as u64) as usize];
            left.hash(&mut choice);
            places.push(out);
            at = next.datapath;
        }
        if from > to {
            places = places.iter().rev().map(|out| self.links[out]).collect();
        }
        places.push(self.hosts[&to].0);
        Some(places)
    }

    fn links_of(&self, datapath: u64) -> impl Iterator<Item = (Place, Place)> {
        let ends = [0, u32::MAX].map(|port| Place { datapath, port });
        let links = self.links.range(ends[0]..=ends[1]);
        links.map(|(from, to)| (*from, *to))
    }

    /// Links from each switch to one.
    fn distances(&self, datapath: u64) -> BTreeMap<u64, u32> {
        let mut distances = BTreeMap::from([(datapath, 0)]);
        let mut queue = VecDeque::from([(datapath, 0)]);
        while let Some((at, distance)) = queue.pop_front() {
            for (_, to) in self.links_of(at) {
                if let std::collections::btree_map::Entry::Vacant(new) =
                    distances.entry(to.datapath)
                {
                    new.insert(distance + 1);
                    queue.push_back((to.datapath, distance + 1));
                }
            }
        }
        distances
    }

    /// The ports of each switch by which broadcasts go: its hosts', and those of a tree over all
    /// switches.
    pub fn tree(&self) -> BTreeMap<u64, BTreeSet<u32>> {
        let mut tree: BTreeMap<_, BTreeSet<_>> = self
            .switches()
            .map(|datapath| (datapath, self.edges(datapath).collect()))
            .collect();
        let mut reached = BTreeSet::new();
        for root in self.switches() {
            let mut queue = VecDeque::from([root]);
            if !reached.insert(root) {
                continue;
            }
            while let Some(at) = queue.pop_front() {
                for (from, to) in self.links_of(at) {
                    if reached.insert(to.datapath) {
                        queue.push_back(to.datapath);
                        for end in [from, to] {
                            tree.entry(end.datapath).or_default().insert(end.port);
                        }
                    }
                }
            }
        }
        tree
    }
}
