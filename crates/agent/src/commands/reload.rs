// SPDX-License-Identifier: Apache-2.0
//! `penstockd reload`.

use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::daemon::config::{Agent, PATH};
use crate::daemon::requests;
use crate::host::{output, requirements};

/// Options of `penstockd reload`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  penstockd reload
  systemctl reload penstockd                    the same for the service

The daemon reads its configuration again, without a gap, and reports whether it is in force. It
refuses an invalid file, and a change of metrics, sdn, agent.pins or agent.locks, which takes a
restart, or, while a port is attached, of agent.all_flows or agent.ports; then the old configuration
stays in force. It also fails where a port is refused; the daemon tries that port again.")]
pub struct Args {
    /// Configuration file of the daemon.
    #[arg(long, value_name = "FILE", default_value = PATH)]
    pub config: PathBuf,
}

/// Runs the command.
///
/// # Errors
/// One line: why the daemon keeps its old configuration, or that none answers.
pub fn run(args: Args) -> Result<()> {
    requirements::require_capabilities()?;
    let pins = Agent::read_pins(&args.config)
        .context("the daemon was not asked; the old configuration stays in force")?;
    output::print(&(requests::ask(&pins, &args.config)? + "\n"))
}
