// SPDX-License-Identifier: Apache-2.0
//! The ports of the daemon: those of its configuration and those attached by hand.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::Result;
use penstock_scenario::Deployment;

use super::config::Config;
use crate::attach::detach::detach;
use crate::attach::hook::{HookChoice, Hooks, keep_first};
use crate::attach::summary::{queue_warning, summary_line};
use crate::attach::{Options, attach};
use crate::host::{interface, systemd};
use crate::port::PinsArg;
use crate::port::heartbeat::Heartbeat;

/// A folder among a port's pins, which marks it as attached by the daemon.
const MARK: &str = "by_daemon";

/// A tool that also wants to be first is not raced more often than this.
const MOVE_AGAIN: Duration = Duration::from_secs(10);

/// All ports whose heartbeats the daemon renews.
pub struct Ports {
    pins: PinsArg,
    heartbeats: BTreeMap<String, Heartbeat>,
    /// The last error of each port that fails, so that it is logged once.
    errors: BTreeMap<String, String>,
    /// Configured ports that this daemon has attached since it started or reloaded. It attaches
    /// each once even if it is attached already, as an upgrade has other programs.
    settled: BTreeMap<String, u32>,
    /// When a port's programs were last put before another's, and before whose.
    moved: BTreeMap<String, (Instant, String)>,
}

impl Ports {
    /// No port yet; `follow` takes over pinned ports.
    pub fn new(config: &Config) -> Ports {
        Ports {
            pins: PinsArg {
                dir: config.agent.pins.clone(),
            },
            heartbeats: BTreeMap::new(),
            errors: BTreeMap::new(),
            settled: BTreeMap::new(),
            moved: BTreeMap::new(),
        }
    }

    /// Renews the heartbeats of all ports and systemd's watchdog.
    pub fn beat(&mut self) {
        systemd::watchdog();
        let Ports {
            heartbeats, errors, ..
        } = self;
        heartbeats.retain(|interface, heartbeat| {
            let result = heartbeat.beat_and_sweep();
            log_error(errors, interface, &result);
            result.is_ok()
        });
    }

    /// Attaches ports as configured, where their interfaces exist, and detaches others.
    pub fn follow(&mut self, config: &Config) {
        for (interface, port) in &config.port {
            let Some(index) = interface::find(interface) else {
                if self.settled.remove(interface).is_some() {
                    eprintln!("{interface}: the interface is gone; it is attached when it returns");
                }
                continue;
            };
            if self.settled.get(interface) == Some(&index) && self.is_on(interface, index) {
                continue;
            }
            let result = self.attach(config, interface, port);
            log_error(&mut self.errors, interface, &result);
            if result.is_ok() {
                self.settled.insert(interface.clone(), index);
            }
            self.adopt();
            // Else the first ports would become stale while the last are attached.
            self.beat();
        }
        self.detach_unconfigured(config);
        self.adopt();
        self.keep_first();
    }

    /// Follows a changed configuration.
    pub fn change(&mut self, old: &Config, new: &Config) {
        self.settled.retain(|interface, _| {
            old.agent == new.agent && old.port.get(interface) == new.port.get(interface)
        });
        self.errors.clear();
        self.follow(new);
    }

    /// The daemon's state in one line, for systemd.
    pub fn summary(&self) -> String {
        match self.heartbeats.len() {
            0 => "no port is attached".to_owned(),
            1 => "keeps 1 port alive".to_owned(),
            n => format!("keeps {n} ports alive"),
        }
    }

    fn attach(&self, config: &Config, interface: &str, port: &Deployment) -> Result<()> {
        let options = Options {
            flows: config.agent.flows,
            stale: config.agent.stale,
            hook: HookChoice::Auto,
            vxlan_ports: config.agent.vxlan_ports,
        };
        let attached = attach(&self.pins, interface, port, &options)?;
        std::fs::create_dir_all(self.pins.of(interface).join(MARK))?;
        let summary = summary_line(interface, port, &attached, HookChoice::Auto);
        eprintln!("{summary}");
        if let Some(warning) = queue_warning(interface, port) {
            eprintln!("{warning}");
        }
        Ok(())
    }

    fn is_on(&self, interface: &str, index: u32) -> bool {
        let hooks = Hooks::of(&self.pins, interface);
        hooks.ifindex == index && hooks.are_ours()
    }

    /// Detaches ports that a configuration once had.
    fn detach_unconfigured(&mut self, config: &Config) {
        for interface in self.pins.interfaces().unwrap_or_default() {
            let is_ours = self.pins.of(&interface).join(MARK).exists();
            if !is_ours || config.port.contains_key(&interface) {
                continue;
            }
            self.heartbeats.remove(&interface);
            let result = detach(&self.pins, &interface);
            log_error(&mut self.errors, &interface, &result);
            if result.is_ok() {
                eprintln!("{interface}: detached, as it is no longer in the configuration");
            }
        }
    }

    /// Puts our programs before those that other tools attached before them, as these may end the
    /// chain.
    fn keep_first(&mut self) {
        for interface in self.heartbeats.keys() {
            let last = self.moved.get(interface);
            let is_recent = last.is_some_and(|(when, _)| when.elapsed() < MOVE_AGAIN);
            let Some(index) = interface::find(interface).filter(|_| !is_recent) else {
                continue;
            };
            match keep_first(&self.pins, interface, index) {
                Err(error) => log_error(&mut self.errors, interface, &Err(error)),
                Ok(others) if others.is_empty() => (),
                Ok(others) => {
                    // Their names take CAP_SYS_ADMIN, which the service does not have.
                    let names = match others.join(" and ") {
                        _ if others.iter().any(String::is_empty) => "another program".into(),
                        names => names,
                    };
                    if last.is_none_or(|(_, before)| *before != names) {
                        eprintln!("{interface}: moved before {names}, first on its hook again");
                    }
                    self.moved
                        .insert(interface.clone(), (Instant::now(), names));
                }
            }
        }
    }

    /// Opens newly pinned ports and forgets those that are gone.
    fn adopt(&mut self) {
        self.heartbeats.retain(|_, heartbeat| heartbeat.is_pinned());
        for interface in self.pins.interfaces().unwrap_or_default() {
            if self.heartbeats.contains_key(&interface) {
                continue;
            }
            // It may be incomplete for now; the next call finds it complete.
            if let Ok(heartbeat) = Heartbeat::open(&self.pins, &interface) {
                self.heartbeats.insert(interface, heartbeat);
            }
        }
    }
}

/// Logs an error unless it is the same as the last.
fn log_error(errors: &mut BTreeMap<String, String>, interface: &str, result: &Result<()>) {
    match result {
        Ok(()) => drop(errors.remove(interface)),
        Err(error) => {
            let line = format!("{error:#}");
            if errors.get(interface) != Some(&line) {
                eprintln!("{line}");
                errors.insert(interface.to_owned(), line);
            }
        }
    }
}
