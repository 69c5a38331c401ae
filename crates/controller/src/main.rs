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
use std::io::Read;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

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
            Config::read(&config)?.build([0; 32])?;
            println!("{}: no problem", config.display());
            Ok(())
        }
        Command::Status { config, json } => {
            let path = Config::read(&config)?.status;
            let path =
                path.context("status: not in the configuration; give the path of a socket")?;
            let mut text = String::new();
            UnixStream::connect(&path)
                .and_then(|mut stream| stream.read_to_string(&mut text))
                .with_context(|| format!("{}: no controller there", path.display()))?;
            if json {
                println!("{text}");
            } else {
                println!("{}", serde_json::from_str::<Status>(&text)?);
            }
            Ok(())
        }
    }
}
