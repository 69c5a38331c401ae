// SPDX-License-Identifier: Apache-2.0
//! The command line.

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

use crate::attach::load;
use crate::commands::{attach, check, detach, run, status};
use crate::{metrics, observe, watch};

/// Ends TCP incast and buffer bloat at the ports of this host.
#[derive(Parser, Debug)]
#[command(name = "penstockd", version, about, arg_required_else_help = true)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands, each with its options beside its code.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Puts a scheme on a port, or another in place of the one there.
    Attach(attach::Args),
    /// Takes the scheme off a port; nothing stays behind.
    Detach(detach::Args),
    /// Tells what ports do, proven by their counters, and what is on their hooks.
    Status(status::Args),
    /// Is the daemon: has ports do what its configuration says, and keeps them alive.
    Run(run::Args),
    /// Tells whether this machine can, and what is missing.
    Check(check::Args),
    /// Shows ports live, in the terminal.
    Watch(watch::Args),
    /// Watches a port without changing anything, and records its flows.
    Observe(observe::Args),
    /// Serves or writes OpenMetrics of every port.
    Metrics(metrics::Args),
}

fn dispatch(command: Command) -> Result<()> {
    match command {
        Command::Attach(args) => attach::run(args),
        Command::Detach(args) => detach::run(args),
        Command::Status(args) => status::run(args),
        Command::Run(args) => run::run(args),
        Command::Check(args) => check::run(args),
        Command::Watch(args) => watch::run(args),
        Command::Observe(args) => observe::run(args),
        Command::Metrics(args) => metrics::run(args),
    }
}

/// Runs what the command line says; an error is one line.
pub fn main() -> ExitCode {
    // As other programs do when `| head` has seen enough. Sockets tell by EPIPE all the same.
    // SAFETY: no handler is involved.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
    load::listen();
    match dispatch(Cli::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("penstockd: {error:#}");
            ExitCode::FAILURE
        }
    }
}
