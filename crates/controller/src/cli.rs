// SPDX-License-Identifier: Apache-2.0
//! The command line.

use clap::{Parser, Subcommand};
use std::path::PathBuf;

/// SICC's controller: learns a network of OpenFlow switches, foresees incast at their ports, and has the
/// shims below the senders clamp windows.
#[derive(Parser)]
#[command(name = "penstock-controller", version, arg_required_else_help = true)]
pub struct Cli {
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Subcommand)]
pub enum Command {
    /// Runs until SIGTERM or Ctrl-C. Rules of the switches stay when it ends, clamps do not.
    Run {
        /// The configuration.
        config: PathBuf,
    },
    /// Checks a configuration.
    Check {
        /// The configuration.
        config: PathBuf,
    },
    /// Shows what a running controller knows and did.
    Status {
        /// The configuration that it runs with; it needs `status`.
        config: PathBuf,
        /// Prints one JSON object.
        #[arg(long)]
        json: bool,
    },
}
