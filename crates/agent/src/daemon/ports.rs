// SPDX-License-Identifier: Apache-2.0
//! The ports of the daemon: those of its configuration and those attached by hand.

use std::collections::BTreeMap;

use anyhow::Result;
use penstock_scenario::Deployment;

use super::config::Config;
use crate::attach::detach::detach;
use crate::attach::hooks;
use crate::attach::{Hook, Options, attach, told, warned};
use crate::host::{interface, systemd};
use crate::port::PinsArg;
use crate::port::heartbeat::Alive;

/// A folder among a port's pins: the daemon attached it, by its configuration.
const MARK: &str = "by_daemon";

/// All ports that are kept alive.
pub struct Ports {
    pins: PinsArg,
    alive: BTreeMap<String, Alive>,
    /// What was last told of a port that fails, so that it is told once.
    refused: BTreeMap<String, String>,
    /// Ports of the configuration that this daemon has attached since it began or read it again:
    /// the first time it does so even if they are, for an upgrade brings other programs.
    settled: BTreeMap<String, u32>,
}

impl Ports {
    /// Takes over what is pinned.
    pub fn new(config: &Config) -> Ports {
        Ports {
            pins: PinsArg {
                dir: config.agent.pins.clone(),
            },
            alive: BTreeMap::new(),
            refused: BTreeMap::new(),
            settled: BTreeMap::new(),
        }
    }

    /// Tells all ports, and systemd, that the agent lives.
    pub fn beat(&mut self) {
        systemd::alive();
        let Ports { alive, refused, .. } = self;
        alive.retain(|interface, alive| {
            let beaten = alive.beat_and_sweep();
            tell(refused, interface, &beaten);
            beaten.is_ok()
        });
    }

    /// Brings ports to what the configuration says, as far as their interfaces are there.
    pub fn follow(&mut self, config: &Config) {
        for (interface, port) in &config.port {
            let Some(index) = interface::find(interface) else {
                if self.settled.remove(interface).is_some() {
                    eprintln!("{interface}: is gone; it is attached when it comes again");
                }
                continue;
            };
            if self.settled.get(interface) == Some(&index) && self.is_on(interface, index) {
                continue;
            }
            let put = self.put(config, interface, port);
            tell(&mut self.refused, interface, &put);
            if put.is_ok() {
                self.settled.insert(interface.clone(), index);
            }
            self.adopt();
            // The first ports shall not get stale while the last are attached.
            self.beat();
        }
        self.drop_unwanted(config);
        self.adopt();
    }

    /// The same after the configuration has changed.
    pub fn change(&mut self, old: &Config, new: &Config) {
        self.settled.retain(|interface, _| {
            old.agent == new.agent && old.port.get(interface) == new.port.get(interface)
        });
        self.refused.clear();
        self.follow(new);
    }

    /// One line.
    pub fn summary(&self) -> String {
        match self.alive.len() {
            0 => "no port is attached".to_owned(),
            1 => "keeps 1 port alive".to_owned(),
            n => format!("keeps {n} ports alive"),
        }
    }

    fn put(&self, config: &Config, interface: &str, port: &Deployment) -> Result<()> {
        let options = Options {
            flows: config.agent.flows,
            stale: config.agent.stale,
            hook: Hook::Auto,
        };
        let attached = attach(&self.pins, interface, port, &options)?;
        std::fs::create_dir_all(self.pins.of(interface).join(MARK))?;
        eprintln!("{}", told(interface, port, &attached, Hook::Auto));
        if let Some(warning) = warned(interface, port) {
            eprintln!("{warning}");
        }
        Ok(())
    }

    fn is_on(&self, interface: &str, index: u32) -> bool {
        let hooks = hooks::of(&self.pins, interface);
        hooks.ifindex == index && hooks.are_ours()
    }

    /// Takes off what the configuration once had.
    fn drop_unwanted(&mut self, config: &Config) {
        for interface in self.pins.interfaces().unwrap_or_default() {
            let is_ours = self.pins.of(&interface).join(MARK).exists();
            if !is_ours || config.port.contains_key(&interface) {
                continue;
            }
            self.alive.remove(&interface);
            let detached = detach(&self.pins, &interface);
            tell(&mut self.refused, &interface, &detached);
            if detached.is_ok() {
                eprintln!("{interface}: detached, the configuration no longer has it");
            }
        }
    }

    /// Opens what is newly pinned, and forgets what is no longer.
    fn adopt(&mut self) {
        self.alive.retain(|_, alive| alive.is_pinned());
        for interface in self.pins.interfaces().unwrap_or_default() {
            if self.alive.contains_key(&interface) {
                continue;
            }
            // It may be in the making; the next look finds it whole.
            if let Ok(alive) = Alive::open(&self.pins, &interface) {
                self.alive.insert(interface, alive);
            }
        }
    }
}

/// Tells a failure when it is another than the last.
fn tell(refused: &mut BTreeMap<String, String>, interface: &str, result: &Result<()>) {
    match result {
        Ok(()) => drop(refused.remove(interface)),
        Err(error) => {
            let line = format!("{error:#}");
            if refused.get(interface) != Some(&line) {
                eprintln!("{line}");
                refused.insert(interface.to_owned(), line);
            }
        }
    }
}
