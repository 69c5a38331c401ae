// SPDX-License-Identifier: Apache-2.0
//! `penstockd watch`: ports live. On a terminal a full screen ([`screen`]), elsewhere a line each
//! second; [`history`], [`view`] and [`frame`] are pure.

pub mod frame;
pub mod history;
pub mod keys;
pub mod ports;
pub mod screen;
pub mod view;

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use anyhow::Result;
use serde::Serialize;

use self::ports::Ports;
use self::view::View;
use crate::host::clock::monotonic_ns;
use crate::host::signals::Signals;
use crate::host::{output, requirements};
use crate::port::PinsArg;
use crate::status::Unreadable;

/// Interval between readings.
const TICK: Duration = Duration::from_millis(100);

/// Interval between two lines.
const LINE: Duration = Duration::from_secs(1);

/// Options of `penstockd watch`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  penstockd watch                  all ports; q quits, p pauses, up and down select
  penstockd watch eth1 --once      one reading of a second, as text
  penstockd watch --json           an object each second")]
pub struct Args {
    /// Interfaces of the ports to show [default: all attached ports].
    pub interfaces: Vec<String>,
    /// Read for a second, print, and exit.
    #[arg(long)]
    pub once: bool,
    /// Print a JSON object each second: a line with `time_s` (CLOCK_MONOTONIC) and `ports`.
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
    let mut ports = Ports::new(args.pins.clone(), args.interfaces.clone())?;
    let is_screen = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    if is_screen && !args.once && !args.json {
        return screen::show(&mut ports);
    }
    let signals = Signals::hold();
    let mut next = Instant::now();
    loop {
        // As many ports as take longer to read are shown less often.
        next = (next + LINE).max(Instant::now() + TICK);
        while Instant::now() < next {
            if signals.is_end(signals.wait(TICK)) {
                return Ok(());
            }
            ports.read()?;
        }
        print(&args, &ports)?;
        if args.once {
            return Ok(());
        }
    }
}

#[derive(Serialize)]
struct Second<'a> {
    time_s: f64,
    ports: &'a [View],
    #[serde(skip_serializing_if = "<[Unreadable]>::is_empty")]
    unreadable: &'a [Unreadable],
}

fn print(args: &Args, ports: &Ports) -> Result<()> {
    let (views, unreadable) = (ports.views(), ports.unreadable());
    if args.json {
        let second = Second {
            time_s: monotonic_ns() as f64 / 1e9,
            ports: &views,
            unreadable,
        };
        return output::write(&format!("{}\n", serde_json::to_string(&second)?));
    }
    let mut text = match args.once {
        true => frame::plain(&views),
        false => views.iter().map(|view| view.line() + "\n").collect(),
    };
    text.extend(unreadable.iter().map(|port| port.line() + "\n"));
    if text.is_empty() {
        text = "no port is attached; do: penstockd attach IFACE --scheme observe\n".to_owned();
    }
    output::print(&text)
}
