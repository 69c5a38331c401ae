// SPDX-License-Identifier: Apache-2.0
//! Whole runs of small scenarios.

#![allow(clippy::unwrap_used)]

mod bbr;
mod controllers;
mod ecmp;
mod fuzz;
mod golden;
mod grant;
mod jobs;
mod losses;
mod measures;
mod pfc;
mod reuse;
mod round_trips;
mod shards;
mod shards_fuzz;
mod shims;
mod spraying;
mod switches;
mod traced;
mod traffic;
mod traffic_sink;
mod waits;

use penstock_sim::{Inputs, Outcome, Scenario, run};
use std::path::Path;

fn scenario(text: &str) -> Scenario {
    Scenario::parse(text, Path::new("test.toml"), &[]).unwrap()
}

/// Runs a scenario that names no files.
fn outcome(text: &str, scheme: &str) -> Outcome {
    let scenario = scenario(text);
    run(&scenario, &Inputs::default(), scheme, 1, &|_| true).unwrap()
}

/// Four senders and receivers at 1 Gb/s; `buffer`: of the bottleneck.
fn wide(duration: &str, buffer: &str, traffic: &str) -> String {
    format!(
        r#"
        title = "wide"
        duration = "{duration}"
        schemes = ["drop-tail"]
        [fabric]
        kind = "dumbbell"
        senders = 4
        receivers = 4
        access = {{ rate = "1 Gb/s", delay = "10 us" }}
        bottleneck = {{ rate = "1 Gb/s", delay = "10 us", buffer = "{buffer}" }}
        [tcp]
        profile = "newreno-ns2"
        {traffic}
        "#
    )
}

/// Asserts that two texts are the same, and shows where they differ.
fn assert_same(one: &str, other: &str, what: &str) {
    let at = one
        .bytes()
        .zip(other.bytes())
        .take_while(|(a, b)| a == b)
        .count();
    let around = |text: &str| text[at.saturating_sub(150)..text.len().min(at + 50)].to_owned();
    assert!(
        one == other,
        "{what}: byte {at}:\n{}\n{}",
        around(one),
        around(other)
    );
}

/// All that two equal runs have in common, as one text.
fn results(outcome: &Outcome) -> String {
    let Outcome {
        groups,
        ports,
        drops,
        delayed_acks: _,
        controller,
        flows,
        jobs,
        queues,
        windows,
        packets,
        events,
        performance: _,
    } = outcome;
    let all = serde_json::to_string(&(groups, ports, drops, controller, flows, queues, windows));
    let jobs: Vec<String> = jobs
        .iter()
        .map(|job| serde_json::to_string(job).unwrap())
        .collect();
    let recorded: Vec<String> = packets
        .iter()
        .map(|packet| serde_json::to_string(packet).unwrap())
        .chain(
            events
                .iter()
                .map(|event| serde_json::to_string(event).unwrap()),
        )
        .collect();
    // Younger than the golden runs: part of them where a server thinks.
    let all = all.unwrap().replace(",\"server_wait_s\":0.0", "");
    let all = all.replace(",\"server_think\":0.0", "");
    all + &jobs.concat() + &recorded.concat()
}
