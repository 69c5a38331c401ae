// SPDX-License-Identifier: Apache-2.0
//! `penstockd detach`.

use std::path::PathBuf;

use anyhow::Result;
use penstock_linux::note;

use super::each::each_port;
use crate::attach::detach::{detach, detachable};
use crate::daemon::config::Agent;
use crate::host::requirements;
use crate::port::PinsArg;

/// Options of `penstockd detach`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  penstockd detach eth1
  penstockd detach --all

Windows open in steps within 40 ms; then programs, maps, pins and folders are removed. A running
daemon attaches configured ports again: stop it first, or remove them from its configuration.")]
pub struct Args {
    /// Interface of the port.
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    pub interface: Option<String>,
    /// Detach every attached port.
    #[arg(long)]
    pub all: bool,
    /// Take the folders of pins and locks from the daemon's configuration, whose other keys may be
    /// invalid.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["dir", "locks"])]
    pub config: Option<PathBuf>,
    #[allow(missing_docs)]
    #[command(flatten)]
    pub pins: PinsArg,
}

/// Runs the command.
///
/// # Errors
/// One line: what is wrong and what to do. The other ports are detached nevertheless.
pub fn run(args: Args) -> Result<()> {
    let pins = match &args.config {
        // A package that is removed detaches all ports, whatever has become of the file.
        Some(path) if args.all => Agent::read_pins(path).unwrap_or_else(|error| {
            note!("{error:#}; the default folder of pins is used");
            Agent::default().pins()
        }),
        Some(path) => Agent::read_pins(path)?,
        None => args.pins,
    };
    if pins.is_hidden() {
        requirements::require_capabilities()?;
    }
    let ports = match args.interface {
        Some(interface) => vec![interface],
        None => detachable(&pins)?,
    };
    if !ports.is_empty() {
        requirements::require_capabilities()?;
    }
    each_port(&pins, ports, |port| {
        detach(&pins, port)?;
        Ok("detached".to_owned())
    })
}
