// SPDX-License-Identifier: Apache-2.0
//! The agents of hosts and switches: their messages, and which of them has a guest's shim.

use crate::fabric::REBIND_NS;
use penstock_sdn::message::{self, Body, Key, Notice, Peer, Received};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::{IpAddr, SocketAddr};

/// Most guests that are known.
pub(crate) const MAX_GUESTS: usize = 65_536;

/// A host with shims, or a switch's agent.
struct Agent {
    peer: Peer,
    address: Option<SocketAddr>,
    /// Notices go to it as frames.
    takes_frames: bool,
    /// The guests that its last HELLO had: all that it has.
    guests: HashSet<IpAddr>,
    last_ns: u64,
    refused: u64,
}

/// All agents that are configured.
pub(crate) struct Agents {
    /// By their numbers.
    agents: BTreeMap<u16, Agent>,
    /// The agent of each guest's shim.
    shims: HashMap<IpAddr, u16>,
}

/// A message to an agent.
pub(crate) struct Sealed {
    pub address: SocketAddr,
    pub takes_frames: bool,
    pub bytes: Vec<u8>,
}

impl Agents {
    /// The key of each, and whether it takes frames.
    pub fn new(keys: BTreeMap<u16, (Key, bool)>) -> Agents {
        let agent = |(number, (key, takes_frames))| {
            let agent = Agent {
                peer: Peer::new(key, number),
                address: None,
                takes_frames,
                guests: HashSet::new(),
                last_ns: 0,
                refused: 0,
            };
            (number, agent)
        };
        Agents {
            agents: keys.into_iter().map(agent).collect(),
            shims: HashMap::new(),
        }
    }

    /// Messages of each that were refused.
    pub fn refused(&self) -> impl Iterator<Item = (u16, u64)> {
        self.agents
            .iter()
            .map(|(number, one)| (*number, one.refused))
    }

    /// Whether any takes frames.
    pub fn take_frames(&self) -> bool {
        self.agents.values().any(|one| one.takes_frames)
    }

    /// Takes a datagram: the number of its agent and what it asks for, if it is an agent's.
    pub fn take(
        &mut self,
        from: SocketAddr,
        bytes: &[u8],
        random: u64,
        now_ns: u64,
    ) -> Option<(u16, Received)> {
        let number = message::host_of(bytes)?;
        let agent = self.agents.get_mut(&number)?;
        let Ok(received) = agent.peer.unseal(bytes, random.max(1)) else {
            agent.refused += 1;
            return None;
        };
        if let Received::Body(body) = &received {
            (agent.address, agent.last_ns) = (Some(from), now_ns);
            if let Body::Hello(guests) = body {
                self.claim(number, guests, now_ns);
            }
        }
        Some((number, received))
    }

    /// A guest's shim is its first agent's, as long as that sends and has it.
    fn claim(&mut self, number: u16, guests: &[IpAddr], now_ns: u64) {
        if let Some(agent) = self.agents.get_mut(&number) {
            let all = guests.iter().copied().collect();
            let before = std::mem::replace(&mut agent.guests, all);
            for gone in before.difference(&agent.guests) {
                if self.shims.get(gone) == Some(&number) {
                    self.shims.remove(gone);
                }
            }
        }
        if self.shims.len() + guests.len() > MAX_GUESTS {
            // Those of agents that send stay.
            let agents = &self.agents;
            let sends = |one: &Agent| now_ns.saturating_sub(one.last_ns) <= REBIND_NS;
            self.shims
                .retain(|_, number| agents.get(number).is_some_and(sends));
        }
        for guest in guests.iter().take(MAX_GUESTS) {
            let owner = self.shims.get(guest).and_then(|one| self.agents.get(one));
            let is_free = owner.is_none_or(|one| now_ns.saturating_sub(one.last_ns) > REBIND_NS);
            let has_room = self.shims.len() < MAX_GUESTS || self.shims.contains_key(guest);
            if is_free && has_room {
                self.shims.insert(*guest, number);
            }
        }
    }

    /// Notices by the agent of the source's shim; those without one are left out.
    pub fn by_shim(&self, notices: Vec<Notice>) -> BTreeMap<u16, Vec<Notice>> {
        let mut sorted: BTreeMap<u16, Vec<Notice>> = BTreeMap::new();
        for notice in notices {
            if let Some(number) = self.shims.get(&notice.source) {
                sorted.entry(*number).or_default().push(notice);
            }
        }
        sorted
    }

    /// The message for an agent, if one of it has been taken.
    pub fn seal(&mut self, number: u16, body: &Body) -> Option<Sealed> {
        let agent = self.agents.get_mut(&number)?;
        Some(Sealed {
            address: agent.address?,
            takes_frames: agent.takes_frames,
            bytes: agent.peer.seal(body)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two() -> Agents {
        let keys = [1, 2].map(|number| (number, (Key::new(&[7; 32]), false)));
        Agents::new(BTreeMap::from(keys))
    }

    fn hello(agents: &mut Agents, number: u16, guests: &[IpAddr], now_ns: u64) {
        agents.agents.get_mut(&number).expect("it is there").last_ns = now_ns;
        agents.claim(number, guests, now_ns);
    }

    #[test]
    fn a_guest_moves_once_its_agent_has_it_no_more() {
        let mut agents = two();
        let [stays, moves] = [1, 2].map(|last| IpAddr::from([10, 0, 0, last]));
        hello(&mut agents, 1, &[stays, moves], 1);
        hello(&mut agents, 2, &[moves], 2);
        assert_eq!(agents.shims[&moves], 1, "two claim it");
        hello(&mut agents, 1, &[stays], 3);
        hello(&mut agents, 2, &[moves], 4);
        assert_eq!((agents.shims[&stays], agents.shims[&moves]), (1, 2));
    }

    #[test]
    fn a_guest_moves_when_the_table_is_full() {
        let mut agents = two();
        let guests: Vec<_> = (0..MAX_GUESTS as u32)
            .map(|number| IpAddr::from(number.to_be_bytes()))
            .collect();
        let (moves, others) = guests.split_first().expect("there are some");
        hello(&mut agents, 1, &[*moves], 1);
        hello(&mut agents, 2, others, 1);
        let now_ns = 2 + REBIND_NS;
        agents.agents.get_mut(&2).expect("it is there").last_ns = now_ns;
        agents.shims.insert(*moves, 1); // it is silent, and was not swept yet
        agents.claim(2, &guests, now_ns);
        assert_eq!(agents.shims[moves], 2);
    }

    #[test]
    fn guests_of_an_agent_that_is_silent_make_room() {
        let mut agents = two();
        let guests: Vec<_> = (0..MAX_GUESTS as u32 + 1)
            .map(|number| IpAddr::from(number.to_be_bytes()))
            .collect();
        let (all, other) = guests.split_at(MAX_GUESTS);
        agents.claim(1, all, 1);
        agents.claim(2, &[other[0], all[0]], 1);
        assert_eq!((agents.shims.len(), agents.shims[&all[0]]), (MAX_GUESTS, 1));
        let now_ns = 2 * REBIND_NS;
        agents.agents.get_mut(&2).expect("it is there").last_ns = now_ns;
        agents.claim(2, &[other[0], all[0]], now_ns);
        assert_eq!((agents.shims.len(), agents.shims[&all[0]]), (2, 2));
    }
}
