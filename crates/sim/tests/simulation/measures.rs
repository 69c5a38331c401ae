// SPDX-License-Identifier: Apache-2.0
//! What is measured, against answers found by hand.

use super::{assert_same, outcome, results, scenario};
use penstock_scenario::builtin_schemes;
use penstock_sim::{Inputs, Outcome, run};

/// Two senders and receivers; every link 1 Gb/s and 10 us, so that 1500 bytes need 12 us and 10 us
/// per link.
fn small(duration: &str, rest: &str) -> String {
    format!(
        r#"
        title = "by hand"
        duration = "{duration}"
        schemes = ["drop-tail"]
        [fabric]
        kind = "dumbbell"
        senders = 2
        receivers = 2
        access = {{ rate = "1 Gb/s", delay = "10 us" }}
        bottleneck = {{ rate = "1 Gb/s", delay = "10 us", buffer = "100 packets" }}
        [tcp]
        profile = "newreno-ns2"
        {rest}
        "#
    )
}

const ONE_SEGMENT: &str = r#"
    [traffic.one]
    kind = "incast"
    from = "sender1"
    to = "receiver1"
    size = "1460 B"
    start = "1 ms"
    deadline = "DEADLINE"
"#;

/// SYN and SYN-ACK: 48 bytes over three links. Then the segment, which acknowledges the SYN-ACK.
const HANDSHAKE_US: f64 = 2.0 * 3.0 * (0.384 + 10.0);
const SEGMENT_US: f64 = 3.0 * (12.0 + 10.0);

fn near(value: f64, expected: f64) -> bool {
    (value - expected).abs() <= 1e-9 * expected.abs()
}

#[test]
fn one_segment_takes_its_handshake_and_its_way() {
    let outcome = outcome(
        &small("10 ms", &ONE_SEGMENT.replace("DEADLINE", "1 s")),
        "drop-tail",
    );
    let fct = (HANDSHAKE_US + SEGMENT_US) * 1e-6;
    let group = &outcome.groups["one"];
    let times = group.fct_s.unwrap();
    assert!(near(times.mean, fct), "{} {fct}", times.mean);
    assert!(near(times.max, fct) && times.sd == 0.0);
    let rate = 1460.0 * 8.0 / fct;
    let goodput = group.goodput_bps.unwrap();
    assert!(near(goodput.mean, rate) && near(goodput.min, rate));
    // The one epoch is the one transfer; the one packet comes at its end.
    assert!(near(group.block_goodput_bps.unwrap(), rate));
    assert!(near(group.longest_silence_s.unwrap().max, fct));
    assert_eq!((group.flows, group.finished), (1, 1));
    assert_eq!((group.jain, group.starved), (Some(1.0), 0.0));
    let flow = &outcome.flows[0];
    assert_eq!((flow.packets, flow.delivered_bytes), (1, 1460));
    assert!(near(flow.start_s, 1e-3) && near(flow.end_s.unwrap(), 1e-3 + fct));
}

/// Of segments that a path splits, the ideal time is that of the small ones.
#[test]
fn nothing_is_faster_than_ideal_where_a_link_takes_short_packets_only() {
    let long = ONE_SEGMENT
        .replace("1460 B", "8948 B")
        .replace("DEADLINE", "1 s");
    let text = small("20 ms", &format!("{long}\ntcp.mss = 8960"))
        .replace(r#""100 packets""#, r#""100 packets", mtu = "1500 B""#);
    let outcome = outcome(&text, "drop-tail");
    let [flow] = &outcome.flows[..] else { panic!() };
    let (took, ideal) = (flow.fct_s.unwrap(), flow.ideal_s.unwrap());
    assert!(ideal <= took && took < 2.0 * ideal, "{took} {ideal}");
}

#[test]
fn no_queue_is_longer_than_its_buffer() {
    let many = r#"
        [traffic.web]
        kind = "incast"
        flows = 40
        size = "30 kB"
        from = "senders"
        to = "receivers"
    "#;
    let text = small("200 ms", many).replace("100 packets", "40 kB");
    for scheme in builtin_schemes().keys() {
        let queue = &outcome(&text, scheme).ports["left->right"].queue_bytes;
        assert!(queue.max <= 40_000, "{scheme}: {}", queue.max);
    }
}

#[test]
fn a_deadline_is_missed_by_who_takes_longer() {
    let missed = |deadline: &str| {
        let text = small("10 ms", &ONE_SEGMENT.replace("DEADLINE", deadline));
        outcome(&text, "drop-tail").groups["one"]
            .missed_deadlines
            .unwrap()
    };
    assert_eq!((missed("129 us"), missed("128 us")), (0, 1));
}

#[test]
fn who_starts_too_late_starves_and_is_silent() {
    let text = small(
        "10 ms",
        r#"
        [traffic.early]
        kind = "bulk"
        from = "sender1"
        to = "receiver1"
        [traffic.late]
        kind = "bulk"
        from = "sender2"
        to = "receiver2"
        start = "9.95 ms"
        deadline = "10 us"
        "#,
    );
    let outcome = outcome(&text, "drop-tail");
    let (early, late) = (&outcome.groups["early"], &outcome.groups["late"]);
    assert_eq!((early.starved, late.starved), (0.0, 1.0));
    assert!(near(late.longest_silence_s.unwrap().max, 50e-6));
    assert_eq!(late.missed_deadlines, Some(1));
    assert_eq!((late.finished, late.fct_s.is_none()), (0, true));
    assert_eq!(late.goodput_bps.unwrap().mean, 0.0);
}

#[test]
fn the_time_before_the_measured_does_not_count() {
    let rest = |from: &str| {
        format!(
            r#"
            [traffic.noise]
            kind = "udp"
            rate = "500 Mb/s"
            arrivals = "constant"
            packet = "1000 B"
            from = "sender1"
            to = "receiver1"
            start = "50 ms"
            [traffic.short]
            kind = "bulk"
            size = "100 kB"
            from = "sender2"
            to = "receiver2"
            [measure]
            from = "{from}"
            "#
        )
    };
    let all = outcome(&small("100 ms", &rest("0 s")), "drop-tail");
    let late = outcome(&small("100 ms", &rest("60 ms")), "drop-tail");
    let busy = |o: &Outcome| o.ports["left->right"].utilization;
    // Half of the time at half of the rate, and 100 kB with their headers.
    let expected = 0.25 + 102_800.0 * 8.0 / 1e8;
    assert!(
        (busy(&all) - expected).abs() < 2e-4,
        "{} {expected}",
        busy(&all)
    );
    assert!((busy(&late) - 0.5).abs() < 4e-4, "{}", busy(&late));
    assert!(late.groups["short"].goodput_bps.is_none());
    assert_eq!(all.flows[0].packets, 69);
    assert_eq!(late.flows[0].packets, 0);
}

/// The summaries of a crowded run, from its list of flows.
#[test]
fn a_summary_is_that_of_its_flows() {
    let text = small(
        "300 ms",
        r#"
        initial_rto = "20 ms"
        min_rto = "20 ms"
        [traffic.crowd]
        kind = "incast"
        flows = 150
        size = "20 kB"
        from = "senders"
        to = "receivers"
        deadline = "10 ms"
        "#,
    );
    let outcome = outcome(&text, "drop-tail");
    let (group, flows) = (&outcome.groups["crowd"], &outcome.flows);
    assert_eq!((group.flows, flows.len()), (150, 150));
    let ended: Vec<f64> = flows.iter().filter_map(|flow| flow.fct_s).collect();
    assert_eq!(group.finished, ended.len());
    let last = ended.iter().copied().fold(0.0, f64::max);
    assert_eq!(group.fct_s.unwrap().max, last);
    assert!(near(
        group.block_goodput_bps.unwrap(),
        150.0 * 20_000.0 * 8.0 / last
    ));
    let late = flows
        .iter()
        .filter(|flow| flow.fct_s.is_none_or(|fct| fct > 10e-3));
    assert_eq!(group.missed_deadlines, Some(late.count()));
    let rates: Vec<f64> = flows.iter().filter_map(|flow| flow.goodput_bps).collect();
    let (sum, squares) = rates
        .iter()
        .fold((0.0, 0.0), |(s, q), rate| (s + rate, q + rate * rate));
    assert!(near(
        group.jain.unwrap(),
        sum * sum / (rates.len() as f64 * squares)
    ));
    let total = |of: fn(&penstock_sim::run::FlowRecord) -> u64| flows.iter().map(of).sum::<u64>();
    assert_eq!(group.retransmits, total(|flow| flow.retransmits));
    assert_eq!(group.timeouts, total(|flow| flow.timeouts));
    assert_eq!(group.drops, total(|flow| flow.drops));
    assert!(group.timeouts > 0 && group.drops == outcome.drops);
    // What arrived and what was lost was sent: data once, and again when lost.
    let arrived = total(|flow| flow.packets);
    assert!(arrived >= 150 * 14 && arrived + group.drops >= 150 * 14 + group.retransmits);
}

/// Each class has the transfers of its lengths, its ends included; what is longer is in none.
#[test]
fn classes_are_the_transfers_of_their_lengths() {
    let text = small(
        "400 ms",
        r#"
        [traffic.web]
        kind = "poisson"
        load = "50 %"
        size = "websearch"
        from = "senders"
        to = "receivers"
        [traffic.fixed]
        kind = "incast"
        size = "20 kB"
        from = "sender1"
        to = "receiver1"
        [measure]
        sizes = { medium = "1 MB", small = "20 kB" }
        "#,
    );
    let outcome = outcome(&text, "drop-tail");
    let names: Vec<&String> = outcome.groups.keys().collect();
    assert_eq!(names, ["web", "web/small", "web/medium", "fixed"]);
    let web: Vec<_> = outcome
        .flows
        .iter()
        .filter(|flow| flow.traffic == "web")
        .collect();
    let all = web.iter().filter_map(|flow| flow.bytes).sum::<u64>() as f64;
    let mut classed = 0;
    for (name, ends) in [
        ("web/small", 0..=20_000),
        ("web/medium", 20_001..=1_000_000),
    ] {
        let is_member =
            |flow: &&&penstock_sim::run::FlowRecord| ends.contains(&flow.bytes.unwrap());
        let members: Vec<_> = web.iter().filter(is_member).collect();
        let (group, share) = (&outcome.groups[name], outcome.groups[name].share.unwrap());
        assert!(group.flows > 0 && group.flows == members.len());
        assert!(near(share.flows, members.len() as f64 / web.len() as f64));
        let bytes: u64 = members.iter().filter_map(|flow| flow.bytes).sum();
        assert!(near(share.bytes, bytes as f64 / all));
        let timeouts: u64 = members.iter().map(|flow| flow.timeouts).sum();
        assert_eq!(group.timeouts, timeouts);
        classed += members.len();
    }
    assert!(classed < web.len(), "none is longer than the classes");
    assert!(outcome.groups["web"].share.is_none());
}

/// The racks' cables are on the way, and the scheme is on the ports of the core, not the racks'.
#[test]
fn racks_stand_between_senders_and_bottleneck() {
    let text = small("10 ms", &ONE_SEGMENT.replace("DEADLINE", "1 s"));
    let racks = "racks = 2\nrack_link = { rate = \"1 Gb/s\", delay = \"70 us\" }\nsenders = 2";
    let (direct, racked) = (text.clone(), text.replace("senders = 2", racks));
    let fct = |text: &str| outcome(text, "drop-tail").groups["one"].fct_s.unwrap().mean;
    let longer = 2.0 * (0.384 + 70.0) + 12.0 + 70.0;
    assert!(near(fct(&racked), fct(&direct) + longer * 1e-6));
    let layout = run::Layout::of(&scenario(&racked), &Inputs::default());
    let protected = layout.ports.iter().filter(|port| port.is_protected);
    let names: Vec<String> = protected
        .map(|port| format!("{}->{}", port.from, port.to))
        .collect();
    let expected = ["left->right", "right->left", "left->rack1", "left->rack2"];
    assert_eq!(names, expected);
    assert!(near(layout.rtt_s, 2.0 * (10.0 + 70.0 + 70.0 + 10.0) * 1e-6));
}

#[test]
fn progress_is_reported_and_can_stop_the_run() {
    let scenario = scenario(&small("10 ms", &ONE_SEGMENT.replace("DEADLINE", "1 s")));
    let reported = std::sync::Mutex::new(Vec::new());
    let stop_at_half = |share: f64| {
        reported.lock().unwrap().push(share);
        share < 0.5
    };
    let error = run(&scenario, &Inputs::default(), "drop-tail", 1, &stop_at_half).unwrap_err();
    assert_eq!(error.to_string(), "interrupted");
    let reported = reported.into_inner().unwrap();
    assert!(reported.is_sorted_by(|a, b| a < b) && reported.last() == Some(&0.5));
}

#[test]
fn what_cannot_run_is_refused_in_a_line() {
    let refused = |text: &str, scheme: &str| {
        run(&scenario(text), &Inputs::default(), scheme, 1, &|_| true)
            .unwrap_err()
            .to_string()
    };
    let text = small("10 ms", &ONE_SEGMENT.replace("DEADLINE", "1 s"));
    let unknown = refused(&text, "drop-tial");
    assert!(unknown.contains("no scheme \"drop-tial\""), "{unknown}");
    let wide = text.replace("senders = 2", "senders = 200");
    let endless = wide.replace("duration = \"10 ms\"", "duration = \"90000 s\"");
    let long = refused(&endless, "drop-tail");
    assert!(
        long.starts_with("duration: 90000 s is too long for this many links; at most "),
        "{long}"
    );
}

/// Ten requests one after the other, not all of which end before 1 ms.
const LOOP: &str = r#"
    [traffic.loop]
    kind = "incast"
    from = "sender1"
    to = "receiver1"
    size = "1460 B"
    mode = "pull"
    requests = 10
"#;

#[test]
fn requests_that_the_end_of_the_run_cuts_off_are_counted_as_unfinished() {
    let cut = outcome(&small("1 ms", LOOP), "drop-tail");
    let group = &cut.groups["loop"];
    assert!((1..9).contains(&group.finished) && group.flows <= group.finished + 1);
    assert_eq!(group.unfinished, 10 - group.finished);
    // Clients whose turn never came count too.
    let late = LOOP.replace("requests", "start_gap = \"50 ms\"\nflows = 10\nrequests");
    let few = outcome(&small("1 ms", &late), "drop-tail");
    let group = &few.groups["loop"];
    assert_eq!(
        (group.flows < 10, group.unfinished),
        (true, 100 - group.finished)
    );
    let whole = outcome(&small("10 ms", LOOP), "drop-tail");
    let group = &whole.groups["loop"];
    assert_eq!((group.finished, group.unfinished), (10, 0));
}

#[test]
fn a_run_until_done_ends_with_its_last_transfer() {
    let lasted = |until: &str, duration: &str, traffic: &str| {
        let text =
            small(duration, traffic).replace("duration", &format!("until = \"{until}\"\nduration"));
        let outcome = outcome(&text, "drop-tail");
        (outcome.queues.last().unwrap().time_s, outcome)
    };
    let endless = r#"
        [traffic.endless]
        kind = "bulk"
        from = "sender2"
        to = "receiver2"
        [measure]
        queue_every = "50 us"
    "#;
    let traffic = format!("{LOOP}{endless}");
    let (full, _) = lasted("duration", "1 s", &traffic);
    let (short, outcome) = lasted("done", "1 s", &traffic);
    let last = outcome.flows.iter().filter_map(|flow| flow.end_s);
    let last = last.fold(0.0, f64::max);
    assert!(full > 0.999 && short > last - 50e-6 && short <= last);
    assert_eq!(outcome.groups["loop"].unfinished, 0);
    // What lasts longer than the loop is measured until the run ends, not until `duration`.
    let goodput = outcome.groups["endless"].goodput_bps.unwrap().mean;
    let port = &outcome.ports["left->right"];
    assert!(goodput > 0.3e9 && port.utilization > 0.3, "{goodput}");
    let rate = outcome.groups["loop"].flows_per_second;
    assert!(near(rate, 10.0 / last), "{rate}");
    // The upper bound changes nothing.
    let (_, long) = lasted("done", "1000 s", &traffic);
    assert_same(&results(&outcome), &results(&long), "1 s and 1000 s");
}

#[test]
fn windows_show_a_loss_and_its_repair() {
    let traffic = r#"
        [traffic.long]
        kind = "bulk"
        flows = 2
        from = "senders"
        to = "receivers"
        [measure]
        windows = { traffic = "long", flows = 2, every = "50 us" }
    "#;
    let outcome = outcome(&small("200 ms", traffic), "drop-tail");
    let of = |flow| outcome.windows.iter().filter(move |row| row.flow == flow);
    let mut losses = 0;
    for flow in [0, 1] {
        let rows: Vec<_> = of(flow).collect();
        assert_eq!(rows.len(), 4001);
        assert!(
            rows.iter()
                .all(|row| row.swnd_bytes == row.cwnd_bytes.min(row.rwnd_bytes))
        );
        let begins = rows
            .windows(2)
            .filter(|pair| !pair[0].recovering && pair[1].recovering);
        losses += begins.count();
    }
    let group = &outcome.groups["long"];
    assert!(losses > 1 && losses as u64 <= group.drops + group.retransmits);
    assert!(near(
        group.loss_cycle_s.unwrap(),
        8002.0 * 50e-6 / losses as f64
    ));
    assert!((1..=2).contains(&group.resent));
}

/// The next request of a client that thinks carries the ACK of the answer, unless the ACK may not be
/// delayed for that long.
#[test]
fn delayed_acks_are_counted() {
    let delayed = |ack_delay: &str| {
        let traffic = format!(
            r#"
            [traffic.one]
            kind = "incast"
            from = "sender1"
            to = "receiver1"
            size = "1 kB"
            mode = "pull"
            requests = 6
            connection = "persistent"
            think = "10 ms"
            tcp = {{ profile = "linux", quick_acks = 0, ack_delay = "{ack_delay}" }}
            "#
        );
        outcome(&small("1 s", &traffic), "drop-tail").delayed_acks
    };
    let (early, late) = (delayed("1 ms"), delayed("200 ms"));
    assert!((3..=6).contains(&early), "{early}");
    assert!(late <= 1, "{late}");
}

/// A window of one segment on persistent connections: the client waits for more of each answer, and
/// the server for its ACK. Two segments are acknowledged at once.
#[test]
fn a_window_of_one_segment_makes_each_answer_wait_for_a_delayed_ack() {
    let run = |floor: u32| {
        let text = format!(
            r#"
            title = "persistent"
            duration = "2 s"
            schemes = ["drop-tail"]
            [fabric]
            kind = "dumbbell"
            senders = 8
            receivers = 1
            access = {{ rate = "10 Gb/s", delay = "5 us" }}
            bottleneck = {{ rate = "200 Mb/s", delay = "15 us", buffer = "128 kB" }}
            [tcp]
            profile = "linux"
            nagle = false
            [traffic.web]
            kind = "incast"
            flows = 32
            size = "11.5 kB"
            from = "senders"
            to = "receivers"
            mode = "pull"
            requests = 1000000
            connection = "persistent"
            [scheme.fairq.window]
            floor = {floor}
            "#
        );
        let outcome = outcome(&text, "fairq");
        let web = &outcome.groups["web"];
        let share = outcome.delayed_acks as f64 / web.finished as f64;
        let delayed = web.slow.unwrap().delayed_ack.unwrap();
        (web.fct_s.unwrap().p50, share, delayed)
    };
    let (one, two) = (run(1), run(2));
    assert!(one.0 > 0.04 && one.1 > 0.5 && one.2 > 0.5, "{one:?}");
    assert!(two.0 < 0.02 && two.1 < 0.01 && two.2 < 0.1, "{two:?}");
}
