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

use crate::host::signals::{self, Signal, Signals};
use crate::host::{audit, requirements, systemd};
use crate::port::PinsArg;

use config::Config;
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
        if signal == Some(Signal::Reload) || !waiting.is_empty() {
            systemd::reloading();
            let outcome = reload(&path, &mut config, &mut ports);
            systemd::ready(&ports.summary());
            requests::answer(waiting, &path, &outcome);
        } else {
            monitor.take();
            ports.follow(&config);
        }
    }
}

/// Changes to the configuration as it is now, and returns one line about it. What is refused is in the log, too.
fn reload(path: &Path, config: &mut Config, ports: &mut Ports) -> Result<String> {
    let new = read_again(path, config)
        .context("the old configuration stays in force")
        .inspect_err(|error| note!("{error:#}"))?;
    let changed = ports.change(config, &new);
    *config = new;
    let path = path.display().to_string();
    audit::log("reload", "", &[("config", &path)]);
    changed.with_context(|| format!("{path}: read again, but not in force everywhere"))?;
    let line = format!("{path}: reloaded; {}", ports.summary());
    note!("{line}");
    Ok(line)
}

/// Reads the configuration again, if a running daemon can change to it.
fn read_again(path: &Path, old: &Config) -> Result<Config> {
    config::check_kind(path)?;
    let new = Config::read(path)?;
    let fixed = [
        ("agent.pins", old.agent.pins != new.agent.pins),
        ("agent.locks", old.agent.locks != new.agent.locks),
        ("metrics", old.metrics != new.metrics),
        ("sdn", old.sdn != new.sdn),
    ];
    let changed: Vec<&str> = fixed
        .iter()
        .filter_map(|(key, is_changed)| is_changed.then_some(*key))
        .collect();
    if !changed.is_empty() {
        bail!(
            "{}: a change of {} takes a restart, which leaves ports attached; do: systemctl restart penstockd",
            path.display(),
            changed.join(", ")
        );
    }
    Ok(new)
}
