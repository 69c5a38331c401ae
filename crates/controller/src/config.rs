// SPDX-License-Identifier: Apache-2.0
//! The controller's configuration.

use crate::fabric::Place;
use crate::incast::{Incast, Limits};
use crate::lldp::Lldp;
use crate::network::Controller;
use crate::openflow::number;
use crate::switch::Writes;
use anyhow::{Context, Result, bail};
use indexmap::IndexMap;
use penstock_core::{Params, definitions};
use penstock_linux::text;
use penstock_scenario::{Buffer, deployments};
use penstock_sdn::message;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};

/// The port that the registry of IANA has for OpenFlow.
const OPENFLOW: u16 = 6653;

/// `enum sicc_messages`.
const BY_FRAME: usize = 1;

/// Parameters that have no effect on a controller: those of the simulator, and those of shims.
const WITHOUT_EFFECT: [&str; 9] = [
    "interval",
    "latency",
    "loss",
    "rate",
    "queue_reports",
    "floor",
    "expires",
    "pair_scale",
    "rounds_down",
];

/// The file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Where switches connect. Default: port 6653 of all addresses.
    #[serde(default = "openflow")]
    pub openflow: SocketAddr,
    /// Where agents send their messages (UDP). Default: port 6654 of all addresses.
    #[serde(default = "agents")]
    pub agents: SocketAddr,
    /// Where `status` asks. Default: none.
    pub status: Option<PathBuf>,
    /// Where metrics are served over HTTP, under /metrics, as in "127.0.0.1:9469". Default: nowhere.
    pub metrics: Option<SocketAddr>,
    /// Who writes rules, if there are several controllers.
    #[serde(default)]
    pub writes: Writes,
    /// The file of a key that all controllers of the network share. Default: a key drawn by chance,
    /// for one controller.
    pub key: Option<PathBuf>,
    /// Whether links are found by LLDP, in addition to those of `link`. Guests at two switches can pass each other
    /// the frames that reach them, and so pretend a link: where they are not trusted, give all links. Default: yes.
    #[serde(default = "yes")]
    pub find_links: bool,
    /// SICC's parameters, as in a scenario; or of the kind "flow-counts": no incast is foreseen, but the
    /// flows of ports are counted for agents that ask. With SICC they are, too.
    pub controller: penstock_scenario::Controller,
    /// The ports that are watched, by names of the operator's.
    pub watch: IndexMap<String, Watch>,
    /// The agents of hosts and switches, likewise.
    pub agent: IndexMap<String, Agent>,
    /// Links between switches, likewise, which LLDP need not find. Default: none.
    #[serde(default)]
    pub link: IndexMap<String, Link>,
}

/// A link between two switches.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// The numbers of both switches, as those of watched ports.
    pub datapaths: [String; 2],
    /// The number of each one's port.
    pub ports: [u32; 2],
}

impl Link {
    fn places(&self) -> Result<(Place, Place)> {
        let end = |at: usize| -> Result<Place> {
            let datapath = penstock_sdn::datapath(&self.datapaths[at]).context("datapaths")?;
            let port = checked("ports", self.ports[at])?;
            Ok(Place { datapath, port })
        };
        let (from, to) = (end(0)?, end(1)?);
        if from.datapath == to.datapath {
            bail!(
                "datapaths: both are {}; allowed: two switches",
                self.datapaths[0]
            );
        }
        Ok((from, to))
    }
}

/// The number of a port, if there can be such a one.
fn checked(key: &str, port: u32) -> Result<u32> {
    if !(1..=number::MAX).contains(&port) {
        bail!(
            "{key}: is {port}; allowed: 1 to {}, as ovs-vsctl get interface NAME ofport prints it",
            number::MAX
        );
    }
    Ok(port)
}

/// A port whose queue may fill.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Watch {
    /// The switch's number, hexadecimal as `ovs-vsctl get bridge BR datapath_id` prints it.
    pub datapath: String,
    /// The port's number.
    pub port: u32,
    /// What its queue can hold. SICC needs it.
    pub buffer: Option<Buffer>,
}

impl Watch {
    /// The port, if there can be such a one.
    fn place(&self) -> Result<Place> {
        let datapath = penstock_sdn::datapath(&self.datapath).context("datapath")?;
        let port = checked("port", self.port)?;
        if self.buffer.is_some_and(|buffer| buffer.as_bytes() == 0) {
            bail!("buffer: is 0; allowed: more than nothing");
        }
        Ok(Place { datapath, port })
    }
}

/// A host with a shim, or a switch with an agent.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Agent {
    /// Its number in messages.
    pub number: u16,
    /// The file of the key that it shares with the controller.
    pub key: PathBuf,
    /// Whether notices go to it as Ethernet frames, which the shims of its guests take, and not as datagrams.
    /// Default: as `messages` of [`Config::controller`] has it.
    pub frames: Option<bool>,
}

fn yes() -> bool {
    true
}

fn everywhere(port: u16) -> SocketAddr {
    SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), port)
}

fn openflow() -> SocketAddr {
    everywhere(OPENFLOW)
}

fn agents() -> SocketAddr {
    everywhere(message::PORT)
}

impl Config {
    /// Reads and checks a file.
    ///
    /// # Errors
    /// What is wrong with it, in one line.
    pub fn read(path: &Path) -> Result<Config> {
        let text = text::read(path).with_context(|| path.display().to_string())?;
        let config: Config = deployments(&text, path)?;
        config.check().with_context(|| path.display().to_string())?;
        Ok(config)
    }

    fn check(&self) -> Result<()> {
        if self.controller == penstock_scenario::Controller::None {
            bail!("controller: kind is \"none\"; allowed: sicc, flow-counts");
        }
        if self.watch.is_empty() {
            bail!("watch: no port; give [watch.NAME] with datapath, port and, for SICC, buffer");
        }
        let mut places = BTreeSet::new();
        for (name, one) in &self.watch {
            let place = one.place().with_context(|| format!("watch.{name}"))?;
            if !places.insert(place) {
                bail!("watch.{name}: this port is watched under another name, too");
            }
        }
        let mut ends = BTreeSet::new();
        for (name, one) in &self.link {
            let (from, to) = one.places().with_context(|| format!("link.{name}"))?;
            if !ends.insert(from) || !ends.insert(to) {
                bail!("link.{name}: one of its ports has another link, too");
            }
        }
        let mut numbers: Vec<u16> = self.agent.values().map(|one| one.number).collect();
        numbers.sort_unstable();
        if let Some(twice) = numbers.windows(2).find(|two| two[0] == two[1]) {
            bail!("agent: two have the number {}", twice[0]);
        }
        if self.writes == Writes::One && self.key.is_none() {
            bail!("writes: \"one\" needs key, a file that is the same for all controllers");
        }
        Ok(())
    }

    /// The controller that it describes; `random` is drawn by chance.
    ///
    /// # Errors
    /// A value out of its range, or a key that cannot be read.
    pub fn build(&self, random: [u8; 32]) -> Result<Controller> {
        let mut watched = BTreeMap::new();
        for (name, one) in &self.watch {
            let place = one.place().with_context(|| format!("watch.{name}"))?;
            let own = self.params_at(one);
            watched.insert(place, own.with_context(|| format!("watch.{name}"))?);
        }
        let params = self.controller.params();
        let by_frame = params.is_some_and(|params| params.word("messages") == BY_FRAME);
        let mut keys = BTreeMap::new();
        for (name, one) in &self.agent {
            let key = penstock_sdn::key(&one.key).with_context(|| format!("agent.{name}.key"))?;
            keys.insert(one.number, (key, one.frames.unwrap_or(by_frame)));
        }
        let common = watched.values().next().context("watch: no port")?;
        let decides = self.controller.params().is_some();
        let incast = Incast::new(common, Limits::default(), decides);
        let (sender, secret) = random.split_first_chunk().expect("it is longer");
        let secret = match &self.key {
            Some(file) => penstock_sdn::secret(file).context("key")?,
            None => secret.to_vec(),
        };
        let lldp = Lldp::new(&secret, u64::from_ne_bytes(*sender));
        let links = self.link.values().map(Link::places);
        let links = links.collect::<Result<_>>()?;
        let controller = Controller::new(incast, watched, keys, lldp, self.writes);
        Ok(controller.with_links(links, self.find_links))
    }

    /// The keys of `controller` that are given and have no effect.
    pub fn without_effect(&self) -> Vec<&'static str> {
        let given = self
            .controller
            .params()
            .into_iter()
            .flat_map(|one| one.given());
        let names = given.filter_map(|(param, value)| value.map(|_| param.key));
        names.filter(|name| WITHOUT_EFFECT.contains(name)).collect()
    }

    /// SICC's parameters at a port; those by default where it only counts.
    fn params_at(&self, port: &Watch) -> Result<Params> {
        let Some(params) = self.controller.params() else {
            return Ok(Params::new(definitions::of("sicc"), 1));
        };
        let buffer = port.buffer.context("buffer: is missing; SICC needs it")?;
        Ok(params.core(buffer.as_bytes(), None)?)
    }
}
