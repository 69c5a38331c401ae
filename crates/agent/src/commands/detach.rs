// SPDX-License-Identifier: Apache-2.0
//! `penstockd detach`.

use anyhow::{Result, anyhow};

use crate::attach::detach::{detach, detachable};
use crate::port::PinsArg;

/// Options of `penstockd detach`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  penstockd detach eth1
  penstockd detach --all

Windows open in steps within 40 ms; then programs, maps, pins and folders are removed. A running
daemon attaches configured ports again: stop it first, or remove them from its configuration.")]
pub struct Args {
    /// Interface of the port.
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    pub interface: Option<String>,
    /// Detach every attached port.
    #[arg(long)]
    pub all: bool,
    #[allow(missing_docs)]
    #[command(flatten)]
    pub pins: PinsArg,
}

/// Runs the command.
///
/// # Errors
/// One line: what is wrong and what to do. The other ports are detached nevertheless.
pub fn run(args: Args) -> Result<()> {
    let ports = match args.interface {
        Some(interface) => vec![interface],
        None => detachable(&args.pins)?,
    };
    let mut refusals = Vec::new();
    for port in ports {
        match detach(&args.pins, &port) {
            Ok(()) => println!("{port}: detached"),
            Err(error) => refusals.push(format!("{error:#}")),
        }
    }
    match refusals.is_empty() {
        true => Ok(()),
        false => Err(anyhow!(refusals.join("; "))),
    }
}
