// SPDX-License-Identifier: Apache-2.0
//! Where the scenario's hosts and ports are on this machine: the file HOSTS.json.

use crate::failure::{Failure, because};
use crate::namespaces::Namespaces;
use indexmap::IndexMap;
use penstock_scenario::{Scenario, Selector, Traffic};
use penstock_sim::Inputs;
use serde::Deserialize;
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

/// The file as written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    hosts: IndexMap<String, HostEntry>,
    #[serde(default)]
    ports: IndexMap<String, PortEntry>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct HostEntry {
    netns: PathBuf,
    address: IpAddr,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PortEntry {
    netns: PathBuf,
    interface: String,
}

/// A host of the scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Host {
    /// Number of its namespace.
    pub netns: usize,
    /// Its address in there.
    pub address: IpAddr,
}

/// A port to be sampled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortPlace {
    /// As the scenario calls it, "left->right".
    pub name: String,
    /// Number of its namespace.
    pub netns: usize,
    /// Its interface in there.
    pub interface: String,
}

/// Hosts by the scenario's numbers, and the ports.
#[derive(Debug)]
pub struct Places {
    /// `None` for a host that the traffic does not need and the file does not name.
    pub hosts: Vec<Option<Host>>,
    /// In the order of the file.
    pub ports: Vec<PortPlace>,
}

impl Places {
    /// The numbers of the hosts' namespaces, each once.
    pub fn host_namespaces(&self) -> BTreeSet<usize> {
        self.hosts.iter().flatten().map(|host| host.netns).collect()
    }
}

/// Reads the file and opens the namespaces it names.
pub fn read(
    path: &Path,
    scenario: &Scenario,
    inputs: &Inputs,
    namespaces: &mut Namespaces,
) -> Result<Places, Failure> {
    let file = path.display();
    let text = std::fs::read_to_string(path).map_err(because(&file))?;
    let document: Document = serde_json::from_str(&text).map_err(because(&file))?;
    let names = scenario.fabric.hosts();
    let mut hosts = vec![None; names.len()];
    for (name, entry) in &document.hosts {
        let index = names.iter().position(|known| known == name);
        let index = index.ok_or_else(|| {
            let known = format!("{} to {}", names[0], names[names.len() - 1]);
            let what = format!("{file}: hosts.{name}: no such host in the fabric; it has {known}");
            Failure::Because(what)
        })?;
        let netns = namespaces.open(&entry.netns);
        let netns = netns.map_err(because(format!("{file}: hosts.{name}.netns")))?;
        hosts[index] = Some(Host {
            netns,
            address: entry.address,
        });
    }
    if let Some(missing) = needed(scenario, inputs)
        .into_iter()
        .find(|host| hosts[*host].is_none())
    {
        return Err(Failure::Because(format!(
            "{file}: hosts.{}: missing; the scenario's traffic needs it",
            names[missing]
        )));
    }
    let known = scenario.fabric.ports();
    let mut ports = Vec::new();
    for (name, entry) in document.ports {
        if !known.contains(&name) {
            return Err(Failure::Because(format!(
                "{file}: ports.{name}: no such port in the fabric; ports are called as in \"{}\"",
                known[0]
            )));
        }
        let netns = namespaces.open(&entry.netns);
        let netns = netns.map_err(because(format!("{file}: ports.{name}.netns")))?;
        ports.push(PortPlace {
            name,
            netns,
            interface: entry.interface,
        });
    }
    Ok(Places { hosts, ports })
}

/// The hosts that any traffic runs between.
fn needed(scenario: &Scenario, inputs: &Inputs) -> BTreeSet<usize> {
    let ends = |traffic: &Traffic| -> Vec<usize> {
        let resolve = |selector: &Selector| selector.resolve(&scenario.fabric).unwrap_or_default();
        let both = |from, to| [resolve(from), resolve(to)].concat();
        match traffic {
            Traffic::Bulk(t) => both(&t.from, &t.to),
            Traffic::Incast(t) => both(&t.from, &t.to),
            Traffic::Poisson(t) => both(&t.from, &t.to),
            Traffic::Udp(t) => both(&t.from, &t.to),
            Traffic::Job(t) => {
                let (from, to) = t.ends(&scenario.fabric);
                [from, to].concat()
            }
            Traffic::Trace(penstock_scenario::Trace { file, .. }) => inputs
                .trace(file)
                .iter()
                .flat_map(|(_, row)| [row.source as usize, row.destination as usize])
                .collect(),
        }
    };
    scenario.traffic.values().flat_map(ends).collect()
}
