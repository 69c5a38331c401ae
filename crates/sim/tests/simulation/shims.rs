// SPDX-License-Identifier: Apache-2.0
//! The ways to learn a window's scale (FairQ §III-B) and to count flows, on real traffic.

use super::{assert_same, outcome, results};
use penstock_sim::Outcome;

const SOURCES: [&str; 6] = [
    "tracked",
    "reserved-bits",
    "window-bits",
    "unified",
    "stripped",
    "lowered",
];

/// Elephants and mice through 60 packets of buffer; windows lowered on every second ACK or so.
fn dumbbell(profile: &str, source: &str, more: &str) -> String {
    format!(
        r#"
        title = "window scales"
        duration = "400 ms"
        schemes = ["fairq", "hscc", "hcf-fairq"]
        [fabric]
        kind = "dumbbell"
        senders = 12
        receivers = 12
        access = {{ rate = "1 Gb/s", delay = "10 us" }}
        bottleneck = {{ rate = "1 Gb/s", delay = "10 us", buffer = "60 packets" }}
        [tcp]
        profile = "{profile}"
        min_rto = "20 ms"
        initial_rto = "20 ms"
        {more}
        [scheme.fairq.window]
        wscale_source = "{source}"
        [scheme.hscc.window]
        wscale_source = "{source}"
        [scheme.hcf-fairq.window]
        wscale_source = "{source}"
        [traffic.long]
        kind = "bulk"
        from = "senders[0..4]"
        to = "receivers[0..4]"
        start_spread = "1 ms"
        [traffic.mice]
        kind = "incast"
        mode = "pull"
        size = "20 kB"
        from = "senders[4..12]"
        to = "receivers[4..12]"
        start = "50 ms"
        epochs = 3
        every = "100 ms"
        "#
    )
}

/// The median, which one timeout more or less does not move.
fn fct(outcome: &Outcome) -> f64 {
    outcome.groups["mice"].fct_s.unwrap().p50
}

#[test]
fn the_bits_carry_what_a_port_would_have_tracked() {
    for profile in ["linux", "newreno-ns2"] {
        for scheme in ["fairq", "hscc", "hcf-fairq"] {
            let [tracked, reserved, window, ..] = SOURCES
                .map(|source| outcome(&dumbbell(profile, source, "window_scale = 10"), scheme));
            let rewritten = |o: &Outcome| {
                o.ports
                    .values()
                    .map(|p| p.window.acks_rewritten)
                    .sum::<u64>()
            };
            assert!(rewritten(&tracked) > 100, "{profile} {scheme}");
            let what = format!("{profile} {scheme}");
            assert_same(&results(&tracked), &results(&reserved), &what);
            // At scale 10 no window of these flows needs more than twelve bits.
            assert_same(&results(&tracked), &results(&window), &what);
        }
    }
}

#[test]
fn one_scale_for_all_does_as_well() {
    for profile in ["linux", "newreno-ns2"] {
        for scheme in ["fairq", "hscc"] {
            let tracked = outcome(&dumbbell(profile, "tracked", ""), scheme);
            for source in ["unified", "stripped", "lowered"] {
                let outcome = outcome(&dumbbell(profile, source, ""), scheme);
                let ratio = fct(&outcome) / fct(&tracked);
                let what = format!("{profile} {scheme} {source}: {ratio}");
                assert!((0.5..2.0).contains(&ratio), "{what}");
            }
        }
    }
}

/// Hosts that scale, but for the port, are as hosts that do not; their receive buffers differ a little,
/// and so do the first ACKs, which leave at once while the window grows.
#[test]
fn behind_a_port_that_strips_the_option_hosts_do_not_scale() {
    for scheme in ["fairq", "hscc"] {
        let stripped = outcome(&dumbbell("linux", "stripped", "window_scale = 7"), scheme);
        let unscaled = outcome(&dumbbell("linux", "tracked", "window_scale = 0"), scheme);
        let ratio = fct(&stripped) / fct(&unscaled);
        assert!((0.8..1.25).contains(&ratio), "{scheme}: {ratio}");
    }
}

#[test]
fn a_port_that_clears_the_bits_does_as_the_shims() {
    for scheme in ["fairq", "hscc"] {
        let text = dumbbell("linux", "reserved-bits", "");
        let line = "wscale_source = \"reserved-bits\"";
        let clearing = text.replace(line, &format!("{line}\nclears_bits = true"));
        let (shims, port) = (outcome(&text, scheme), outcome(&clearing, scheme));
        assert_same(&results(&shims), &results(&port), scheme);
    }
}

#[test]
fn everything_arrives_under_every_source() {
    for source in SOURCES {
        for profile in ["linux", "newreno-ns2"] {
            for scheme in ["fairq", "hscc", "hcf-fairq"] {
                let outcome = outcome(&dumbbell(profile, source, ""), scheme);
                let mice = &outcome.groups["mice"];
                assert_eq!(
                    (mice.flows, mice.finished),
                    (24, 24),
                    "{source} {profile} {scheme}"
                );
                let busy = outcome.ports["left->right"].utilization;
                assert!(busy > 0.4, "{source} {profile} {scheme}: {busy}");
            }
        }
    }
}

/// As printed, FairQ counts SYN-ACKs and FINs: repeated ones make flows that are not there, and the
/// window smaller than it need be.
#[test]
fn both_ways_to_count_run() {
    let text = dumbbell("linux", "tracked", "");
    let with = |counting: &str| {
        let table = format!("[scheme.fairq.window]\ncounting = \"{counting}\"");
        outcome(&text.replace("[scheme.fairq.window]", &table), "fairq")
    };
    let (exact, packets) = (with("exact"), with("packets"));
    assert!(results(&exact) != results(&packets));
    assert_eq!(packets.groups["mice"].finished, 24);
}

#[test]
fn a_controller_counts_as_well_as_the_port() {
    let text = dumbbell("linux", "tracked", "");
    let controller = "[scheme.fairq.controller]\nkind = \"flow-counts\"\nlatency = \"20 us\"";
    let table = "[scheme.fairq.window]";
    let by_controller = text.replace(table, &format!("{controller}\n{table}"));
    let (port, controller) = (outcome(&text, "fairq"), outcome(&by_controller, "fairq"));
    assert!(port.controller.is_none());
    let counters = controller.controller.unwrap();
    assert!(counters.reports_received > 2 * 24, "{counters:?}");
    assert!(counters.messages_sent > 2 * 24 && counters.messages_lost == 0);
    let ratio = fct(&controller) / fct(&port);
    assert!((0.8..1.25).contains(&ratio), "{ratio}");
    let queue = |o: &Outcome| o.ports["left->right"].queue_bytes.mean;
    let ratio = queue(&controller) / queue(&port);
    assert!((0.8..1.25).contains(&ratio), "{ratio}");
    assert_eq!(controller.groups["mice"].finished, 24);
}

/// FairQ §III-B: ports lower the windows of a few ACKs, the edges those of the others.
#[test]
fn edges_hold_the_windows_of_ports_that_sample() {
    let share = |o: &Outcome| {
        let sum =
            |of: fn(&penstock_sim::run::PortSummary) -> u64| o.ports.values().map(of).sum::<u64>();
        sum(|port| port.window.acks_rewritten) as f64 / sum(|port| port.window.acks) as f64
    };
    for profile in ["linux", "newreno-ns2"] {
        let sampled = |more| outcome(&dumbbell(profile, "tracked", more), "fairq");
        let all = sampled("");
        let tenth = sampled("[scheme.fairq]\nsampled = \"10 %\"");
        assert!(share(&all) > 0.8, "{profile}: {}", share(&all));
        assert!(
            (0.05..0.15).contains(&share(&tenth)),
            "{profile}: {}",
            share(&tenth)
        );
        let queue = |o: &Outcome| o.ports["left->right"].queue_bytes.mean;
        let ratio = queue(&tenth) / queue(&all);
        assert!((0.5..2.0).contains(&ratio), "{profile}: {ratio}");
        let goodput = |o: &Outcome| o.groups["long"].goodput_bps.unwrap().mean;
        let ratio = goodput(&tenth) / goodput(&all);
        assert!((0.9..1.1).contains(&ratio), "{profile}: {ratio}");
        assert_eq!(tenth.groups["mice"].finished, 24, "{profile}");
    }
}

fn with_key(scheme: &str, line: &str) -> Outcome {
    let table = format!("[scheme.{scheme}.window]");
    let text = dumbbell("linux", "tracked", "");
    outcome(&text.replace(&table, &format!("{table}\n{line}")), scheme)
}

#[test]
fn a_window_once_offered_is_kept_if_asked_for() {
    for scheme in ["fairq", "hscc"] {
        let kept = |o: &Outcome| {
            o.ports
                .values()
                .map(|p| p.window.acks_edge_kept)
                .sum::<u64>()
        };
        let lowered = with_key(scheme, "never_shrink = false");
        assert_eq!(kept(&lowered), 0, "{scheme}");
        let edges = with_key(scheme, "never_shrink = true");
        assert!(kept(&edges) > 0, "{scheme}");
        assert_eq!(edges.groups["mice"].finished, 24, "{scheme}");
    }
}

#[test]
fn as_many_acks_are_first_as_the_port_is_set_to() {
    for scheme in ["fairq", "hscc"] {
        let rewritten = ["0", "1", "4"].map(|number| {
            let run = with_key(scheme, &format!("first_acks = {number}"));
            run.ports
                .values()
                .map(|p| p.window.acks_first_rewritten)
                .sum::<u64>()
        });
        // SYN-ACKs alone, and more ACKs of each flow.
        assert!(rewritten[0] > 0, "{scheme}: {rewritten:?}");
        assert!(
            rewritten.is_sorted() && rewritten[0] < rewritten[2],
            "{scheme}: {rewritten:?}"
        );
    }
}
