// SPDX-License-Identifier: Apache-2.0
//! `penstockd reload`.

use std::path::PathBuf;

use anyhow::Result;

use crate::daemon::config::{Config, PATH};
use crate::daemon::requests;
use crate::host::output;

/// Options of `penstockd reload`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  penstockd reload
  systemctl reload penstockd                    the same for the service

The daemon reads its configuration again, without a gap, and reports whether it is in force. It
refuses an invalid file, and a change of metrics, sdn, agent.pins or agent.locks, which takes a
restart; then the old configuration stays in force.")]
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
    let pins = Config::read(&args.config)?.agent.pins();
    output::print(&(requests::ask(&pins)? + "\n"))
}
