// SPDX-License-Identifier: Apache-2.0
//! `penstockd sicc`: orders to SICC's shim by hand, as its controller sends them.

use std::net::IpAddr;

use anyhow::{Result, bail};
use clap::ValueEnum;
use penstock_sdn::message::{Notice, Order};

use crate::host::{output, requirements};
use crate::port::PinsArg;
use crate::port::flow_counts::MIN_MSS_BYTES;
use crate::port::sicc::{self, SICC};

/// Options of `penstockd sicc`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  penstockd attach vnet0 --scheme sicc
  penstockd sicc on vnet0 10.0.0.2 10.0.0.1 --mss 1448 --scale 7
  penstockd sicc off vnet0 10.0.0.2 10.0.0.1")]
pub struct Args {
    /// What the shim is to do.
    pub order: Switch,
    /// Interface below the source, on which the shim is.
    pub interface: String,
    /// Address of the host that sends the data, behind the interface.
    pub source: IpAddr,
    /// Address of the host that gets the data, whose ACKs are lowered.
    pub destination: IpAddr,
    /// With `on`: segment size of the destination, bytes; the clamp.
    #[arg(
        long,
        value_name = "BYTES",
        required_if_eq("order", "on"),
        value_parser = clap::value_parser!(u16).range(i64::from(MIN_MSS_BYTES)..)
    )]
    pub mss: Option<u16>,
    /// With `on`: window scale of the destination, for flows whose own is not known [default: these
    /// pass].
    #[arg(long, value_name = "BITS", value_parser = clap::value_parser!(u8).range(0..=14))]
    pub scale: Option<u8>,
    #[allow(missing_docs)]
    #[command(flatten)]
    pub pins: PinsArg,
}

/// The orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Switch {
    /// Clamp the pair's windows, until `off` or until the scheme's `duration` is over.
    On,
    /// Let the pair's windows pass.
    Off,
}

/// Runs the command.
///
/// # Errors
/// One line: what is wrong and what to do.
pub fn run(args: Args) -> Result<()> {
    requirements::require_capabilities()?;
    let Args {
        interface,
        source,
        destination,
        scale,
        pins,
        ..
    } = args;
    if !pins.has(&interface) {
        return Err(pins.not_attached(&interface));
    }
    if source.is_ipv4() != destination.is_ipv4() {
        bail!("{source} and {destination} are of two versions of IP");
    }
    let scheme = pins.scheme(&interface);
    let scheme = scheme.as_deref().unwrap_or("no program");
    if scheme != SICC {
        bail!("{interface} has {scheme}; do: penstockd attach {interface} --scheme {SICC}");
    }
    let (order, word) = match (args.order, args.mss) {
        (Switch::On, Some(mss)) => (Order::On(mss, scale), "on"),
        _ => (Order::Off, "off"),
    };
    let notice = Notice {
        source,
        destination,
        order,
    };
    sicc::take(&pins.open(&interface)?, &notice)?;
    output::print(&format!("{interface}: {source} to {destination}: {word}\n"))
}
