// SPDX-License-Identifier: Apache-2.0
//! `penstockd run`.

use std::path::PathBuf;

use anyhow::Result;

use crate::daemon;
use crate::daemon::config::{Config, PATH};

/// Options of `penstockd run`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  penstockd run
  penstockd run --config ./penstockd.toml --check-config

SIGHUP (systemctl reload penstockd) reads the configuration again without a gap; a bad one is told
and the old one stays. SIGTERM leaves everything attached: the next start takes over, and if none
comes, packets pass untouched once the heartbeat is stale. To take schemes off: penstockd detach.")]
pub struct Args {
    /// The configuration.
    #[arg(long, value_name = "FILE", default_value = PATH)]
    pub config: PathBuf,
    /// Only tell whether the configuration is right.
    #[arg(long)]
    pub check_config: bool,
}

/// Runs the command.
///
/// # Errors
/// One line: what is wrong and what to do.
pub fn run(args: Args) -> Result<()> {
    if !args.check_config {
        return daemon::run(args.config);
    }
    let config = Config::read(&args.config)?;
    let ports: Vec<String> = config
        .port
        .iter()
        .map(|(interface, port)| format!("{interface} {}", port.scheme))
        .collect();
    let told = match ports.is_empty() {
        true => "no port".to_owned(),
        false => ports.join(", "),
    };
    println!("{}: right; {told}", args.config.display());
    Ok(())
}
