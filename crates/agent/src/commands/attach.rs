// SPDX-License-Identifier: Apache-2.0
//! `penstockd attach`.

use anyhow::{Result, anyhow, bail};
use penstock_scenario::deployment;
use penstock_scenario::units::Time;

use crate::attach::{FLOWS, Hook, Options, STALE, attach, told, warned};
use crate::host::signals::{Signal, Signals};
use crate::port::PinsArg;
use crate::port::heartbeat::EVERY;

/// Options of `penstockd attach`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  penstockd attach eth1 --scheme fairq
  penstockd attach eth1 --scheme hscc --buffer \"128 kB\" --set window.alpha2=0.3
  penstockd attach eth1 --scheme observe --stay
  penstockd attach tap0 --scheme shim --set scale=reserved-bits

An attached port needs an agent that lives: the daemon (penstockd run), or --stay. Without one,
packets pass untouched after --stale. To attach again replaces the scheme without a gap.")]
pub struct Args {
    /// The port: data leaves by it, ACKs enter by it.
    pub interface: String,
    /// observe, fairq, fairq-paper, hscc, hscc-paper, hcf, hcf-fairq, or shim (below a host).
    #[arg(long, value_name = "NAME")]
    pub scheme: String,
    /// What the port can hold, as in "128 kB" or "83 packets" [default: what its qdisc says].
    #[arg(long, value_name = "SIZE")]
    pub buffer: Option<String>,
    /// HCF: the rate at which the port sends, as in "200 Mb/s" [default: its own].
    #[arg(long, value_name = "RATE")]
    pub rate: Option<String>,
    /// Another parameter by its name in a scenario: window.*, queue.*, mark, never_shrink,
    /// first_acks, idle.
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = pair)]
    pub sets: Vec<(String, String)>,
    /// Entries of the tables of flows; those of an attached port stay.
    #[arg(long, value_name = "N", default_value_t = FLOWS, value_parser = clap::value_parser!(u32).range(64..=1 << 24))]
    pub flows: u32,
    /// Without an agent for so long, packets pass untouched.
    #[arg(long, value_name = "TIME", default_value_t = STALE, value_parser = Time::read)]
    pub stale: Time,
    /// Where programs are put.
    #[arg(long, value_enum, default_value_t)]
    pub hook: Hook,
    /// Stay in the foreground as the port's agent; detach at Ctrl-C or SIGTERM.
    #[arg(long)]
    pub stay: bool,
    #[allow(missing_docs)]
    #[command(flatten)]
    pub pins: PinsArg,
}

fn pair(text: &str) -> Result<(String, String), String> {
    text.split_once('=')
        .map(|(key, value)| (key.trim().to_owned(), value.trim().to_owned()))
        .ok_or_else(|| "is no KEY=VALUE, as in window.alpha=0.2".to_owned())
}

impl Args {
    /// All that is said of the port, as pairs.
    fn pairs(&self) -> Vec<(String, String)> {
        let own = [
            ("scheme", Some(&self.scheme)),
            ("buffer", self.buffer.as_ref()),
            ("rate", self.rate.as_ref()),
        ];
        let own = own
            .into_iter()
            .filter_map(|(key, value)| Some((key.to_owned(), value?.clone())));
        own.chain(self.sets.iter().cloned()).collect()
    }
}

/// Runs the command.
///
/// # Errors
/// One line: what is wrong and what to do.
pub fn run(args: Args) -> Result<()> {
    let port = deployment(&args.pairs()).map_err(|error| anyhow!(plainly(&error.to_string())))?;
    let options = Options {
        flows: args.flows,
        stale: args.stale,
        hook: args.hook,
    };
    let signals = args.stay.then(Signals::hold);
    let attached = attach(&args.pins, &args.interface, &port, &options)?;
    println!("{}", told(&args.interface, &port, &attached, args.hook));
    if let Some(warning) = warned(&args.interface, &port) {
        eprintln!("{warning}");
    }
    let Some(signals) = signals else {
        return Ok(());
    };
    loop {
        if !attached.is_pinned() {
            bail!("{}: was detached meanwhile", args.interface);
        }
        attached.beat_and_sweep()?;
        if signals.wait(EVERY) == Some(Signal::End) {
            return attached.detach();
        }
    }
}

/// `--set buffer=` as it was given, `--buffer`.
fn plainly(refusal: &str) -> String {
    let mut plain = refusal.to_owned();
    for option in ["scheme", "buffer", "rate"] {
        plain = plain.replace(&format!("--set {option}="), &format!("--{option} "));
    }
    plain
}
