// SPDX-License-Identifier: Apache-2.0
//! Runs every script of `tests/tcp/`: segments in at given times, segments out as expected.
//!
//! A script is one conversation of one end point, in the manner of packetdrill. Lines:
//!
//! ```text
//! # comment; the first names what is checked
//! profile newreno_ns2              where to start from, or linux
//! set KEY = VALUE                  a field of Config
//! peer_isn N                       the peer's initial sequence number (0)
//! TIME call ACTION [N]             listen, connect, write, close, abort
//! TIME < SEGMENT                   a segment arrives
//! TIME > SEGMENT                   a segment must have left at exactly this time
//! TIME ? NAME = VALUE ...          cwnd, ssthresh, state, ... and events since the last such line
//! ```
//!
//! TIME is `12ms` from the start or `+12ms` from the line before. SEGMENT is packetdrill's
//! `FLAGS SEQ:END(LEN) [ack N] [win N] [sack L-R ...] [ts VAL ecr ECR] [mss N] [ws N] [sackok]
//! [ect] [ce] [size N]`; numbers are relative to the initial ones, flags are `SFRP.EW`. What an
//! expected segment leaves out is not checked, but `sack none` and `noect` are. Every segment that
//! leaves must be expected.

mod run;
mod script;

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let filters: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| !a.starts_with('-'))
        .collect();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tcp");
    let mut names: Vec<String> = std::fs::read_dir(&folder)
        .expect("the folder of scripts")
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter_map(|name| name.strip_suffix(".pkt").map(str::to_owned))
        .filter(|name| filters.is_empty() || filters.iter().any(|f| name.contains(f.as_str())))
        .collect();
    names.sort();
    if std::env::args().any(|a| a == "--list") {
        names.iter().for_each(|name| println!("{name}: test"));
        return ExitCode::SUCCESS;
    }
    println!("\nrunning {} tests", names.len());
    let mut failures = Vec::new();
    for name in &names {
        let text = std::fs::read_to_string(folder.join(format!("{name}.pkt"))).expect("a script");
        let outcome = script::parse(&text).and_then(|script| run::run(&script));
        println!(
            "test {name} ... {}",
            if outcome.is_ok() { "ok" } else { "FAILED" }
        );
        if let Err(report) = outcome {
            failures.push(format!("---- {name}.pkt ----\n{report}"));
        }
    }
    failures.iter().for_each(|report| println!("\n{report}"));
    println!(
        "\n{} passed; {} failed\n",
        names.len() - failures.len(),
        failures.len()
    );
    if failures.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
