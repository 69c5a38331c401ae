// SPDX-License-Identifier: Apache-2.0
//! `penstockd watch`: ports live. On a terminal a full screen ([`screen`]), elsewhere a line each
//! second; [`history`], [`view`] and [`frame`] are pure.

pub mod frame;
pub mod history;
pub mod ports;
pub mod screen;
pub mod view;

use std::io::{ErrorKind, IsTerminal, Write};
use std::time::Duration;

use anyhow::Result;
use serde::Serialize;

use self::ports::Ports;
use self::view::View;
use crate::host::clock::monotonic_ns;
use crate::host::signals::{Signal, Signals};
use crate::port::PinsArg;

/// Interval between readings.
const TICK: Duration = Duration::from_millis(100);

/// Readings between two lines.
const READS: usize = 10;

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
    let mut ports = Ports::new(args.pins.clone(), args.interfaces.clone())?;
    let is_screen = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    if is_screen && !args.once && !args.json {
        return screen::show(&mut ports);
    }
    let signals = Signals::hold();
    loop {
        for _ in 0..READS {
            if signals.wait(TICK) == Some(Signal::End) {
                return Ok(());
            }
            ports.read()?;
        }
        if !print(&args, &ports.views())? || args.once {
            return Ok(());
        }
    }
}

#[derive(Serialize)]
struct Second<'a> {
    time_s: f64,
    ports: &'a [View],
}

/// Prints; false if the reader of our output is gone.
fn print(args: &Args, views: &[View]) -> Result<bool> {
    let text = if args.json {
        let second = Second {
            time_s: monotonic_ns() as f64 / 1e9,
            ports: views,
        };
        format!("{}\n", serde_json::to_string(&second)?)
    } else if views.is_empty() {
        "no port is attached; do: penstockd attach IFACE --scheme observe\n".to_owned()
    } else if args.once {
        frame::plain(views)
    } else {
        views
            .iter()
            .map(|view| format!("{}\n", view.line()))
            .collect()
    };
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        done => done.map(|()| true).map_err(Into::into),
    }
}
