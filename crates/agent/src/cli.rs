// SPDX-License-Identifier: Apache-2.0
//! The command line.

use std::ffi::OsString;
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

/// Joins a negative quantity to the option before it, so that it comes to its parser, which has a better
/// error than clap: that takes `-5` for an option, and suggests a command that fails, too.
fn join_negative(words: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let is_negative = |word: &OsString| {
        let text = word.to_string_lossy();
        let number = text.strip_prefix('-').unwrap_or_default();
        number.starts_with(|first: char| first.is_ascii_digit() || first == '.')
    };
    let is_option = |word: &OsString| {
        let text = word.to_string_lossy();
        text.len() > 2 && text.starts_with("--") && !text.contains('=')
    };
    let mut joined: Vec<OsString> = Vec::new();
    let mut are_options = true;
    for word in words {
        are_options &= word != "--";
        match joined.last_mut() {
            Some(option) if are_options && is_negative(&word) && is_option(option) => {
                option.push("=");
                option.push(word);
            }
            _ => joined.push(word),
        }
    }
    joined
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
    let cli = match Cli::try_parse_from(join_negative(std::env::args_os())) {
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

    fn refused(line: &str) -> String {
        let words = join_negative(line.split(' ').map(OsString::from));
        let error = Cli::try_parse_from(words).unwrap_err();
        one_line(&error.to_string())
    }

    #[test]
    fn errors_of_the_command_line_take_one_line() {
        assert_eq!(
            refused("penstockd attach"),
            "the following required arguments were not provided: --scheme <NAME>, <INTERFACE>; see --help"
        );
        assert_eq!(
            refused("penstockd statuss"),
            "unrecognized subcommand 'statuss'; tip: a similar subcommand exists: 'status'; see --help"
        );
        assert_eq!(
            refused("penstockd metrics --listen 127.0.0.1:65536"),
            "invalid value '127.0.0.1:65536' for '--listen [<ADDRESS>]': \
             expected an IP address and a port up to 65535, as in 127.0.0.1:9468; see --help"
        );
        let refused = refused("penstockd attach eth1 --scheme hscc --hook xdp");
        assert!(refused.starts_with("invalid value 'xdp' for '--hook <HOOK>'; [possible values: "));
        assert_eq!(refused.lines().count(), 1);
    }

    #[test]
    fn an_option_is_not_the_value_of_the_one_before() {
        for (line, option) in [
            ("penstockd attach eth1 --rate --scheme hcf", "--rate <RATE>"),
            ("penstockd attach --rate --scheme hcf eth1", "--rate <RATE>"),
            ("penstockd attach eth1 --scheme --rate", "--scheme <NAME>"),
            ("penstockd attach eth1 --scheme hcf --flows", "--flows <N>"),
        ] {
            let missing = format!("a value is required for '{option}' but none was supplied");
            let error = refused(line);
            assert!(error.starts_with(&missing), "{line}: {error}");
        }
    }

    /// Those of a deployment are read later, by the scenarios' reader.
    #[test]
    fn negative_quantities_are_refused_as_values() {
        for (line, reason) in [
            (
                "penstockd status --for -5",
                "'-5' for '--for <TIME>': \"-5\" is negative; allowed units: s, ",
            ),
            (
                "penstockd limit eth1 --ingress -5mbit",
                "'-5mbit' for '--ingress <RATE>': \"-5 Mb/s\" is negative; ",
            ),
            (
                "penstockd attach eth1 --scheme hscc --flows -5",
                "'-5' for '--flows <N>': -5 is not in 64..=16777216",
            ),
            (
                "penstockd attach eth1 --scheme hscc --vxlan-ports -5",
                "'-5' for '--vxlan-ports <PORTS>': \"-5\" is no list of ports; ",
            ),
            (
                "penstockd sicc on eth1 10.0.0.2 10.0.0.1 --mss -5",
                "'-5' for '--mss <BYTES>': -5 is not in 536..=65535",
            ),
        ] {
            let error = refused(line);
            let begin = format!("invalid value {reason}");
            assert!(error.starts_with(&begin), "{error}");
        }
    }
}
