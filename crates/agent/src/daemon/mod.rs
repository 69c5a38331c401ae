// SPDX-License-Identifier: Apache-2.0
//! The daemon: applies its configuration to ports and renews the heartbeat of every pinned port.
//!
//! Only the heartbeat depends on it: it may be killed, upgraded and started again, and finds all
//! state in the pins. It marks the ports that it attached, so that it can detach those that the
//! configuration no longer has. Heartbeats have a thread of their own ([`crate::port::heartbeat`]),
//! and so has the conversation with a controller; all else happens on the main thread.
//!
//! | module | contents |
//! |---|---|
//! | [`config`] | the configuration |
//! | [`plan`] | what a start or a reload would change |
//! | [`requests`] | requests for a reload, which are answered |
//! | `ports`, `settled` | the ports; what configured ones were attached to |
//! | `exports` | metrics, served or written to a file |
//! | `controller`, `frames` | conversations with controllers; their Ethernet frames |
//! | `counted` | ports whose flows a controller counts |

mod check;
pub mod config;
mod controller;
mod counted;
mod exports;
mod frames;
pub mod plan;
mod ports;
pub mod requests;
mod settled;

use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use indexmap::IndexMap;
use penstock_linux::{monitor::LinkMonitor, note};

use crate::attach::load;
use crate::host::audit::{self, Asker};
use crate::host::signals::{self, Signal, Signals};
use crate::host::{requirements, systemd};
use crate::port::PinsArg;

use config::{Agent, Config};
use exports::Exports;
use ports::Ports;
use requests::Requests;

/// Interval between checks for pins that come and go. Changes of interfaces are reported by the
/// kernel.
const FOLLOW: Duration = Duration::from_secs(1);

/// The daemon that attached a port and runs, by its number and its configuration: it would attach the port again.
pub fn that_attached(pins: &PinsArg, interface: &str) -> Option<String> {
    let is_marked = pins.has(interface) && pins.of(interface).join(ports::MARK).exists();
    is_marked.then(|| pins.daemon()).flatten()
}

/// Runs until SIGINT or SIGTERM, and leaves everything attached; or, with `detach`, only what was attached
/// by hand.
///
/// # Errors
/// The configuration cannot be read at the start, the machine lacks a requirement, another daemon
/// keeps the same ports, or one cannot be detached at the end.
pub fn run(path: PathBuf, detach: bool) -> Result<()> {
    let mut config = Config::read(&path)?;
    requirements::require(&config.agent.pins)?;
    let _lock = config.agent.pins().lock_daemon(&path)?;
    signals::outlive_readers();
    let signals = Signals::hold();
    if let Some(line) = without_effect(&config.agent, &path) {
        note!("{line}");
    }
    let requests = Requests::listen(&config.agent.pins());
    let monitor = LinkMonitor::open()?;
    let mut exports = Exports::begin(&config)?;
    controller::begin(config.sdn.as_ref(), config.agent.pins())?;
    let mut ports = Ports::new(&config);
    ports.follow(&config);
    ports.remove_other_versions(&config);
    systemd::ready(&ports.summary());
    let mut events = vec![monitor.as_fd()];
    events.extend(requests.as_fd());
    loop {
        systemd::watchdog();
        exports.write();
        let signal = signals.wait_or(&events, FOLLOW);
        if signal == Some(Signal::End) {
            systemd::stopping();
            if detach {
                let without_ports = Config {
                    port: IndexMap::new(),
                    ..config.clone()
                };
                ports.change(&config, &without_ports).context("--detach")?;
            }
            return Ok(());
        }
        let waiting = requests.take();
        let mut askers: Vec<_> = waiting.iter().map(requests::asker).collect();
        if let Some(Signal::Reload(asker)) = signal {
            askers.push(asker);
        }
        if !askers.is_empty() {
            systemd::reloading();
            let outcome = reload(&path, &mut config, &mut ports, &askers);
            systemd::ready(&ports.summary());
            requests::answer(waiting, &path, &outcome);
        } else {
            monitor.take();
            ports.follow(&config);
        }
    }
}

/// Changes to the configuration as it is now, and returns one line about it. What is refused is in the log, too.
fn reload(
    path: &Path,
    config: &mut Config,
    ports: &mut Ports,
    askers: &[Option<Asker>],
) -> Result<String> {
    let new = read_again(path, config)
        .context("the old configuration stays in force")
        .inspect_err(|error| note!("{error:#}"))?;
    let changed = ports.change(config, &new);
    *config = new;
    let path = path.display().to_string();
    for asker in askers {
        audit::log_for(*asker, "reload", "", &[("config", &path)]);
    }
    changed.with_context(|| format!("{path}: read again, but not in force everywhere"))?;
    let line = format!("{path}: reloaded; {}", ports.summary());
    note!("{line}");
    Ok(line)
}

/// Reads the configuration again, if a running daemon can change to it.
fn read_again(path: &Path, old: &Config) -> Result<Config> {
    config::check_kind(path)?;
    let new = Config::read(path)?;
    let fixed = changed(&[
        ("agent.pins", old.agent.pins != new.agent.pins),
        ("agent.locks", old.agent.locks != new.agent.locks),
        ("metrics", old.metrics != new.metrics),
        ("sdn", old.sdn != new.sdn),
    ]);
    if let Some(keys) = fixed {
        bail!(
            "{}: a change of {keys} takes a restart, which leaves ports attached; do: systemctl restart penstockd",
            path.display()
        );
    }
    let is_same = old.agent.room() == new.agent.room();
    if let Some(line) = without_effect(&new.agent, path).filter(|_| !is_same) {
        bail!("{line}");
    }
    Ok(new)
}

/// Which sizes of the maps that all ports share are configured otherwise than they are, and what to do.
pub fn without_effect(agent: &Agent, path: &Path) -> Option<String> {
    let (maps, configured) = (load::room(&agent.pins().shared())?, agent.room());
    let keys = changed(&[
        ("agent.all_flows", maps.flows != configured.flows),
        ("agent.ports", maps.ports != configured.ports),
    ])?;
    let path = path.display();
    Some(format!(
        "{path}: a change of {keys} takes effect once no port is attached; do: systemctl stop penstockd, \
         penstockd detach --all --config {path}, systemctl start penstockd"
    ))
}

/// The keys that have changed, if any.
fn changed(keys: &[(&str, bool)]) -> Option<String> {
    let changed = keys.iter().filter(|(_, is_changed)| *is_changed);
    let changed: Vec<&str> = changed.map(|(key, _)| *key).collect();
    (!changed.is_empty()).then(|| changed.join(", "))
}
