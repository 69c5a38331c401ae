// SPDX-License-Identifier: Apache-2.0
//! How long flows waited and for what, their ideal time, and their slowdown.

use super::{outcome, wide};
use penstock_sim::Outcome;

/// Senders that begin together at a port with a short buffer.
fn burst(size: &str, buffer: &str, flows: u32) -> Outcome {
    let traffic = format!(
        r#"
        [traffic.mice]
        kind = "incast"
        from = "senders"
        to = "receiver1"
        flows = {flows}
        size = "{size}"
        "#
    );
    outcome(&wide("10 s", buffer, &traffic), "drop-tail")
}

#[test]
fn a_lone_flow_of_one_segment_is_ideal_but_for_the_options_of_its_syn() {
    let run = burst("1460 B", "100 packets", 1);
    let flow = &run.flows[0];
    // 1500 bytes over three links, and a header of 40 bytes there and back.
    let ideal = 3.0 * (12.0 + 10.0) + 2.0 * 3.0 * (0.32 + 10.0);
    assert!((flow.ideal_s.unwrap() - ideal * 1e-6).abs() < 1e-10);
    let slowdown = run.groups["mice"].slowdown.unwrap();
    assert!((1.0..1.01).contains(&slowdown.max), "{slowdown:?}");
    assert_eq!(run.groups["mice"].flows_per_second, 0.1);
}

/// All that a flow waited is part of its time; it has waited if and only if it has timed out.
#[test]
fn slow_flows_waited_for_their_timeouts() {
    let run = burst("60 kB", "20 packets", 40);
    let group = &run.groups["mice"];
    assert!(group.timeouts > 10 && group.finished == 40);
    for flow in &run.flows {
        let (rto, fct) = (flow.rto_wait_s.unwrap(), flow.fct_s.unwrap());
        assert_eq!(flow.timeouts > 0, rto > 0.0, "{flow:?}");
        // The least timeout of this profile is 200 ms; the backed-off ones are longer.
        assert!(rto >= 0.19 * flow.timeouts as f64, "{flow:?}");
        assert!(rto + flow.syn_wait_s.unwrap() + flow.ideal_s.unwrap() < fct);
        assert!(fct > flow.ideal_s.unwrap());
    }
    let slow = group.slow.unwrap();
    assert_eq!(slow.flows, 4);
    assert!(slow.rto + slow.syn_timeout > 0.9, "{slow:?}");
    assert_eq!(slow.server_think, 0.0);
    let sum = slow.rto + slow.syn_timeout + slow.ideal + slow.queueing;
    let all = sum + slow.delayed_ack.unwrap() + slow.zero_window.unwrap();
    assert!((all - 1.0).abs() < 1e-9);
}

#[test]
fn a_lost_syn_is_waited_for() {
    let run = burst("1 kB", "2 packets", 60);
    let group = &run.groups["mice"];
    assert!(group.syn_timeouts > 0);
    for flow in run.flows.iter().filter(|flow| flow.end_s.is_some()) {
        let wait = flow.syn_wait_s.unwrap();
        assert_eq!(flow.syn_timeouts > 0, wait > 0.0, "{flow:?}");
        assert!(wait <= flow.fct_s.unwrap());
    }
    assert!(group.slow.unwrap().syn_timeout > 0.5);
}

/// The wait of those that did not end counts as long as the run lasted.
#[test]
fn an_unfinished_flow_waits_until_the_end() {
    let text = wide(
        "2 s",
        "20 packets",
        r#"
        [traffic.dark]
        kind = "incast"
        from = "sender1"
        to = "receiver1"
        size = "1 MB"
        "#,
    )
    .replace(
        "[tcp]",
        r#"port_at = { "left->right" = { down = [{ from = "1 ms", to = "2 s" }] } }
[tcp]"#,
    );
    let run = outcome(&text, "drop-tail");
    let (flow, slow) = (&run.flows[0], run.groups["dark"].slow.unwrap());
    assert!(flow.end_s.is_none());
    assert!(slow.lasted_s > 1.99 && slow.rto > 0.95, "{slow:?}");
}

/// Requests to a server that waits for `server_think` before it answers.
fn asked(duration: &str, server_think: &str, more: &str) -> Outcome {
    let traffic = format!(
        r#"
        [traffic.ask]
        kind = "incast"
        mode = "pull"
        from = "sender1"
        to = "receiver1"
        size = "10 kB"
        server_think = {server_think}
        {more}
        "#
    );
    outcome(&wide(duration, "100 packets", &traffic), "drop-tail")
}

#[test]
fn a_server_answers_when_it_has_thought() {
    for more in ["", "connection = \"persistent\"\nrequests = 3"] {
        let (quick, slow) = (
            asked("1 s", "\"0 s\"", more),
            asked("1 s", "\"7 ms\"", more),
        );
        assert_eq!(quick.flows.len(), slow.flows.len());
        for (quick, slow) in quick.flows.iter().zip(&slow.flows) {
            assert_eq!(
                (quick.server_wait_s, slow.server_wait_s),
                (Some(0.0), Some(7e-3))
            );
            assert_eq!(quick.ideal_s, slow.ideal_s);
            // Of the ACKs of request and answer one saves the other's time on the wire.
            let longer = slow.fct_s.unwrap() - quick.fct_s.unwrap();
            assert!((longer - 7e-3).abs() < 2e-6, "{longer}");
        }
        let group = slow.groups["ask"].slow.unwrap();
        let share = 7e-3 / group.lasted_s;
        assert!((group.server_think - share).abs() < 1e-9, "{group:?}");
    }
}

#[test]
fn thinking_times_are_drawn_for_each_request() {
    let run = asked("10 s", "{ exponential = \"2 ms\" }", "requests = 2000");
    let thinks = run.flows.iter().map(|flow| flow.server_wait_s.unwrap());
    let mean = thinks.clone().sum::<f64>() / thinks.len() as f64;
    assert_eq!(thinks.len(), 2000);
    assert!((mean - 2e-3).abs() < 2e-4, "{mean}");
    let above = thinks.filter(|think| *think > 2e-3).count();
    assert!((600..900).contains(&above), "1 of e: {above}");
}

/// What a server has thought until the run ends counts.
#[test]
fn an_unanswered_request_waits_for_its_server_until_the_end() {
    let run = asked("100 ms", "\"1 s\"", "");
    for flow in &run.flows {
        assert!(flow.end_s.is_none());
        let think = flow.server_wait_s.unwrap();
        assert!((0.0995..0.1).contains(&think), "{think}");
    }
    assert!(run.groups["ask"].slow.unwrap().server_think > 0.99);
}

#[test]
fn the_stages_of_a_job_have_servers_that_think() {
    let traffic = r#"
        [traffic.read]
        kind = "job"
        jobs = 2
        stages = [
            { from = "senders", to = "receiver1", size = "1 kB", mode = "pull", server_think = "3 ms" },
            { from = "receiver1", to = "senders", size = "1 kB" },
        ]
        "#;
    let run = outcome(&wide("1 s", "100 packets", traffic), "drop-tail");
    let thought = |flow: &&penstock_sim::run::FlowRecord| flow.server_wait_s == Some(3e-3);
    assert_eq!(
        (run.flows.len(), run.flows.iter().filter(thought).count()),
        (16, 8)
    );
    assert!(run.jobs.iter().all(|job| job.time_s.unwrap() > 3e-3));
}

#[test]
fn a_syn_waits_for_all_of_its_timer_even_if_that_is_coarse() {
    let text = wide(
        "10 s",
        "20 packets",
        r#"
        [traffic.dark]
        kind = "incast"
        from = "sender1"
        to = "receiver1"
        size = "1 kB"
        start = "3 ms"
        "#,
    )
    .replace("newreno-ns2", "linux")
    .replace(
        "[tcp]",
        r#"port_at = { "left->right" = { down = [{ from = "0 s", to = "1 s" }] } }
[tcp]"#,
    );
    let flow = &outcome(&text, "drop-tail").flows[0];
    // All of its time but a round trip.
    let (wait, fct) = (flow.syn_wait_s.unwrap(), flow.fct_s.unwrap());
    assert!(
        flow.syn_timeouts == 1 && wait > fct - 1e-3,
        "{wait} of {fct}"
    );
}
