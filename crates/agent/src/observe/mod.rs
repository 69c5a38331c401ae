// SPDX-License-Identifier: Apache-2.0
//! `penstockd observe`: records a port for some time, reports on it, and writes the flow trace that
//! `penstock run` replays.
//!
//! [`look`] collects the records of [`crate::port::rings`]. All that follows is pure: [`report`] with
//! [`quantiles`], [`bursts`], [`fan_in`] and [`credit`], then the [`verdict`] on it, [`text`], and the [`trace`].

pub mod bursts;
pub mod credit;
pub mod fan_in;
pub mod look;
pub mod open;
pub mod quantiles;
pub mod report;
pub mod text;
pub mod trace;
pub mod verdict;

use std::io::{IsTerminal, Write, stderr};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, bail, ensure};
use penstock_linux::{ethtool, note, qdisc};
use penstock_scenario::Buffer;
use penstock_scenario::units::{Rate, Time};

use self::report::{Look, Report};
use self::trace::{Setting, Trace};
use self::verdict::Assessment;
use crate::attach::hook::Hooks;
use crate::attach::{self, Attached, grant};
use crate::format::{bytes, count, percent, shell_word, time};
use crate::host::signals::{self, Signals};
use crate::host::{interface, output, queue_visibility};
use crate::port::PinsArg;
use crate::port::config::OBSERVE;
use crate::status::recreated;

/// Interval between reads of records.
const TICK: Duration = Duration::from_millis(100);

/// Options of `penstockd observe`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  penstockd observe eth1                        10 seconds; then bursts, fan-in, drops, a verdict
  penstockd observe eth1 --for 1min --json
  penstockd observe eth1 --out seen             seen.csv and seen.toml; then: penstock run seen.toml

Nothing is changed. If no scheme is attached, programs that only observe are attached for this time;
if one is, its effect is reported. Ctrl-C ends early, with a report of what was recorded.")]
pub struct Args {
    /// Interface of the port: data leaves by it, ACKs enter by it.
    pub interface: String,
    /// How long to record, as in "10 s" or "5 min".
    #[arg(long = "for", value_name = "TIME", default_value = "10s", value_parser = Time::read)]
    pub length: Time,
    /// Write the flow trace to FILE.csv, and to FILE.toml the scenario that replays it.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Print the report as JSON.
    #[arg(long)]
    pub json: bool,
    /// Size of the port's queue, as in "128 kB" [default: as attached, or as its qdisc reports].
    #[arg(long, value_name = "SIZE", value_parser = Buffer::read)]
    pub buffer: Option<Buffer>,
    /// Rate of the port, as in "200 Mb/s" [default: as its qdisc or its link reports].
    #[arg(long, value_name = "RATE", value_parser = Rate::read)]
    pub rate: Option<Rate>,
    /// Round-trip time without queues, for the scenario.
    #[arg(long, value_name = "TIME", default_value = "100us", value_parser = Time::read)]
    pub rtt: Time,
    #[allow(missing_docs)]
    #[command(flatten)]
    pub pins: PinsArg,
}

/// Runs the command.
///
/// # Errors
/// One line: what is wrong and what to do.
pub fn run(args: Args) -> Result<()> {
    ensure!(args.length.0 > 0, "--for must be above 0");
    let index = interface::index(&args.interface)?;
    let stem = args.out.as_deref().map(trace::writable_stem).transpose()?;
    let link_bps = ethtool::speed_bps(&args.interface).ok().flatten();
    let shaped_bps = qdisc::root(index).ok().and_then(|qdisc| qdisc.rate_bps);
    let rate_bps = args.rate.map(|rate| rate.0).or(shaped_bps).or(link_bps);
    ensure!(
        stem.is_none() || rate_bps.is_some(),
        "neither the qdisc nor the link reports the port's rate; give it: --rate \"10 Gb/s\""
    );
    let unseen = queue_visibility::missing(&args.interface, index);
    if let Some(missing) = &unseen {
        note!("{}: {missing}", args.interface);
    }
    let signals = Signals::hold();
    // What is attached must be detached, whether or not this is read.
    signals::outlive_readers();
    let attached = attach::observe(&args.pins, &args.interface, args.buffer)?;
    let look = look_at(&args, attached.as_ref(), rate_bps, &signals);
    // Detach before anything else can fail.
    attached.map_or(Ok(()), Attached::detach)?;
    signals::end_with_readers();
    let look = look?;
    let assessment = Assessment::of(Report {
        queue_unseen: unseen,
        ..Report::of(&look)
    });
    // First what took the time: the reader of the report may have gone away.
    let written = stem.zip(rate_bps).map(|(stem, rate_bps)| {
        let setting = Setting {
            interface: args.interface.clone(),
            seconds: assessment.report.seconds,
            line: look.line,
            access_bps: link_bps.unwrap_or(0).max(rate_bps),
            rtt_ns: args.rtt.0 / 1000,
        };
        Trace::of(&look.transfers, look.began_ns).write(&stem, &setting)
    });
    let printed = match args.json {
        true => output::write_json(&assessment),
        false => output::print(&text::render(&assessment)),
    };
    if let Some(toml) = written.transpose()? {
        note!(
            "to see what each scheme would do to this traffic: penstock run {}",
            shell_word(&toml)
        );
    }
    printed
}

fn look_at(
    args: &Args,
    attached: Option<&Attached>,
    rate_bps: Option<u64>,
    signals: &Signals,
) -> Result<Look> {
    let (pins, interface) = (&args.pins, args.interface.as_str());
    require_programs(pins, interface)?;
    let scheme = pins.scheme(interface);
    let scheme = scheme.unwrap_or_else(|| OBSERVE.to_owned());
    let inode = pins.inode(interface);
    let length = Duration::from_nanos(args.length.0 / 1000);
    let mut progress = Progress::new(length);
    let opened;
    let port = match attached {
        Some(attached) => attached.port(),
        None => {
            opened = pins.open(interface)?;
            let credit = grant::status(&opened.folder)?;
            ensure!(
                !credit.is_some_and(|credit| credit.is_behind_port()),
                "{interface}: Grant acts behind the port there, and sees no queue; observe the port itself, or detach Grant first"
            );
            &opened
        }
    };
    let _keeper = attached.map(Attached::keep_alive).transpose()?;
    let recording = look::Recording {
        scheme,
        rate_bps,
        buffer_bytes: args.buffer.map(Buffer::as_bytes),
        length,
    };
    let mut is_pinned = true;
    let look = look::look(pins, port, recording, |look| {
        progress.show(look);
        is_pinned = pins.inode(interface) == inode;
        is_pinned && !signals.is_end(signals.wait(TICK))
    });
    let is_detached = || pins.inode(interface) != inode;
    if !is_pinned || (look.is_err() && is_detached()) {
        bail!(
            "{interface}: another process detached it, or moved it after its interface was renamed"
        );
    }
    look
}

/// Requires that the programs of a port are on its interface, and not on one that is gone.
fn require_programs(pins: &PinsArg, interface: &str) -> Result<()> {
    let hooks = Hooks::of(pins, interface);
    ensure!(hooks.ifindex != 0, "{interface}: {}", recreated(interface));
    ensure!(
        hooks.are_ours(),
        "{interface}: our programs are not on both sides of it; do: penstockd attach {interface} again"
    );
    Ok(())
}

/// A line on the terminal that shows the progress.
struct Progress {
    length: Duration,
    is_shown: bool,
    seen: usize,
}

impl Progress {
    fn new(length: Duration) -> Progress {
        Progress {
            length,
            is_shown: stderr().is_terminal(),
            seen: 0,
        }
    }

    fn show(&mut self, look: &Look) {
        if !self.is_shown {
            return;
        }
        let fresh = &look.samples[self.seen.min(look.samples.len())..];
        self.seen = look.samples.len();
        let queue = fresh
            .iter()
            .map(|sample| sample.queue_max)
            .max()
            .unwrap_or(0);
        // Of the newest records, which are not strictly in order (`add_up` sorts them later).
        let drops = match (look.samples.first(), look.samples.last()) {
            (Some(first), Some(last)) => last.drops.wrapping_sub(first.drops) as i32,
            _ => 0,
        };
        // The terminal may have been closed.
        let _ = write!(
            stderr(),
            "\r{} of {}: queue {} ({}), {} flows, {} drops \x1b[K",
            time(look.ended_ns - look.began_ns),
            time(self.length.as_nanos() as u64),
            bytes(queue.into()),
            percent(queue.into(), look.line.buffer_bytes.into()),
            count(fresh.last().map_or(0, |sample| sample.flows).into()),
            count(drops.max(0) as u64),
        );
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.is_shown {
            let _ = write!(stderr(), "\r\x1b[K");
        }
    }
}
