// SPDX-License-Identifier: Apache-2.0
//! The command line.

use clap::{Parser, ValueEnum};
use std::path::PathBuf;

const EXAMPLES: &str = r#"Examples:
  penstock-traffic incast.toml --scheme drop-tail --hosts hosts.json --out run
  penstock-traffic incast.toml --scheme fairq --seed 2 --hosts hosts.json --out run2 --progress json

HOSTS.json lists the namespaces of the fabric's hosts and ports; ports are optional:
  {
    "hosts": {
      "sender1":   { "netns": "/run/netns/a", "address": "10.0.0.1" },
      "receiver1": { "netns": "/run/netns/b", "address": "10.0.0.2" }
    },
    "ports": { "left->right": { "netns": "/run/netns/switch", "interface": "uplink" } }
  }

Written are summary.json, flows.csv and queues.csv with the simulator's columns, each whole
or not at all. A flow's `drops` are 0: the kernel does not report whose packet a queue dropped.
Silences are those between bytes in order; the longest queue is that of the samples.

Exit status: 0 done, 1 it could not be done, 2 wrong usage, 130 interrupted."#;

/// Plays a scenario's traffic on real TCP and UDP sockets and records each flow.
///
/// The hosts are network namespaces of this machine. The same scenario and seed give the same pairs,
/// starts and sizes as in the simulator.
#[derive(Debug, Parser)]
#[command(name = "penstock-traffic", version, after_long_help = EXAMPLES)]
pub struct Arguments {
    /// The scenario, TOML.
    pub scenario: PathBuf,
    /// The scheme whose TCP parameters the hosts use.
    #[arg(long, value_name = "NAME")]
    pub scheme: String,
    /// Seed of all that is drawn.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Where hosts and ports are, JSON.
    #[arg(long, value_name = "FILE")]
    pub hosts: PathBuf,
    /// Folder for the results, made if it is not there.
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// Sample the ports only: other programs generate the traffic.
    #[arg(long)]
    pub no_traffic: bool,
    /// Format of progress on stderr.
    #[arg(long, value_enum, value_name = "HOW", default_value = "auto")]
    pub progress: Progress,
}

/// Format of progress on stderr.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Progress {
    /// A line that is written over, if stderr is a terminal.
    Auto,
    /// One JSON object a line: fraction, flows, finished.
    Json,
    /// Not at all.
    None,
}
