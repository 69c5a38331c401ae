// SPDX-License-Identifier: Apache-2.0
//! The daemon's configuration.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use indexmap::IndexMap;
use penstock_linux::{agent_folders, text};
use penstock_scenario::units::Time;
use penstock_scenario::{Deployment, deployments};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use super::check::check;
use crate::attach::load::Room;
use crate::attach::{FLOWS, STALE};
use crate::metrics;
use crate::port::PinsArg;
use crate::port::vxlan::VxlanPorts;

/// Where the configuration is by default.
pub const PATH: &str = "/etc/penstock/penstockd.toml";

/// `/etc/penstock/penstockd.toml`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The daemon itself.
    pub agent: Agent,
    /// Export of metrics.
    pub metrics: Metrics,
    /// SICC's controller. Default: none.
    pub sdn: Option<Sdn>,
    /// The deployment of each port, by interface or by a pattern of interfaces.
    pub port: IndexMap<String, Deployment>,
}

/// The table `[agent]`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Agent {
    /// Interval between heartbeats. Default: 100 ms.
    pub heartbeat: Time,
    /// Age of a heartbeat from which packets pass untouched. Default: [`STALE`].
    pub stale: Time,
    /// Folder of the pins, on a bpffs. Default: /sys/fs/bpf/penstock.
    pub pins: PathBuf,
    /// Folder of the locks that keep commands from changing ports at the same time. Default:
    /// /run/penstock.
    pub locks: PathBuf,
    /// The most flows of a port that are followed. Default: [`FLOWS`].
    pub flows: u32,
    /// The same of all ports together. Default: that of [`Room`].
    pub all_flows: u32,
    /// The most ports that can be attached. Default: that of [`Room`].
    pub ports: u32,
    /// UDP ports on which VXLAN is looked for, at most four. Default: those of [`VxlanPorts`].
    pub vxlan_ports: VxlanPorts,
    /// Whether connections in tunnels are known without the tunnel's identifier (VNI), in which
    /// Cilium sends the identity of the sender. Default: false.
    pub ignore_vni: bool,
    /// Interfaces, or patterns of them, whose root qdisc HCF may replace though a user configured it, or
    /// it has a queue for each transmit queue (mq). Default: none.
    pub replace_qdisc: Vec<String>,
}

/// The table `[metrics]`. By default, nothing is served or written.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Metrics {
    /// Address at which OpenMetrics are served, as in "127.0.0.1:9468".
    #[serde(deserialize_with = "address_of_metrics")]
    pub listen: Option<SocketAddr>,
    /// Whether that may be an address that other hosts can reach. Default: false.
    pub allow_remote: bool,
    /// File to which they are written, for node_exporter's textfile collector.
    pub textfile: Option<PathBuf>,
}

/// The table `[sdn]`: the controller, whose orders the shims of this host take, and which counts flows for
/// the ports of a switch on it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sdn {
    /// Address of the controller (UDP), as in "10.0.0.1:6654", or a list of several.
    #[serde(deserialize_with = "one_or_more")]
    pub controller: Vec<SocketAddr>,
    /// The number of this agent in the controller's configuration.
    pub number: u16,
    /// File of the key that both share.
    pub key: PathBuf,
    /// The addresses of the guest behind each interface with a shim. Default: none.
    #[serde(default)]
    pub guests: IndexMap<String, Vec<IpAddr>>,
    /// Whether the shims take the controller's notices out of Ethernet frames, of type 0x88b5, that are
    /// sent to their guests. Default: false, as datagrams only.
    #[serde(default)]
    pub frames: bool,
    /// The switch whose queues are reported. Default: none.
    pub switch: Option<Switch>,
}

/// The table `[sdn.switch]`: ports of a switch on this host, whose queues are qdiscs.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Switch {
    /// The switch's number, hexadecimal as `ovs-vsctl get bridge BR datapath_id` prints it.
    pub datapath: String,
    /// T: time between reports; 0: none is sent, as a controller that only counts flows needs none.
    /// Default: 500 us.
    #[serde(default = "interval")]
    pub interval: Time,
    /// The number of each port, by its interface.
    pub ports: IndexMap<String, u32>,
}

fn address_of_metrics<'de, D: Deserializer<'de>>(from: D) -> Result<Option<SocketAddr>, D::Error> {
    let text = String::deserialize(from)?;
    metrics::address(&text).map(Some).map_err(D::Error::custom)
}

fn one_or_more<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<SocketAddr>, D::Error> {
    #[derive(Deserialize)]
    #[serde(
        untagged,
        expecting = "expected an address, as \"10.0.0.1:6654\", or a list of addresses"
    )]
    enum Given {
        One(SocketAddr),
        More(Vec<SocketAddr>),
    }
    Ok(match Given::deserialize(from)? {
        Given::One(address) => vec![address],
        Given::More(addresses) => addresses,
    })
}

fn interval() -> Time {
    Time::from_micros(500)
}

impl Default for Agent {
    fn default() -> Agent {
        Agent {
            heartbeat: Time::from_millis(100),
            stale: STALE,
            pins: agent_folders::PINS.into(),
            locks: agent_folders::LOCKS.into(),
            flows: FLOWS,
            all_flows: Room::default().flows,
            ports: Room::default().ports,
            vxlan_ports: VxlanPorts::default(),
            ignore_vni: false,
            replace_qdisc: Vec::new(),
        }
    }
}

impl Agent {
    /// The folders of pins and locks of a configuration, which need not be valid otherwise. Without a
    /// file, those by default.
    ///
    /// # Errors
    /// It is no file, which may keep its reader waiting; it cannot be read, or is no TOML.
    pub fn read_pins(path: &Path) -> Result<PinsArg> {
        check_kind(path)?;
        let text = match path.try_exists() {
            Ok(false) => String::new(),
            _ => read_text(path)?,
        };
        let Ok(table) = text.parse::<toml::Table>() else {
            // The error then has the line.
            return Config::parse(&text, path).map(|config| config.agent.pins());
        };
        let folder = |key: &str| table.get("agent")?.get(key)?.as_str().map(PathBuf::from);
        let mut pins = Agent::default().pins();
        pins.dir = folder("pins").unwrap_or(pins.dir);
        pins.locks = folder("locks").unwrap_or(pins.locks);
        Ok(pins)
    }

    /// Whether HCF may replace any root qdisc of an interface.
    pub fn may_replace_qdisc(&self, interface: &str) -> bool {
        let mut names = self.replace_qdisc.iter();
        names.any(|name| is_matched(name, interface))
    }

    /// For how much there is to be room in the maps that all ports share.
    pub fn room(&self) -> Room {
        Room {
            ports: self.ports,
            flows: self.all_flows,
        }
    }

    /// The folders of pins and locks.
    pub fn pins(&self) -> PinsArg {
        PinsArg {
            dir: self.pins.clone(),
            locks: self.locks.clone(),
        }
    }
}

impl Config {
    /// The deployment of an interface, with its name or pattern: its own if there is one, else that of
    /// the longest pattern that matches. The loopback matches no pattern.
    pub fn port_of(&self, interface: &str) -> Option<(&str, &Deployment)> {
        if let Some((name, port)) = self.port.get_key_value(interface) {
            return Some((name, port));
        }
        let matching = self
            .port
            .iter()
            .filter(|(pattern, _)| is_matched(pattern, interface));
        // Of several of the same length, the first in the file.
        let longest = matching.rev().max_by_key(|(pattern, _)| pattern.len());
        longest.map(|(pattern, port)| (pattern.as_str(), port))
    }

    /// Reads a file.
    ///
    /// # Errors
    /// One line: the file, line and key, what is wrong, what is allowed.
    pub fn read(path: &Path) -> Result<Config> {
        Config::parse(&read_text(path)?, path)
    }

    /// Reads `text`; `path` is for messages.
    ///
    /// # Errors
    /// As [`Config::read`].
    pub fn parse(text: &str, path: &Path) -> Result<Config> {
        let config: Config = deployments(text, path)?;
        check(&config).with_context(|| path.display().to_string())?;
        Ok(config)
    }
}

fn read_text(path: &Path) -> Result<String> {
    text::read(path)
        .with_context(|| format!("{} (an example is in man penstockd.toml)", path.display()))
}

/// Refuses what is no file, which may keep its reader waiting; a missing one passes.
///
/// # Errors
/// It is there, and no file.
pub fn check_kind(path: &Path) -> Result<()> {
    if std::fs::metadata(path).is_ok_and(|about| !about.is_file()) {
        bail!("{}: is not a regular file; give one", path.display());
    }
    Ok(())
}

/// Whether this is the name of an interface, or a pattern that matches it. The loopback matches none.
pub fn is_matched(name: &str, interface: &str) -> bool {
    let is_pattern = name.contains(['*', '?']) && interface != "lo";
    name == interface || is_pattern && matches(name.as_bytes(), interface.as_bytes())
}

/// Whether a name matches a pattern: `*` is any text, `?` any character.
fn matches(pattern: &[u8], name: &[u8]) -> bool {
    match (pattern.split_first(), name.split_first()) {
        (None, None) => true,
        // As one of them, which takes no more time the more there are.
        (Some((b'*', rest @ [b'*', ..])), _) => matches(rest, name),
        (Some((b'*', rest)), _) => {
            matches(rest, name)
                || name
                    .split_first()
                    .is_some_and(|(_, name)| matches(pattern, name))
        }
        (Some((b'?', pattern)), Some((_, name))) => matches(pattern, name),
        (Some((one, pattern)), Some((other, name))) => one == other && matches(pattern, name),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        format!(
            "{:#}",
            Config::parse(text, Path::new("p.toml")).unwrap_err()
        )
    }

    #[test]
    fn the_packaged_configuration_and_its_examples_are_valid() {
        let text = crate::reference::configuration();
        assert_eq!(
            Config::parse(&text, Path::new("p.toml")).unwrap(),
            Config::default()
        );
        // Examples are commented out with "#" and no blank; text has one.
        let examples: String = text
            .lines()
            .map(|line| match line.strip_prefix('#') {
                Some(example) if !example.starts_with(' ') => format!("{example}\n"),
                _ => format!("{line}\n"),
            })
            .collect();
        let config = Config::parse(&examples, Path::new("p.toml")).unwrap();
        assert!(config.port.len() >= 2 && config.metrics.listen.is_some());
        assert_eq!(config.agent, Agent::default());
    }

    #[test]
    fn pins_are_found_however_they_are_quoted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("penstockd.toml");
        let dir = |text: &str| {
            std::fs::write(&path, text).unwrap();
            Agent::read_pins(&path).map(|pins| pins.dir)
        };
        let default = PathBuf::from(agent_folders::PINS);
        assert_eq!(
            Agent::read_pins(&folder.path().join("none")).unwrap().dir,
            default
        );
        assert_eq!(dir("[port.x]\nscheme = 7\n").unwrap(), default);
        for text in [
            "[agent]\npins = '/x'\nstale = 7\n",
            "agent.pins = \"/x\"",
            "agent = { pins = \"\"\"/x\"\"\" } # a comment",
            "[agent]\n  \"pins\"=\"\\u002fx\"\n",
        ] {
            assert_eq!(dir(text).unwrap(), PathBuf::from("/x"), "{text}");
        }
        assert!(dir("[agent\n").is_err());
    }

    #[test]
    fn an_own_name_goes_before_patterns_and_long_ones_before_short() {
        let table = |name: &str| format!("[port.\"{name}\"]\nscheme = \"observe\"\n");
        let names = ["*", "lxc*", "lxc?7*", "lxc17", "tap?", "lx*17"];
        let text: String = names.map(table).concat();
        let config = Config::parse(&text, Path::new("p.toml")).unwrap();
        for (interface, name) in [
            ("lxc17", Some("lxc17")),
            ("lxc178", Some("lxc?7*")),
            ("lxc18", Some("lxc*")),
            ("lx-17", Some("lx*17")),
            ("tap1", Some("tap?")),
            ("tap10", Some("*")),
            ("lo", None),
        ] {
            assert_eq!(
                config.port_of(interface).map(|(name, _)| name),
                name,
                "{interface}"
            );
        }
        assert!(!is_matched(
            &format!("{}x", "*".repeat(99)),
            "a23456789012345"
        ));
        let config = Config::parse(&table("lo"), Path::new("p.toml")).unwrap();
        assert!(config.port_of("lo").is_some() && config.port_of("eth1").is_none());
    }

    #[test]
    fn a_qdisc_may_be_replaced_by_name_or_pattern() {
        let text = "[agent]\nreplace_qdisc = [\"eth1\", \"lxc*\"]\n";
        let agent = Config::parse(text, Path::new("p.toml")).unwrap().agent;
        let may = ["eth1", "eth2", "lxc7", "lo"].map(|name| agent.may_replace_qdisc(name));
        assert_eq!(may, [true, false, true, false]);
    }

    #[test]
    fn refusals_name_line_and_key() {
        let text = refused("[agent]\nhartbeat = \"1 s\"\n");
        assert!(text.starts_with("p.toml:2: agent.hartbeat: "), "{text}");
        assert!(text.ends_with("did you mean \"heartbeat\"?"), "{text}");
        let text = refused("[metrics]\nlisten = \"127.0.0.1:65536\"\n");
        let begin = "p.toml:2: metrics.listen: expected an IP address and a port up to 65535, ";
        assert!(text.starts_with(begin), "{text}");
        let remote = "[metrics]\nlisten = \"0.0.0.0:9468\"\n";
        let text = refused(remote);
        assert!(text.starts_with("p.toml: metrics.listen: "), "{text}");
        let allowed = format!("{remote}allow_remote = true\n");
        assert!(Config::parse(&allowed, Path::new("p.toml")).is_ok());
        let text = refused("[port.eth1]\nscheme = \"fairq\"\nwindow = { beta = 1 }\n");
        assert!(
            text.starts_with("p.toml:3: port.eth1.window.beta: "),
            "{text}"
        );
        let text = refused("[port.eth1]\nbuffer = \"1 kB\"\n");
        assert!(
            text.contains("port.eth1") && text.contains("scheme"),
            "{text}"
        );
    }
}
