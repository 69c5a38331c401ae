// SPDX-License-Identifier: Apache-2.0
//! The command line.

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

use crate::attach::load;
use crate::commands::{attach, check, detach, pause, run, status};
use crate::{metrics, observe, watch};

/// End TCP incast and buffer bloat at the ports of this host.
#[derive(Parser, Debug)]
#[command(name = "penstockd", version, about, arg_required_else_help = true)]
pub struct Cli {
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands; the options of each are next to its code.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Attach a scheme to a port, or replace the one attached.
    Attach(attach::Args),
    /// Detach the scheme of a port and remove all its state.
    Detach(detach::Args),
    /// Let packets pass ports untouched for a while; state and programs stay.
    Pause(pause::PauseArgs),
    /// End a pause.
    Resume(pause::ResumeArgs),
    /// Report what ports do, from their counters, and the programs on their hooks.
    Status(status::Args),
    /// Run the daemon: apply the configuration and keep ports' heartbeats alive.
    Run(run::Args),
    /// Check whether this machine can run Penstock; list what is missing.
    Check(check::Args),
    /// Show ports live, in the terminal.
    Watch(watch::Args),
    /// Record a port's queue and flows, without changing anything, and report.
    Observe(observe::Args),
    /// Serve or write OpenMetrics of every port.
    Metrics(metrics::Args),
}

fn dispatch(command: Command) -> Result<()> {
    match command {
        Command::Attach(args) => attach::run(args),
        Command::Detach(args) => detach::run(args),
        Command::Pause(args) => pause::pause(args),
        Command::Resume(args) => pause::resume(args),
        Command::Status(args) => status::run(args),
        Command::Run(args) => run::run(args),
        Command::Check(args) => check::run(args),
        Command::Watch(args) => watch::run(args),
        Command::Observe(args) => observe::run(args),
        Command::Metrics(args) => metrics::run(args),
    }
}

/// Parses the command line and runs the command; an error is one line.
pub fn main() -> ExitCode {
    // End quietly when the reader of a pipe (`| head`) does. Sockets report EPIPE all the same.
    // SAFETY: no handler is involved.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
    load::capture_log();
    match dispatch(Cli::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("penstockd: {error:#}");
            ExitCode::FAILURE
        }
    }
}
