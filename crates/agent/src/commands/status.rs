// SPDX-License-Identifier: Apache-2.0
//! `penstockd status`.

use anyhow::{Result, bail};
use penstock_scenario::units::Time;
use serde::Serialize;

use crate::format::plural;
use crate::host::{output, requirements};
use crate::port::PinsArg;
use crate::status::{Status, Unreadable, lines, look};

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
    /// Print the list of ports as JSON; of a port that cannot be read, `interface` and `error`.
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
    let ports = match &args.interface {
        Some(interface) => vec![interface.clone()],
        None => args.pins.interfaces()?,
    };
    let time = std::time::Duration::from_nanos(args.time.as_nanos());
    let all = look(&args.pins, &ports, time)?;
    if let (Some(_), [Err(port)]) = (&args.interface, all.as_slice()) {
        bail!("{}", port.error);
    }
    match args.json {
        true => output::write_json(&all.iter().map(entry).collect::<Vec<_>>())?,
        false if all.is_empty() => output::print_no_port(&args.pins.dir)?,
        false => output::print(&text(&all))?,
    }
    match all.iter().filter(|read| read.is_err()).count() {
        0 => Ok(()),
        count => bail!("{} cannot be read", plural(count as u64, "port")),
    }
}

type Read = Result<Status, Unreadable>;

fn text(all: &[Read]) -> String {
    let lines = all.iter().flat_map(|read| match read {
        Ok(status) => lines(status),
        Err(unreadable) => vec![unreadable.line()],
    });
    lines.map(|line| line + "\n").collect()
}

/// A port in the list of `--json`; one that cannot be read has its interface and the error.
#[derive(Serialize)]
#[serde(untagged)]
enum Entry<'a> {
    Port(&'a Status),
    Unreadable(&'a Unreadable),
}

fn entry(read: &Read) -> Entry<'_> {
    match read {
        Ok(status) => Entry::Port(status),
        Err(unreadable) => Entry::Unreadable(unreadable),
    }
}
