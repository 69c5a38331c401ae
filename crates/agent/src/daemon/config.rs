// SPDX-License-Identifier: Apache-2.0
//! The daemon's configuration.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use indexmap::IndexMap;
use penstock_scenario::units::Time;
use penstock_scenario::{Deployment, deployments};
use serde::Deserialize;

use crate::attach::{FLOWS, STALE};
use crate::port::vxlan::VxlanPorts;
use crate::port::{PinsArg, lock, pins};

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
    /// The deployment of each port, by interface.
    pub port: IndexMap<String, Deployment>,
}

/// The table `[agent]`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Agent {
    /// Interval between heartbeats. Default: 100 ms.
    pub heartbeat: Time,
    /// Age of a heartbeat from which packets pass untouched. Default: 2 s.
    pub stale: Time,
    /// Folder of the pins, on a bpffs. Default: /sys/fs/bpf/penstock.
    pub pins: PathBuf,
    /// Folder of the locks that keep commands from changing ports at the same time. Default:
    /// /run/penstock.
    pub locks: PathBuf,
    /// Entries of a port's tables of flows. Default: 65536.
    pub flows: u32,
    /// UDP ports on which VXLAN is looked for, at most four. Default: 4789 and 8472.
    pub vxlan_ports: VxlanPorts,
}

/// The table `[metrics]`. By default, nothing is served or written.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Metrics {
    /// Address at which OpenMetrics are served, as in "127.0.0.1:9468".
    pub listen: Option<SocketAddr>,
    /// File to which they are written, for node_exporter's textfile collector.
    pub textfile: Option<PathBuf>,
}

impl Default for Agent {
    fn default() -> Agent {
        Agent {
            heartbeat: Time::from_millis(100),
            stale: STALE,
            pins: pins::DEFAULT_DIR.into(),
            locks: lock::DEFAULT_DIR.into(),
            flows: FLOWS,
            vxlan_ports: VxlanPorts::default(),
        }
    }
}

impl Agent {
    /// The folders of pins and locks.
    pub fn pins(&self) -> PinsArg {
        PinsArg {
            dir: self.pins.clone(),
            locks: self.locks.clone(),
        }
    }
}

impl Config {
    /// Reads a file.
    ///
    /// # Errors
    /// One line: the file, line and key, what is wrong, what is allowed.
    pub fn read(path: &Path) -> Result<Config> {
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("{} (an example is in man penstockd.toml)", path.display()))?;
        Config::parse(&text, path)
    }

    /// Reads `text`; `path` is for messages.
    ///
    /// # Errors
    /// As [`Config::read`].
    pub fn parse(text: &str, path: &Path) -> Result<Config> {
        let config: Config = deployments(text, path)?;
        let agent = &config.agent;
        let longest = Time(agent.stale.0 / 4);
        if agent.heartbeat < Time::from_millis(10) || agent.heartbeat > longest {
            bail!(
                "{}: agent.heartbeat: is {}; allowed: 10 ms to a quarter of agent.stale, {longest}",
                path.display(),
                agent.heartbeat
            );
        }
        if !(64..=1 << 24).contains(&agent.flows) {
            bail!(
                "{}: agent.flows: is {}; allowed: 64 to 16777216",
                path.display(),
                agent.flows
            );
        }
        Ok(config)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        Config::parse(text, Path::new("p.toml"))
            .unwrap_err()
            .to_string()
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
    fn refusals_name_line_and_key() {
        let text = refused("[agent]\nhartbeat = \"1 s\"\n");
        assert!(text.starts_with("p.toml:2: agent.hartbeat: "), "{text}");
        assert!(text.ends_with("did you mean \"heartbeat\"?"), "{text}");
        let text = refused("[agent]\nheartbeat = \"1 s\"\n");
        assert!(text.ends_with("a quarter of agent.stale, 500 ms"), "{text}");
        let text = refused("[metrics]\nlisten = \"localhost\"\n");
        assert!(text.starts_with("p.toml:2: metrics.listen: "), "{text}");
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
