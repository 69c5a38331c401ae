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
mod settled;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, bail};
use indexmap::IndexMap;
use penstock_linux::{monitor::LinkMonitor, note};

use crate::host::signals::{self, Signal, Signals};
use crate::host::{audit, requirements, systemd};

use config::Config;
use exports::Exports;
use ports::Ports;

/// Interval between checks for pins that come and go. Changes of interfaces are reported by the
/// kernel.
const FOLLOW: Duration = Duration::from_secs(1);

/// Runs until SIGINT or SIGTERM, and leaves everything attached; or, with `detach`, only what was attached
/// by hand.
///
/// # Errors
/// The configuration cannot be read at the start, the machine lacks a requirement, or another daemon
/// keeps the same ports.
pub fn run(path: PathBuf, detach: bool) -> Result<()> {
    let mut config = Config::read(&path)?;
    requirements::require(&config.agent.pins)?;
    let _lock = config.agent.pins().lock_daemon(&path)?;
    signals::outlive_readers();
    let signals = Signals::hold();
    let monitor = LinkMonitor::open()?;
    let mut exports = Exports::begin(&config)?;
    controller::begin(config.sdn.as_ref(), config.agent.pins())?;
    let mut ports = Ports::new(&config);
    ports.follow(&config);
    ports.remove_other_versions(&config);
    systemd::ready(&ports.summary());
    loop {
        systemd::watchdog();
        exports.write();
        match signals.wait_or(&monitor, FOLLOW) {
            Some(Signal::End) => {
                systemd::stopping();
                if detach {
                    let without_ports = Config {
                        port: IndexMap::new(),
                        ..config.clone()
                    };
                    ports.change(&config, &without_ports);
                }
                return Ok(());
            }
            Some(Signal::Reload) => {
                systemd::reloading();
                match reload(&path, &config) {
                    Ok(new) => {
                        ports.change(&config, &new);
                        config = new;
                        note!("{}: reloaded", path.display());
                        let config = path.to_string_lossy();
                        audit::log("reload", "", &[("config", &config)]);
                    }
                    Err(error) => note!("the old configuration stays in force: {error:#}"),
                }
                systemd::ready(&ports.summary());
            }
            None => {
                monitor.take();
                ports.follow(&config);
            }
        }
    }
}

/// Reads the configuration again, if a running daemon can change to it.
fn reload(path: &std::path::Path, old: &Config) -> Result<Config> {
    // Another kind of file may keep its reader waiting.
    if std::fs::metadata(path).is_ok_and(|about| !about.is_file()) {
        bail!("{}: is no longer a file", path.display());
    }
    let new = Config::read(path)?;
    let are_same = |old: &Config, new: &Config| {
        (&old.agent.pins, &old.agent.locks, &old.metrics, &old.sdn)
            == (&new.agent.pins, &new.agent.locks, &new.metrics, &new.sdn)
    };
    if !are_same(old, &new) {
        bail!(
            "{}: agent.pins, agent.locks, metrics and sdn change only at a restart; do: systemctl restart penstockd",
            path.display()
        );
    }
    Ok(new)
}
