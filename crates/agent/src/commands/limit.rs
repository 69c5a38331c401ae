// SPDX-License-Identifier: Apache-2.0
//! `penstockd limit`: Grant at the side `limit`, under a plain name.

use anyhow::{Result, anyhow};
use penstock_scenario::deployment;
use penstock_scenario::units::{Rate, Time};

use super::attach::{hold, name_options};
use crate::attach::hook::HookChoice;
use crate::attach::{Options, STALE};
use crate::port::PinsArg;

/// What the rate carries in this time is the virtual queue's buffer, of which `target` is a share.
const BUFFER_MS: u64 = 5;

/// The least buffer, bytes.
const LEAST_BUFFER: u64 = 131_072;

/// Options of `penstockd limit`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  penstockd limit eth0 --ingress 1gbit --stay        until Ctrl-C
  penstockd limit eth0 --ingress \"200 Mb/s\"          until: penstockd detach eth0; a daemon must run

TCP that comes in is granted this rate by its receive windows; nothing is dropped or delayed here.
Other traffic passes, and TCP is granted what it leaves. A command alone shows what it does:
penstockd status eth0.")]
pub struct Args {
    /// Interface by which the data comes in.
    pub interface: String,
    /// Most that may come in, as in 1gbit or "1 Gb/s".
    #[arg(long, value_name = "RATE", value_parser = rate)]
    pub ingress: Rate,
    /// Round trip of the longest paths that are to reach the rate.
    #[arg(long, value_name = "TIME", default_value = "1 ms", value_parser = Time::read)]
    pub rtt: Time,
    /// Age of the heartbeat from which packets pass untouched, 40 ms or more.
    #[arg(long, value_name = "TIME", default_value_t = STALE, value_parser = Time::read)]
    pub stale: Time,
    /// Stay in the foreground as the port's agent; detach at Ctrl-C, SIGTERM or, unless started by nohup,
    /// SIGHUP.
    #[arg(long)]
    pub stay: bool,
    #[allow(missing_docs)]
    #[command(flatten)]
    pub pins: PinsArg,
}

/// A rate in the words of a scenario, or in those of tc.
fn rate(text: &str) -> Result<Rate, String> {
    let split = text.find(|c: char| c.is_ascii_alphabetic());
    let (number, unit) = text.split_at(split.unwrap_or(text.len()));
    let unit = match unit {
        "bit" => "b/s",
        "kbit" => "kb/s",
        "mbit" => "Mb/s",
        "gbit" => "Gb/s",
        other => other,
    };
    Rate::read(format!("{} {unit}", number.trim()).trim())
}

/// Replaces `--set rate=` in an error by `--ingress`, and so on.
fn name_own_options(error: &str) -> String {
    let text = error.replace("--set rate=", "--ingress ");
    name_options(&text.replace("--set window.rtt=", "--rtt "))
}

impl Args {
    /// The port's deployment as pairs of key and value.
    fn pairs(&self) -> Vec<(String, String)> {
        let bytes = (self.ingress.0 / 8 / 1000).saturating_mul(BUFFER_MS);
        let pairs = [
            ("scheme", "grant".to_owned()),
            ("window.side", "limit".to_owned()),
            ("window.rtt", self.rtt.to_string()),
            ("rate", format!("{} b/s", self.ingress.0)),
            (
                "buffer",
                format!("{} B", bytes.clamp(LEAST_BUFFER, 1 << 30)),
            ),
        ];
        pairs.map(|(key, value)| (key.to_owned(), value)).to_vec()
    }
}

/// Runs the command.
///
/// # Errors
/// One line: what is wrong and what to do.
pub fn run(args: Args) -> Result<()> {
    let port =
        deployment(&args.pairs()).map_err(|error| anyhow!(name_own_options(&error.to_string())))?;
    let options = Options {
        stale: args.stale,
        ..Options::default()
    };
    let hook = HookChoice::default();
    hold(
        &args.pins,
        &args.interface,
        &port,
        &options,
        hook,
        args.stay,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_has_the_units_of_scenarios_or_of_tc() {
        for text in [
            "1gbit",
            "1 Gb/s",
            "1000mbit",
            "1000 mbit",
            "1000000kbit",
            "1Gb/s",
        ] {
            assert_eq!(rate(text), Ok(Rate(1_000_000_000)), "{text}");
        }
        for text in ["", "fast", "1", "1gbyte"] {
            assert!(rate(text).is_err(), "{text}");
        }
    }
}
