// SPDX-License-Identifier: Apache-2.0
//! `penstockd attach`.

use anyhow::{Context, Result, anyhow, bail, ensure};
use penstock_linux::note;
use penstock_scenario::units::Time;
use penstock_scenario::{Deployment, deployment};

use crate::attach::hook::HookChoice;
use crate::attach::summary::{queue_warning, summary_line};
use crate::attach::{FLOWS, Options, STALE, attach, grant};
use crate::format::printable;
use crate::host::output;
use crate::host::signals::{self, Signals};
use crate::port::PinsArg;
use crate::port::heartbeat::{BEATS, EVERY, SHORTEST};
use crate::port::vxlan::VxlanPorts;
use crate::reference;

const EXAMPLES: &str = "\
Examples:
  penstockd attach eth1 --scheme fairq
  penstockd attach eth1 --scheme hscc --buffer \"128 kB\" --set window.alpha2=0.3
  penstockd attach eth1 --scheme fairq --exclude tcp:179,10.0.0.0/8 --canary 10%
  penstockd attach eth1 --scheme observe --stay
  penstockd attach tap0 --scheme shim --set window.wscale_source=reserved-bits

An attached port needs a running agent: the daemon (penstockd run), or --stay. Without one,
packets pass untouched after --stale. Attaching again replaces the scheme without a gap.";

/// Options of `penstockd attach`.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES, after_long_help = long_help())]
pub struct Args {
    /// Interface of the port: data leaves by it, ACKs enter by it; behind a port, as Grant's sides receiver
    /// and limit, the reverse.
    pub interface: String,
    #[allow(missing_docs)]
    #[arg(long, value_name = "NAME", help = scheme_help())]
    pub scheme: String,
    /// Size of the port's queue, as in "128 kB" or "83 packets" [default: as its qdisc reports,
    /// or 128 kB behind a port].
    #[arg(long, value_name = "SIZE")]
    pub buffer: Option<String>,
    /// HCF: rate to which the port is limited, as in "200 Mb/s" [default: not limited]; Grant: rate of the
    /// port, or the limit [default: the link's].
    #[arg(long, value_name = "RATE")]
    pub rate: Option<String>,
    /// Grant: where data is seen: port, receiver or limit.
    #[arg(long, value_name = "SIDE")]
    pub side: Option<String>,
    /// Grant: what credit and queue together may take, as a share of the buffer.
    #[arg(long, value_name = "SHARE")]
    pub target: Option<String>,
    /// Set a parameter by its name in a scenario, such as window.alpha or queue.bins; or mark, drops,
    /// control_priority.
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = pair)]
    pub sets: Vec<(String, String)>,
    /// Leave flows alone that match a rule: a prefix of either end, tcp:PORT, dscp:N, mark:N/MASK.
    #[arg(long, value_name = "RULE,...", value_delimiter = ',')]
    pub exclude: Vec<String>,
    /// Leave flows alone that match none of these rules.
    #[arg(long, value_name = "RULE,...", value_delimiter = ',')]
    pub include: Vec<String>,
    /// Control this share of flows, chosen at random, and compare both sides in status.
    #[arg(long, value_name = "SHARE")]
    pub canary: Option<String>,
    /// The most flows of the port that are followed; further ones pass untouched, counted.
    #[arg(long, value_name = "N", default_value_t = FLOWS, value_parser = clap::value_parser!(u32).range(64..=1 << 24))]
    pub flows: u32,
    /// Age of the heartbeat from which packets pass untouched, 40 ms or more.
    #[arg(long, value_name = "TIME", default_value_t = STALE, value_parser = Time::read)]
    pub stale: Time,
    /// Hook to attach the programs to.
    #[arg(long, value_enum, default_value_t)]
    pub hook: HookChoice,
    /// HCF: replace a qdisc that a user configured, or the queues of a card with many (mq).
    #[arg(long)]
    pub replace_qdisc: bool,
    /// UDP ports on which VXLAN is looked for, at most four, or "none".
    #[arg(long, value_name = "PORTS", default_value_t)]
    pub vxlan_ports: VxlanPorts,
    /// Know connections in tunnels without the identifier (VNI): for Cilium, which sends the sender's
    /// identity there.
    #[arg(long)]
    pub ignore_vni: bool,
    /// Stay in the foreground as the port's agent; detach at Ctrl-C, SIGTERM or, unless started by nohup,
    /// SIGHUP.
    #[arg(long)]
    pub stay: bool,
    #[allow(missing_docs)]
    #[command(flatten)]
    pub pins: PinsArg,
}

fn long_help() -> String {
    format!("{EXAMPLES}\n\n{}", reference::help())
}

fn scheme_help() -> String {
    format!("Scheme: {}", reference::schemes())
}

fn pair(text: &str) -> Result<(String, String), String> {
    text.split_once('=')
        .map(|(key, value)| (key.trim().to_owned(), value.trim().to_owned()))
        .ok_or_else(|| "expected KEY=VALUE, as in window.alpha=0.2".to_owned())
}

impl Args {
    /// The port's deployment as pairs of key and value.
    ///
    /// # Errors
    /// A key is given both by an option and by `--set`.
    fn pairs(&self) -> Result<Vec<(String, String)>> {
        let rules = |rules: &Vec<String>| (!rules.is_empty()).then(|| format!("{rules:?}"));
        let options = [
            ("scheme", Some(self.scheme.clone())),
            ("buffer", self.buffer.clone()),
            ("rate", self.rate.clone()),
            ("exclude", rules(&self.exclude)),
            ("include", rules(&self.include)),
            ("canary", self.canary.clone()),
            ("window.side", self.side.clone()),
            ("window.target", self.target.clone()),
        ];
        let given = options
            .into_iter()
            .filter_map(|(key, value)| Some((key.to_owned(), value?)));
        let mut pairs: Vec<(String, String)> = given.collect();
        let has_option = |(key, _): &&(String, String)| pairs.iter().any(|(own, _)| own == key);
        if let Some((key, value)) = self.sets.iter().find(has_option) {
            let option = key.trim_start_matches("window.");
            bail!("--set {key}={value}: --{option} is given, too; give one of them");
        }
        pairs.extend(self.sets.iter().cloned());
        Ok(pairs)
    }
}

/// Runs the command.
///
/// # Errors
/// One line: what is wrong and what to do.
pub fn run(args: Args) -> Result<()> {
    let port =
        deployment(&args.pairs()?).map_err(|error| anyhow!(name_options(&error.to_string())))?;
    grant::require_one_rate(&port).context("--rate")?;
    let options = Options {
        flows: args.flows,
        stale: args.stale,
        hook: args.hook,
        replace_qdisc: args.replace_qdisc,
        vxlan_ports: args.vxlan_ports,
        ignores_vni: args.ignore_vni,
        ..Options::default()
    };
    hold(
        &args.pins,
        &args.interface,
        &port,
        &options,
        args.hook,
        args.stay,
    )
}

/// Attaches a deployment, and prints what was attached; if it is to `stay`, holds it until a signal.
pub(super) fn hold(
    pins: &PinsArg,
    interface: &str,
    port: &Deployment,
    options: &Options,
    hook: HookChoice,
    stay: bool,
) -> Result<()> {
    let least = Time::from_nanos((SHORTEST * BEATS).as_nanos() as u64);
    ensure!(
        options.stale >= least,
        "--stale is {}; allowed: {least} or more",
        options.stale
    );
    if stay {
        signals::outlive_readers();
    }
    let signals = stay.then(Signals::hold);
    let attached = attach(pins, interface, port, options)?;
    let summary = summary_line(interface, port, &attached, hook);
    let printed = output::print(&format!("{summary}\n"));
    if !stay {
        printed?;
    }
    if let Some(warning) = queue_warning(interface, port) {
        note!("{}", printable(&warning));
    }
    let Some(signals) = signals else {
        if pins.daemon().is_none() {
            let stale = options.stale;
            note!(
                "{interface}: no daemon runs, so packets pass untouched from {stale} on; start it with \
                 penstockd run, or give --stay"
            );
        }
        return Ok(());
    };
    let keeper = attached.keep_alive()?;
    let mut kept = interface.to_owned();
    while let Some(name) = attached.interface() {
        // Another command has given its pins the name that its interface has now.
        if name != kept && keeper.keep(pins, &name).is_ok() {
            keeper.release(&kept);
            kept = name;
        }
        // A terminal that is closed sends SIGHUP: otherwise this process would stay without one.
        if signals.is_end(signals.wait(EVERY)) {
            attached.detach()?;
            drop(keeper);
            return Ok(());
        }
    }
    bail!("{interface}: another process detached it")
}

/// Replaces `--set buffer=` in an error by `--buffer`, as it was given.
pub(super) fn name_options(error: &str) -> String {
    let mut text = error.to_owned();
    for option in ["scheme", "buffer", "rate", "exclude", "include", "canary"] {
        text = text.replace(&format!("--set {option}="), &format!("--{option} "));
    }
    for option in ["side", "target"] {
        text = text.replace(&format!("--set window.{option}="), &format!("--{option} "));
    }
    text
}
