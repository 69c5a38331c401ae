// SPDX-License-Identifier: Apache-2.0
//! Fabrics as lists of cables: written in the scenario, or in a file of edges or GraphML.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::path::Path;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, Error};
use serde::ser::{Serialize, Serializer};

use super::fabric::Graph;
use super::graphml;
use super::measure::matches;
use crate::units::{Rate, Time};

/// Links on the longest path that the simulator holds.
const MOST_HOPS: usize = 40;
/// The fields of an edge, in an error.
const FIELDS: &str = "[\"node\", \"node\"], and a rate and a delay if they differ from the others'";

/// A cable between two nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edge {
    /// The nodes.
    pub ends: [String; 2],
    /// Bits per second; `None`: as other cables of its kind.
    pub rate: Option<Rate>,
    /// Propagation delay; `None`: as other cables of its kind.
    pub delay: Option<Time>,
}

impl Edge {
    /// Of two names, and a rate and a delay if they are given.
    ///
    /// # Errors
    /// What is wrong.
    pub fn read(fields: &[&str]) -> Result<Edge, String> {
        let (ends, rate, delay) = match fields {
            [a, b] => ([a, b], "", ""),
            [a, b, rate] => ([a, b], *rate, ""),
            [a, b, rate, delay] => ([a, b], *rate, *delay),
            _ => return Err(format!("has {} fields; allowed: {FIELDS}", fields.len())),
        };
        // An empty field is as other cables.
        let rate = (!rate.is_empty()).then(|| Rate::read(rate)).transpose()?;
        let delay = (!delay.is_empty()).then(|| Time::read(delay)).transpose()?;
        Ok(Edge {
            ends: ends.map(|name| (*name).to_owned()),
            rate,
            delay,
        })
    }
}

impl<'de> Deserialize<'de> for Edge {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Edge, D::Error> {
        let fields = Vec::<String>::deserialize(deserializer)?;
        let fields: Vec<&str> = fields.iter().map(String::as_str).collect();
        Edge::read(&fields).map_err(D::Error::custom)
    }
}

impl Serialize for Edge {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = self.ends.to_vec();
        if self.rate.is_some() || self.delay.is_some() {
            fields.push(self.rate.map_or(String::new(), |rate| rate.to_string()));
        }
        fields.extend(self.delay.map(|delay| delay.to_string()));
        fields.serialize(serializer)
    }
}

impl JsonSchema for Edge {
    fn schema_name() -> Cow<'static, str> {
        "Edge".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A cable: the names of two nodes, then a rate and a delay if they differ from those of the other cables: [\"leaf1\", \"spine1\", \"10 Gb/s\", \"5 us\"].",
            "type": "array",
            "items": { "type": "string" },
            "minItems": 2,
        })
    }
}

/// A fabric's nodes and cables, as found in its edges.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Net {
    /// Names of the hosts, switch after switch.
    pub hosts: Vec<String>,
    /// The switch that each host hangs on, and the edge that joins them, if it is one of the list.
    pub places: Vec<(usize, Option<usize>)>,
    /// Names of the switches.
    pub switches: Vec<String>,
    /// Switches that are joined, and the edge.
    pub cables: Vec<(usize, usize, usize)>,
    /// Cables on the longest of the shortest paths between switches with hosts.
    pub hops: usize,
}

/// Reads the edges of a file: GraphML, or a line `node,node[,rate[,delay]]` or `node node` for each.
///
/// # Errors
/// What is wrong, with the line.
pub fn read(path: &Path) -> Result<Vec<Edge>, String> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| format!("cannot read \"{}\" ({error})", path.display()))?;
    let is_graphml = path.extension().is_some_and(|ending| ending == "graphml");
    let edges = match is_graphml {
        true => graphml::edges(&text),
        false => lines(&text),
    };
    edges.map_err(|what| format!("\"{}\": {what}", path.display()))
}

fn lines(text: &str) -> Result<Vec<Edge>, String> {
    let mut edges = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        let fields: Vec<&str> = match line.contains(',') {
            true => line.split(',').map(str::trim).collect(),
            false => line.split_whitespace().collect(),
        };
        edges.push(Edge::read(&fields).map_err(|what| format!("line {number}: {what}"))?);
    }
    Ok(edges)
}

impl Graph {
    /// Finds the nodes and cables in the edges.
    ///
    /// # Errors
    /// The key, and what is wrong.
    pub fn find(&mut self) -> Result<(), (&'static str, String)> {
        self.net = self.net_of()?;
        Ok(())
    }

    fn net_of(&self) -> Result<Net, (&'static str, String)> {
        let wrong = |what: String| ("edges", what);
        let mut degree: HashMap<&str, usize> = HashMap::new();
        let mut nodes: Vec<&str> = Vec::new();
        let mut pairs = HashSet::new();
        for Edge { ends: [a, b], .. } in &self.edges {
            for name in [a, b] {
                let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
                if name.is_empty() || !name.chars().all(is_plain) || name.contains("->") {
                    let what = "is no name; allowed: letters, digits, \"-\", \"_\", \".\"";
                    return Err(wrong(format!("\"{name}\" {what}")));
                }
                let count = degree.entry(name).or_insert_with(|| {
                    nodes.push(name);
                    0
                });
                *count += 1;
                if name == "all" {
                    let what = "\"all\" names every host; allowed: another name";
                    return Err(wrong(what.to_owned()));
                }
            }
            if a == b {
                return Err(wrong(format!("joins \"{a}\" to itself")));
            }
            if !pairs.insert((a.min(b), a.max(b))) {
                return Err(wrong(format!(
                    "joins \"{a}\" and \"{b}\" twice; allowed: one cable, of another rate"
                )));
            }
        }
        let is_host = |name: &str| match self.hosts.as_slice() {
            [] => self.hosts_per_switch == 0 && degree[name] == 1,
            patterns => patterns.iter().any(|pattern| matches(pattern, name)),
        };
        let switches: Vec<String> = nodes
            .iter()
            .filter(|name| !is_host(name))
            .map(|name| (*name).to_owned())
            .collect();
        let index: HashMap<&str, usize> = switches
            .iter()
            .enumerate()
            .map(|(index, name)| (name.as_str(), index))
            .collect();
        let mut hosts: Vec<(usize, String, Option<usize>)> = Vec::new();
        let mut cables = Vec::new();
        for (number, Edge { ends: [a, b], .. }) in self.edges.iter().enumerate() {
            match (index.get(a.as_str()), index.get(b.as_str())) {
                (Some(a), Some(b)) => cables.push((*a, *b, number)),
                (Some(switch), None) => hosts.push((*switch, b.clone(), Some(number))),
                (None, Some(switch)) => hosts.push((*switch, a.clone(), Some(number))),
                (None, None) => {
                    let what = format!("joins the hosts \"{a}\" and \"{b}\"; put a switch between");
                    return Err(wrong(what));
                }
            }
        }
        if let Some(name) = nodes
            .iter()
            .find(|name| is_host(name) && degree[*name] != 1)
        {
            let what = format!(
                "\"{name}\" is a host with {} cables; allowed: one",
                degree[name]
            );
            return Err(("hosts", what));
        }
        for (switch, name) in switches.iter().enumerate() {
            let made =
                (1..=self.hosts_per_switch).map(|n| (switch, format!("{name}-host{n}"), None));
            hosts.extend(made);
        }
        if hosts.len() < 2 {
            let what = format!(
                "the fabric has {} hosts; name them, as in hosts = [\"server*\"], or give \
                 hosts_per_switch",
                hosts.len()
            );
            return Err(("hosts", what));
        }
        hosts.sort_by_key(|(switch, _, _)| *switch);
        let mut net = Net {
            places: hosts
                .iter()
                .map(|(switch, _, edge)| (*switch, *edge))
                .collect(),
            hosts: hosts.into_iter().map(|(_, name, _)| name).collect(),
            switches,
            cables,
            hops: 0,
        };
        Self::measure(&mut net)?;
        Ok(net)
    }

    /// The longest path.
    fn measure(net: &mut Net) -> Result<(), (&'static str, String)> {
        let mut joined: Vec<Vec<usize>> = vec![Vec::new(); net.switches.len()];
        for (a, b, _) in &net.cables {
            joined[*a].push(*b);
            joined[*b].push(*a);
        }
        let with_hosts: BTreeSet<usize> = net.places.iter().map(|(switch, _)| *switch).collect();
        for &source in &with_hosts {
            let mut reached: Vec<Option<usize>> = vec![None; joined.len()];
            reached[source] = Some(0);
            let mut queue = VecDeque::from([source]);
            while let Some(switch) = queue.pop_front() {
                let Some(hops) = reached[switch] else {
                    continue;
                };
                for &next in &joined[switch] {
                    if reached[next].is_none() {
                        reached[next] = Some(hops + 1);
                        queue.push_back(next);
                    }
                }
            }
            for &switch in &with_hosts {
                let Some(hops) = reached[switch] else {
                    let (from, to) = (&net.switches[source], &net.switches[switch]);
                    let what = format!("there is no path from \"{from}\" to \"{to}\"");
                    return Err(("edges", what));
                };
                net.hops = net.hops.max(hops);
            }
        }
        if net.hops > MOST_HOPS {
            let what = format!(
                "a path has {} cables; allowed: at most {MOST_HOPS}",
                net.hops
            );
            return Err(("edges", what));
        }
        Ok(())
    }
}
