// SPDX-License-Identifier: Apache-2.0
//! The ports of a switch whose flows a controller counts.
//!
//! Asked every second, it repeats the number of each port's flows. If it falls silent the number gets old,
//! and the port counts itself.

use std::collections::{HashMap, HashSet, VecDeque};
use std::time::{Duration, Instant};

use penstock_sdn::message::{Ask, FlowOptions, FlowReport, OptionsReport};

use crate::port::flow_counts::FlowCounts;
use crate::port::{PinsArg, config};

/// How long a number holds.
const LIFE: Duration = Duration::from_secs(3);

/// How often all flows are asked for, as messages may be lost.
const ASK_ALL: Duration = Duration::from_secs(300);

/// Flows of a port of which the scales are held; of more, the oldest are forgotten. Those of which the port
/// has an entry are not needed any more.
const MOST: usize = 8192;

/// A port that is attached.
struct Followed {
    /// Its number, which another port in its place has not.
    id: u32,
    maps: FlowCounts,
    /// When all of its flows were asked for, and the controller answered: what is sent before it knows the
    /// session is lost.
    asked: Option<Instant>,
    /// The keys of the flows that are held, and their order.
    held: HashSet<Vec<u8>>,
    order: VecDeque<Vec<u8>>,
}

/// All such ports.
pub(super) struct Counted {
    datapath: u64,
    /// Each port's number at the switch, and its interface.
    interfaces: Vec<(u32, String)>,
    /// By their numbers at the switch.
    followed: HashMap<u32, Followed>,
}

impl Counted {
    /// Of a switch with these ports.
    pub fn new(datapath: u64, ports: impl Iterator<Item = (u32, String)>) -> Counted {
        Counted {
            datapath,
            interfaces: ports.collect(),
            followed: HashMap::new(),
        }
    }

    /// Another session begins: all is asked for again.
    pub fn forget(&mut self) {
        self.followed.clear();
    }

    /// What to ask for: the ports that are attached and configured so; none if no port is.
    pub fn ask(&mut self, pins: &PinsArg) -> Option<Ask> {
        let mut ports = Vec::new();
        for (number, interface) in &self.interfaces {
            let port = pins.open(interface).ok();
            let port = port.filter(|port| port.config().is_ok_and(|one| config::is_counted(&one)));
            let Some(port) = port else {
                self.followed.remove(number);
                continue;
            };
            let known = self.followed.get_mut(number);
            let known = known.filter(|known| known.id == port.id);
            let asked = known.as_ref().and_then(|known| known.asked);
            let wants_all = asked.is_none_or(|asked| asked.elapsed() >= ASK_ALL);
            if let Some(known) = known {
                known.asked = asked.filter(|_| !wants_all);
            } else if let Ok(maps) = FlowCounts::of(&port) {
                let followed = Followed {
                    id: port.id,
                    maps,
                    asked: None,
                    held: HashSet::new(),
                    order: VecDeque::new(),
                };
                self.followed.insert(*number, followed);
            }
            ports.push((*number, wants_all));
        }
        let datapath = self.datapath;
        (!ports.is_empty()).then_some(Ask { datapath, ports })
    }

    /// The controller has counted flows.
    pub fn take(&mut self, report: &FlowReport) {
        for (number, flows) in &report.flows {
            if report.datapath == self.datapath
                && let Some(followed) = self.followed.get_mut(number)
            {
                followed.asked.get_or_insert_with(Instant::now);
                // A port that was detached needs none.
                let _ = followed.maps.set(*flows, LIFE);
            }
        }
    }

    /// The controller knows what SYNs offered.
    pub fn learn(&mut self, report: &OptionsReport) {
        let followed = self.followed.get_mut(&report.port);
        if let Some(followed) = followed.filter(|_| report.datapath == self.datapath) {
            report.flows.iter().for_each(|flow| followed.learn(flow));
        }
    }
}

impl Followed {
    fn learn(&mut self, flow: &FlowOptions) {
        // One that is not believed, or finds no room, passes untouched.
        let Ok(Some(key)) = self.maps.learn(flow) else {
            return;
        };
        if !self.held.insert(key.clone()) {
            return;
        }
        self.order.push_back(key);
        if self.order.len() > MOST
            && let Some(oldest) = self.order.pop_front()
        {
            self.held.remove(&oldest);
            self.maps.forget(&oldest);
        }
    }
}
