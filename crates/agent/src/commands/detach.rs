// SPDX-License-Identifier: Apache-2.0
//! `penstockd detach`.

use std::path::PathBuf;

use anyhow::{Result, bail};
use penstock_linux::note;

use super::each::each_port;
use crate::attach::detach::{detach, detachable};
use crate::daemon::{self, config::Agent};
use crate::host::requirements;
use crate::port::PinsArg;

/// Options of `penstockd detach`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  penstockd detach eth1
  penstockd detach --all

Windows open in steps within 40 ms; then programs, maps, pins and folders are removed. A running
daemon attaches the ports of its configuration again within seconds: remove a port from there, and
reload it. --all is refused while a daemon runs that has attached a port: end it first. To let
packets pass untouched at once: penstockd pause --all.")]
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
/// One line: what is wrong and what to do. The other ports are detached nevertheless, but none with `--all` while
/// a daemon would attach some again.
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
    let daemon_of = |port: &String| daemon::that_attached(&pins, port);
    if args.all
        && let Some(daemon) = ports.iter().find_map(daemon_of)
    {
        bail!(
            "nothing is detached: the daemon ({daemon}) would attach its ports again; end it first; to let packets pass untouched at once: penstockd pause --all"
        );
    }
    each_port(&pins, ports, |port| {
        let daemon = daemon::that_attached(&pins, port);
        detach(&pins, port)?;
        Ok(match daemon {
            None => "detached".to_owned(),
            Some(daemon) => format!(
                "detached, but the daemon ({daemon}) attaches it again; to leave it detached, remove it from that configuration, then reload it"
            ),
        })
    })
}
