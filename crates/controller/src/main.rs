// SPDX-License-Identifier: Apache-2.0
//! `penstock-controller`: SICC's controller.

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};
use penstock_controller::config::Config;
use penstock_controller::server::Server;
use penstock_controller::status::Status;
use std::io::Read;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// SICC's controller: learns a network of OpenFlow switches, foresees incast at their ports, and has the
/// shims below the senders clamp windows.
#[derive(Parser)]
#[command(name = "penstock-controller", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
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

fn main() -> ExitCode {
    match run(Cli::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("penstock-controller: {error:#}");
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
            eprintln!("penstock-controller: switches at {switches}, agents at {agents}");
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
