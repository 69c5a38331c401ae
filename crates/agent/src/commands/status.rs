// SPDX-License-Identifier: Apache-2.0
//! `penstockd status`.

use anyhow::Result;
use penstock_scenario::units::Time;

use crate::host::requirements;
use crate::port::PinsArg;
use crate::status::{lines, look};

/// Options of `penstockd status`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  penstockd status
  penstockd status eth1 --for 5s --json")]
pub struct Args {
    /// Interface of the port [default: all attached ports].
    pub interface: Option<String>,
    /// Time over which rates are measured.
    #[arg(long = "for", value_name = "TIME", default_value = "1 s", value_parser = Time::read)]
    pub time: Time,
    /// Print the list of ports as JSON.
    #[arg(long)]
    pub json: bool,
    #[allow(missing_docs)]
    #[command(flatten)]
    pub pins: PinsArg,
}

/// Runs the command.
///
/// # Errors
/// One line: what is wrong and what to do.
pub fn run(args: Args) -> Result<()> {
    requirements::require_capabilities()?;
    let ports = match args.interface {
        Some(interface) => vec![interface],
        None => args.pins.interfaces()?,
    };
    let time = std::time::Duration::from_nanos(args.time.as_nanos());
    let all = look(
        &args.pins,
        &ports,
        if ports.is_empty() {
            Default::default()
        } else {
            time
        },
    )?;
    if args.json {
        println!("{}", serde_json::to_string_pretty(&all)?);
    } else if all.is_empty() {
        println!("no port is attached in {}", args.pins.dir.display());
    }
    for status in all.iter().filter(|_| !args.json) {
        for line in lines(status) {
            println!("{line}");
        }
    }
    Ok(())
}
