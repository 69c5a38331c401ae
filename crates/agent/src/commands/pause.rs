// SPDX-License-Identifier: Apache-2.0
//! `penstockd pause` and `penstockd resume`.

use anyhow::Result;
use penstock_scenario::units::Time;

use super::each::each_port;
use crate::host::clock::monotonic_ns;
use crate::host::{audit, requirements};
use crate::port::{PinsArg, Port};

/// The ports that a command is for.
#[derive(clap::Args, Debug)]
pub struct Ports {
    /// Interfaces of the ports.
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    pub interfaces: Vec<String>,
    /// Every attached port.
    #[arg(long)]
    pub all: bool,
    #[allow(missing_docs)]
    #[command(flatten)]
    pub pins: PinsArg,
}

/// Options of `penstockd pause`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  penstockd pause eth1
  penstockd pause --all --for 10min

Windows open in steps within 40 ms; then packets pass untouched, while flows stay counted. Neither a
reload nor a restart of the daemon ends the pause. To end it: penstockd resume.")]
pub struct PauseArgs {
    #[allow(missing_docs)]
    #[command(flatten)]
    pub ports: Ports,
    /// Time after which the port acts again by itself [default: until penstockd resume].
    #[arg(long = "for", value_name = "TIME", value_parser = Time::read)]
    pub time: Option<Time>,
}

/// Options of `penstockd resume`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  penstockd resume eth1
  penstockd resume --all")]
pub struct ResumeArgs {
    #[allow(missing_docs)]
    #[command(flatten)]
    pub ports: Ports,
}

/// Runs `penstockd pause`.
///
/// # Errors
/// One line: what is wrong and what to do. The other ports are paused nevertheless.
pub fn pause(args: PauseArgs) -> Result<()> {
    let now = monotonic_ns();
    let (until, how_long) = match args.time {
        Some(time) => (now.saturating_add(time.as_nanos()), format!("for {time}")),
        None => (u64::MAX, "until penstockd resume".to_owned()),
    };
    each(&args.ports, now, until, |_| {
        Ok(format!("paused {how_long}"))
    })
}

/// Runs `penstockd resume`.
///
/// # Errors
/// As [`pause`].
pub fn resume(args: ResumeArgs) -> Result<()> {
    each(&args.ports, 0, 0, |port| {
        Ok(match port.is_stale()? {
            false => "no longer paused",
            true => {
                "no longer paused, but its heartbeat is stale: packets pass untouched; do: systemctl start penstockd"
            }
        }
        .to_owned())
    })
}

/// Pauses ports from one time to another, and prints what each does now.
fn each(
    ports: &Ports,
    from_ns: u64,
    until_ns: u64,
    words: impl Fn(&Port) -> Result<String>,
) -> Result<()> {
    requirements::require_capabilities()?;
    let interfaces = match ports.all {
        true => ports.pins.interfaces()?,
        false => ports.interfaces.clone(),
    };
    each_port(&ports.pins, interfaces, |interface| {
        words(&set(&ports.pins, interface, from_ns, until_ns)?)
    })
}

fn set(pins: &PinsArg, interface: &str, from_ns: u64, until_ns: u64) -> Result<Port> {
    if !pins.has(interface) {
        return Err(pins.not_attached(interface));
    }
    let _lock = pins.lock()?;
    let port = pins.open(interface)?;
    let mut config = port.config()?;
    (config.pause_ns, config.resume_ns) = (from_ns, until_ns);
    port.set_config(&config)?;
    let seconds = until_ns.saturating_sub(from_ns) as f64 / 1e9;
    match until_ns {
        0 => audit::log("resume", interface, &[]),
        u64::MAX => audit::log("pause", interface, &[]),
        _ => audit::log("pause", interface, &[("seconds", &seconds.to_string())]),
    }
    Ok(port)
}
