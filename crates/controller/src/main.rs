// SPDX-License-Identifier: Apache-2.0
//! `penstock-controller`: SICC's controller.

mod cli;

use anyhow::{Context, Result};
use clap::Parser;
use cli::{Cli, Command};
use penstock_controller::config::Config;
use penstock_controller::server::Server;
use penstock_controller::status::Status;
use penstock_linux::note;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::fmt::Display;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// A controller that has not answered by then does not.
const PATIENCE: Duration = Duration::from_secs(10);

fn main() -> ExitCode {
    match run(Cli::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            note!("penstock-controller: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn run(command: Command) -> Result<()> {
    match command {
        Command::Run { config } => {
            raise_limit()?;
            let mut server = Server::new(&Config::read(&config)?)?;
            let stop = Arc::new(AtomicBool::new(false));
            for signal in [
                signal_hook::consts::SIGTERM,
                signal_hook::consts::SIGINT,
                signal_hook::consts::SIGHUP,
            ] {
                signal_hook::flag::register(signal, stop.clone())?;
            }
            let (switches, agents) = server.addresses()?;
            note!("penstock-controller: switches at {switches}, agents at {agents}");
            server.run(&stop)
        }
        Command::Check { config } => {
            let read = Config::read(&config)?;
            read.build([0; 32])?;
            for key in read.without_effect() {
                note!(
                    "{}: note: controller.{key} has no effect here, but in the simulator or in a shim",
                    config.display()
                );
            }
            print(format_args!("{}: no problem", config.display()))
        }
        Command::Status { config, json } => {
            let path = Config::read(&config)?.status;
            let path =
                path.context("status: not in the configuration; give the path of a socket")?;
            let mut text = String::new();
            UnixStream::connect(&path)
                .and_then(|mut stream| {
                    stream.set_read_timeout(Some(PATIENCE))?;
                    stream.read_to_string(&mut text)
                })
                .with_context(|| format!("{}: no controller answers there", path.display()))?;
            let status: Status = serde_json::from_str(&text)
                .with_context(|| format!("{}: no status", path.display()))?;
            if json { print(text) } else { print(status) }
        }
    }
}

/// Prints a line, unless nothing reads it.
fn print(line: impl Display) -> Result<()> {
    writeln!(std::io::stdout(), "{line}").context("standard output")
}

/// Allows as many connections as the system does.
fn raise_limit() -> Result<()> {
    let limit = getrlimit(Resource::Nofile);
    let current = limit.maximum;
    setrlimit(Resource::Nofile, Rlimit { current, ..limit }).context("limit of open files")
}
