// SPDX-License-Identifier: Apache-2.0
//! ACKs that take other paths than their data (FairQ §III-B, ECMP).

use penstock_sim::{Inputs, Outcome, Scenario, run};
use std::path::Path;

const FILE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../scenarios/docs/ecmp.toml"
);

/// A run of the documents' scenario under a scheme.
fn documented(scheme: &str, overrides: &[(&str, &str)]) -> Outcome {
    let text = std::fs::read_to_string(FILE).unwrap();
    let given = overrides.iter();
    let overrides: Vec<_> = given
        .map(|(key, value)| ((*key).into(), (*value).into()))
        .collect();
    let scenario = Scenario::parse(&text, Path::new(FILE), &overrides).unwrap();
    run(&scenario, &Inputs::default(), scheme, 1, &|_| true).unwrap()
}

fn share_rewritten(outcome: &Outcome) -> f64 {
    let rewritten: u64 = outcome
        .ports
        .values()
        .map(|port| port.window.acks_rewritten)
        .sum();
    let acks: u64 = outcome.ports.values().map(|port| port.window.acks).sum();
    rewritten as f64 / acks as f64
}

fn queues(outcome: &Outcome) -> impl Iterator<Item = f64> {
    outcome.ports.values().map(|port| port.queue_bytes.mean)
}

fn drops(outcome: &Outcome) -> u64 {
    outcome.ports.values().map(|port| port.drops).sum()
}

/// A port that sees one direction of a flow only learns neither its scale nor that it exists.
#[test]
fn a_port_that_tracks_flows_needs_both_directions() {
    let symmetric = documented("fairq", &[("fabric.symmetric_paths", "true")]);
    assert!(share_rewritten(&symmetric) > 0.9);
    assert!(drops(&symmetric) == 0 && queues(&symmetric).all(|mean| mean < 40e3));
    let apart = documented("fairq", &[]);
    assert!(share_rewritten(&apart) < 0.1, "{}", share_rewritten(&apart));
    assert!(drops(&apart) > 100 && queues(&apart).all(|mean| mean > 128e3));
}

/// With the scale in each ACK and flows counted by SYN-ACKs, a port needs to follow none. All queues
/// stay near the target, a quarter of 256 kB; a divided share starts lower and overshoots less.
#[test]
fn scales_in_the_acks_suffice_and_divided_shares_overshoot_less() {
    let (whole, divided) = (documented("bits", &[]), documented("bits-paths", &[]));
    for outcome in [&whole, &divided] {
        assert!(share_rewritten(outcome) > 0.9);
        assert_eq!(drops(outcome), 0);
        assert!(queues(outcome).all(|mean| (45e3..80e3).contains(&mean)));
        assert!(outcome.groups["long"].jain.unwrap() > 0.95);
    }
    let longest = |outcome: &Outcome| {
        outcome
            .ports
            .values()
            .map(|port| port.queue_bytes.max)
            .max()
    };
    assert!(longest(&divided) < longest(&whole));
}
