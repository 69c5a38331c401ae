// SPDX-License-Identifier: Apache-2.0
//! The daemon: applies its configuration to ports and renews the heartbeat of every pinned port.
//!
//! Only the heartbeat depends on it: it may be killed, upgraded and started again, and finds all
//! state in the pins. It marks the ports that it attached, so that it can detach those that the
//! configuration no longer has.

pub mod config;
mod exports;
mod ports;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::host::signals::{Signal, Signals};
use crate::host::{requirements, systemd};

use config::Config;
use exports::Exports;
use ports::Ports;

/// Interval between checks for interfaces and pins that come and go.
const FOLLOW: Duration = Duration::from_secs(1);

/// Runs until SIGINT or SIGTERM, and leaves everything attached.
///
/// # Errors
/// The configuration cannot be read at the start, or the machine lacks a requirement.
pub fn run(path: PathBuf) -> Result<()> {
    let mut config = Config::read(&path)?;
    requirements::require(&config.agent.pins)?;
    let signals = Signals::hold();
    let mut exports = Exports::begin(&config)?;
    let mut ports = Ports::new(&config);
    ports.follow(&config);
    systemd::ready(&ports.summary());
    let mut followed = Instant::now();
    loop {
        ports.beat();
        exports.write();
        match signals.wait(Duration::from_nanos(config.agent.heartbeat.as_nanos())) {
            Some(Signal::End) => {
                systemd::stopping();
                return Ok(());
            }
            Some(Signal::Reload) => {
                systemd::reloading();
                match reload(&path, &config) {
                    Ok(new) => {
                        ports.change(&config, &new);
                        config = new;
                        eprintln!("{}: reloaded", path.display());
                    }
                    Err(error) => eprintln!("the old configuration stays in force: {error:#}"),
                }
                systemd::ready(&ports.summary());
            }
            None if followed.elapsed() >= FOLLOW => {
                ports.follow(&config);
                followed = Instant::now();
            }
            None => {}
        }
    }
}

/// Reads the configuration again, if a running daemon can change to it.
fn reload(path: &std::path::Path, old: &Config) -> Result<Config> {
    let new = Config::read(path)?;
    if new.agent.pins != old.agent.pins || new.metrics != old.metrics {
        bail!(
            "{}: agent.pins and metrics change only at a restart; do: systemctl restart penstockd",
            path.display()
        );
    }
    Ok(new)
}
