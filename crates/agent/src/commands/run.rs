// SPDX-License-Identifier: Apache-2.0
//! `penstockd run`.

use std::path::PathBuf;

use anyhow::Result;

use crate::daemon;
use crate::daemon::config::{Config, PATH};
use crate::daemon::plan;
use crate::host::output;

/// Options of `penstockd run`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  penstockd run
  penstockd run --check-config ./penstockd.toml     is this file valid? No port is touched
  penstockd run --dry-run                       what a reload would change, interface by interface

penstockd reload (systemctl reload penstockd) makes the daemon read its configuration again, without
a gap; SIGHUP does the same, but reports to the log only. Without --detach, SIGTERM leaves all ports
attached: the next start takes over; without one, packets pass untouched once the heartbeat is
stale. To detach schemes: penstockd detach.")]
pub struct Args {
    /// Configuration file.
    #[arg(long, value_name = "FILE", default_value = PATH)]
    pub config: PathBuf,
    /// Check a configuration, by default that of --config, without touching a port, and exit.
    #[arg(long, value_name = "FILE", num_args = 0..=1)]
    pub check_config: Option<Option<PathBuf>>,
    /// Print what a start or a reload with this configuration would change, and exit.
    #[arg(long, conflicts_with = "check_config")]
    pub dry_run: bool,
    /// Detach the ports of the configuration at SIGTERM, as a container does that may be removed.
    #[arg(long)]
    pub detach: bool,
}

/// Runs the command.
///
/// # Errors
/// One line: what is wrong and what to do.
pub fn run(args: Args) -> Result<()> {
    if args.dry_run {
        let config = Config::read(&args.config)?;
        let mut lines = plan::lines(&config)?;
        lines.extend(daemon::without_effect(&config.agent, &args.config));
        return output::print(
            &lines
                .into_iter()
                .map(|line| line + "\n")
                .collect::<String>(),
        );
    }
    let Some(named) = args.check_config else {
        return daemon::run(args.config, args.detach);
    };
    let path = named.unwrap_or(args.config);
    let config = Config::read(&path)?;
    let ports: Vec<String> = config
        .port
        .iter()
        .map(|(interface, port)| format!("{interface} {}", port.scheme))
        .collect();
    let list = match ports.is_empty() {
        true => "no port".to_owned(),
        false => ports.join(", "),
    };
    output::print(&format!("{}: valid; {list}\n", path.display()))
}
