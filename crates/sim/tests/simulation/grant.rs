// SPDX-License-Identifier: Apache-2.0
//! Windows as credit in whole runs: no loss and no idle port, wherever the policy is.

use super::outcome;
use penstock_sim::Outcome;

const RATE_BPS: f64 = 200e6;
const SIZE_BYTES: u32 = 11_500;

/// What an answer takes of the port: with headers, SYN-ACK, ACK of the request and FIN.
fn wire_bytes(size: u32) -> f64 {
    f64::from(size + size.div_ceil(1448) * 66 + 206)
}

/// Clients ask 8 servers through a port of 200 Mb/s and 128 kB, twice at once; `window`: Grant's keys,
/// `mode`: who opens the connection.
fn at_once(clients: u32, window: &str, mode: &str, more: &str) -> Outcome {
    let timing = "start = \"500 ms\"\nepochs = 2\nevery = \"700 ms\"";
    let traffic = answers(clients, SIZE_BYTES, mode, timing) + more;
    played(window, r#"rate = "200 Mb/s", delay = "15 us""#, &traffic)
}

/// The traffic of clients that ask 8 servers at once; `timing`: its keys.
fn answers(clients: u32, bytes: u32, mode: &str, timing: &str) -> String {
    format!(
        r#"
        [traffic.answers]
        kind = "incast"
        flows = {clients}
        size = "{bytes} B"
        from = "senders"
        to = "receivers"
        mode = "{mode}"
        {timing}
        "#
    )
}

/// Two seconds of this traffic through a port of 128 kB.
fn played(window: &str, bottleneck: &str, traffic: &str) -> Outcome {
    let text = format!(
        r#"
        title = "at once"
        duration = "2 s"
        schemes = ["own"]
        [scheme.own]
        window = {{ kind = "grant", {window} }}
        [fabric]
        kind = "dumbbell"
        senders = 8
        receivers = 8
        access = {{ rate = "10 Gb/s", delay = "5 us" }}
        bottleneck = {{ {bottleneck}, buffer = "128 kB" }}
        [tcp]
        profile = "linux"
        {traffic}
        "#
    );
    outcome(&text, "own")
}

/// Asserts that no packet is lost and no flow stalls; returns the mean over that of an ideal port.
fn of_ideal(outcome: &Outcome, bytes: u32, clients: u32, epochs: u32, rate_bps: f64) -> f64 {
    let answers = &outcome.groups["answers"];
    let port = &outcome.ports["left->right"];
    let harm = (answers.finished, answers.timeouts, port.drops);
    assert_eq!(harm, ((epochs * clients) as usize, 0, 0), "{bytes}");
    let ideal_s = f64::from(clients + 1) / 2.0 * wire_bytes(bytes) * 8.0 / rate_bps;
    answers.fct_s.as_ref().unwrap().mean / ideal_s
}

/// The same of [`at_once`].
fn of_ideal_at_once(outcome: &Outcome, clients: u32, rate_bps: f64) -> f64 {
    of_ideal(outcome, SIZE_BYTES, clients, 2, rate_bps)
}

#[test]
fn more_answers_than_the_buffer_holds_segments_are_not_lost() {
    for (clients, side, mode) in [
        (126, "port", "pull"),
        (126, "receiver", "pull"),
        (400, "port", "pull"),
        (400, "receiver", "push"),
    ] {
        let outcome = at_once(clients, &format!("side = \"{side}\""), mode, "");
        let mean = of_ideal_at_once(&outcome, clients, RATE_BPS);
        assert!(mean < 1.1, "{clients} {side} {mode}: {mean}");
    }
}

#[test]
fn equal_answers_of_any_size_take_the_time_of_a_fifo() {
    for (bytes, clients, rate_bps, epochs) in [
        (1_000, 126, 200e6, 4),
        (64_000, 126, 200e6, 4),
        (256_000, 63, 200e6, 1),
        (500_000, 63, 1e9, 4),
    ] {
        let timing = format!("epochs = {epochs}\nevery = \"450 ms\"");
        let traffic = answers(clients, bytes, "pull", &timing);
        let bottleneck = format!(r#"rate = "{rate_bps} b/s", delay = "15 us""#);
        for side in ["port", "receiver"] {
            let outcome = played(&format!("side = \"{side}\""), &bottleneck, &traffic);
            let mean = of_ideal(&outcome, bytes, clients, epochs, rate_bps);
            assert!(mean < 1.1, "{bytes} {side}: {mean}");
        }
    }
}

#[test]
fn long_flows_take_turns_in_their_share() {
    let elephants = r#"
        [traffic.elephants]
        kind = "bulk"
        flows = 8
        from = "senders"
        to = "receivers"
    "#;
    for side in ["port", "receiver"] {
        let outcome = at_once(126, &format!("side = \"{side}\""), "pull", elephants);
        let mean = of_ideal_at_once(&outcome, 126, RATE_BPS * 7.0 / 8.0);
        assert!(mean < 1.3, "{side}: {mean}");
        let long = &outcome.groups["elephants"];
        let jain = long.jain.unwrap();
        assert!(jain > 0.97, "{side}: {jain}");
        assert!(outcome.ports["left->right"].utilization > 0.97, "{side}");
    }
}

/// A round trip of 5 ms at 1 Gb/s holds five times the buffer, and what long flows have sent would let grants be as large.
#[test]
fn far_senders_of_much_go_on() {
    for flows in [1, 4] {
        let traffic = format!(
            r#"
            [traffic.elephants]
            kind = "bulk"
            flows = {flows}
            from = "senders"
            to = "receivers"
            "#
        );
        let bottleneck = r#"rate = "1 Gb/s", delay = "2.49 ms""#;
        let outcome = played(r#"rtt = "5 ms""#, bottleneck, &traffic);
        let port = &outcome.ports["left->right"];
        assert_eq!(outcome.groups["elephants"].timeouts, 0);
        assert!(port.utilization > 0.55, "{flows}: {}", port.utilization);
    }
}

/// Equal answers beyond the common sizes run to completion before any of them has ended.
#[test]
fn long_answers_of_one_size_take_no_turns() {
    let traffic = answers(126, 700_000, "pull", "");
    for side in ["port", "receiver"] {
        let window = format!("side = \"{side}\"");
        let outcome = played(&window, r#"rate = "1 Gb/s", delay = "15 us""#, &traffic);
        let answers = &outcome.groups["answers"];
        assert_eq!((answers.finished, answers.timeouts), (126, 0));
        let times = answers.fct_s.as_ref().unwrap();
        // All at once each would take as long as the last.
        assert!(times.mean < 0.65 * times.max, "{side}: {times:?}");
    }
}

#[test]
fn a_limit_drops_nothing() {
    let window = "side = \"limit\", rate = \"100 Mb/s\"";
    let mean = of_ideal_at_once(&at_once(126, window, "pull", ""), 126, RATE_BPS / 2.0);
    assert!((0.95..1.1).contains(&mean), "{mean}");
}

#[test]
fn credit_that_no_one_uses_is_taken_back() {
    // Each server thinks for longer than a grant lasts, so that grants lapse.
    let text = |pause: &str| {
        format!(
            "[traffic.other]\nkind = \"incast\"\nflows = 8\nsize = \"11.5 kB\"\nfrom = \"senders\"\n\
             to = \"receivers\"\nmode = \"push\"\nconnection = \"persistent\"\nrequests = 20\n\
             think = \"{pause}\""
        )
    };
    let outcome = at_once(126, "side = \"receiver\"", "pull", &text("40 ms"));
    assert!(of_ideal_at_once(&outcome, 126, RATE_BPS) < 1.3);
    assert_eq!(outcome.groups["other"].unfinished, 0);
}

#[test]
fn servers_that_answer_late_do_not_hold_up_the_others() {
    let late = r#"
        [traffic.late]
        kind = "incast"
        flows = 31
        size = "11.5 kB"
        from = "senders"
        to = "receivers"
        mode = "pull"
        start = "499 ms"
        start_spread = "8 ms"
        epochs = 2
        every = "700 ms"
        server_think = "100 ms"
    "#;
    for side in ["port", "receiver"] {
        let outcome = at_once(95, &format!("side = \"{side}\""), "pull", late);
        let mean = of_ideal_at_once(&outcome, 95, RATE_BPS);
        assert!(mean < 1.15, "{side}: {mean}");
        assert_eq!(outcome.groups["late"].unfinished, 0);
    }
}
