// SPDX-License-Identifier: Apache-2.0
//! The command line.

use std::process::ExitCode;

use anyhow::Result;
use clap::error::ErrorKind;
use clap::{Parser, Subcommand};
use penstock_linux::note;

use crate::attach::load;
use crate::commands::{attach, check, detach, limit, pause, reload, run, sicc, status};
use crate::format::printable_lines;
use crate::host::signals;
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
    /// Limit the TCP that comes in by an interface, without dropping any: Grant at the side `limit`.
    Limit(limit::Args),
    /// Let packets pass ports untouched for a while; state and programs stay.
    Pause(pause::PauseArgs),
    /// End a pause.
    Resume(pause::ResumeArgs),
    /// Order a shim of SICC to clamp a pair of hosts or to release it, as its controller does.
    Sicc(sicc::Args),
    /// Report what ports do, from their counters, and the programs on their hooks.
    Status(status::Args),
    /// Run the daemon: apply the configuration and keep ports' heartbeats alive.
    Run(run::Args),
    /// Have the daemon read its configuration again, and report whether it accepts it.
    Reload(reload::Args),
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
        Command::Limit(args) => limit::run(args),
        Command::Pause(args) => pause::pause(args),
        Command::Resume(args) => pause::resume(args),
        Command::Sicc(args) => sicc::run(args),
        Command::Status(args) => status::run(args),
        Command::Run(args) => run::run(args),
        Command::Reload(args) => reload::run(args),
        Command::Check(args) => check::run(args),
        Command::Watch(args) => watch::run(args),
        Command::Observe(args) => observe::run(args),
        Command::Metrics(args) => metrics::run(args),
    }
}

/// What clap shows for `penstockd` alone.
const HELP: ErrorKind = ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;

/// An error of clap without its label, usage and blank lines.
fn one_line(error: &str) -> String {
    let is_error = |line: &&str| !line.starts_with("Usage:") && !line.starts_with("For more");
    let lines = error.lines().map(str::trim).take_while(is_error);
    let mut text = String::new();
    for line in lines.filter(|line| !line.is_empty()) {
        text += match text.chars().last() {
            None => "",
            Some(':' | ',') => " ",
            _ if line.starts_with(['-', '<']) => ", ",
            _ => "; ",
        };
        text += line;
    }
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    format!("{text}; see --help")
}

/// Parses the command line and runs the command; an error is one line.
pub fn main() -> ExitCode {
    signals::end_with_readers();
    load::capture_log();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) if error.use_stderr() && error.kind() != HELP => {
            note!("penstockd: {}", one_line(&error.to_string()));
            return ExitCode::from(2);
        }
        Err(help) => help.exit(),
    };
    match dispatch(cli.command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            note!("penstockd: {}", printable_lines(&format!("{error:#}")));
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_the_command_line_take_one_line() {
        let refused = |line: &str| {
            let error = Cli::try_parse_from(line.split(' ')).unwrap_err();
            one_line(&error.to_string())
        };
        assert_eq!(
            refused("penstockd attach"),
            "the following required arguments were not provided: --scheme <NAME>, <INTERFACE>; see --help"
        );
        assert_eq!(
            refused("penstockd statuss"),
            "unrecognized subcommand 'statuss'; tip: a similar subcommand exists: 'status'; see --help"
        );
        let refused = refused("penstockd attach eth1 --scheme hscc --hook xdp");
        assert!(refused.starts_with("invalid value 'xdp' for '--hook <HOOK>'; [possible values: "));
        assert_eq!(refused.lines().count(), 1);
    }
}
