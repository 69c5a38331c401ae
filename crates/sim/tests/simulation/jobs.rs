// SPDX-License-Identifier: Apache-2.0
//! Jobs on an idle network take the time that one calculates by hand.

use super::{outcome, results, wide};
use penstock_sim::Outcome;

/// Between two senders (2 links) or a sender and a receiver (3): propagation of 10 us and a transmission
/// at 1 Gb/s on each link.
fn way(links: u32, bytes: f64) -> f64 {
    f64::from(links) * (10e-6 + bytes * 8e-9)
}

/// SYN and SYN-ACK, then one segment of 1000 bytes.
fn transfer(links: u32) -> f64 {
    2.0 * way(links, 48.0) + way(links, 1040.0)
}

fn job(keys: &str) -> Outcome {
    let traffic = format!("[traffic.job]\nkind = \"job\"\n{keys}\n");
    outcome(&wide("200 ms", "1000 packets", &traffic), "drop-tail")
}

fn times(outcome: &Outcome) -> Vec<f64> {
    outcome.jobs.iter().map(|job| job.time_s.unwrap()).collect()
}

/// Within `slack` seconds; what ACKs and FINs cost that share a port with data.
fn assert_near(found: f64, by_hand: f64, slack: f64) {
    let is_near = (found - by_hand).abs() <= slack + 1e-9;
    assert!(is_near, "{found} s, by hand {by_hand} s");
}

#[test]
fn a_stage_begins_when_the_one_before_is_over() {
    let outcome = job(r#"
        jobs = 3
        think = "2 ms"
        stages = [
            { from = "sender1", to = "receiver1", size = "1000 B" },
            { from = "receiver1", to = "sender2", size = "1000 B", think = "300 us" },
        ]
    "#);
    let by_hand = transfer(3) + 300e-6 + transfer(3);
    for time in times(&outcome) {
        assert_near(time, by_hand, 0.0);
    }
    let starts: Vec<f64> = outcome.jobs.iter().map(|job| job.start_s).collect();
    assert_near(starts[1] - starts[0], by_hand + 2e-3, 0.0);
    assert_near(starts[2] - starts[1], by_hand + 2e-3, 0.0);
    let summary = outcome.groups["job"].jobs.clone().unwrap();
    assert_eq!(
        (summary.begun, summary.finished, summary.unfinished),
        (3, 3, 0)
    );
    assert_near(summary.time_s.unwrap().mean, by_hand, 0.0);
    let rate = 3.0 / (3.0 * by_hand + 2.0 * 2e-3);
    assert!((summary.per_second.unwrap() / rate - 1.0).abs() < 1e-6);
    // A transfer's flow is the number of its job.
    let flows: Vec<u32> = outcome.flows.iter().map(|flow| flow.flow).collect();
    assert_eq!(flows, [0, 0, 1, 1, 2, 2]);
    assert!(
        outcome
            .jobs
            .iter()
            .all(|job| (job.transfers, job.bytes) == (2, 2000))
    );
}

#[test]
fn a_read_waits_for_all_its_stripes_or_for_enough() {
    let read = |enough: &str| {
        let outcome = job(&format!(
            r#"
            clients = "receiver1"
            pick = {{ servers = {{ of = "senders", count = 3 }} }}
            stages = [{{ from = "servers", to = "client", size = "1000 B", mode = "pull"{enough} }}]
            "#
        ));
        assert_eq!(outcome.jobs[0].client.as_deref(), Some("receiver1"));
        (times(&outcome)[0], outcome.flows)
    };
    // The handshakes and requests of one host leave one after the other; the server's ACK of the
    // request comes before its answer. The third answer is the last, right behind its own ACK.
    let (all, flows) = read("");
    let last = flows
        .iter()
        .map(|flow| flow.end_s.unwrap())
        .fold(0.0, f64::max);
    assert_eq!(flows.len(), 3);
    assert_near(all, last, 0.0);
    let alone = 2.0 * way(3, 48.0) + way(3, 140.0) + 40.0 * 8e-9 + way(3, 1040.0);
    let behind_two = alone + 2.0 * (1040.0 + 40.0) * 8e-9;
    assert_near(all, behind_two, 1e-6);
    let (two, flows) = read(", enough = 2");
    let mut ends: Vec<f64> = flows.iter().map(|flow| flow.end_s.unwrap()).collect();
    ends.sort_by(f64::total_cmp);
    assert_near(two, ends[1], 0.0);
    assert!(
        two < all && ends[2] > two,
        "the last stripe arrives after the job"
    );
    let (one, _) = read(", enough = 1");
    assert_near(one, alone, 1e-6);
}

#[test]
fn a_ring_all_reduce_takes_2_n_minus_1_steps() {
    let ring = |connection: &str| {
        let outcome = job(&format!(
            r#"
            connection = "{connection}"
            stages = [{{ from = "senders", to = "senders", pairs = "ring", block = "4000 B", after = "received" }}]
            "#
        ));
        assert_eq!(outcome.flows.len(), 6 * 4);
        assert!(outcome.flows.iter().all(|flow| flow.bytes == Some(1000)));
        times(&outcome)[0]
    };
    // A step's SYN waits for the FIN and the ACKs of the step before.
    assert_near(
        ring("new"),
        6.0 * transfer(2),
        6.0 * 3.0 * 2.0 * 40.0 * 8e-9,
    );
    let by_hand = transfer(2) + 5.0 * way(2, 1040.0);
    assert_near(ring("persistent"), by_hand, 6.0 * 2.0 * 40.0 * 8e-9);
}

#[test]
fn trees_and_exchanges_take_log_n_steps_and_a_shift_n_minus_1() {
    for (pairs, steps, flows) in [
        ("reduce", 2, 3),
        ("broadcast", 2, 3),
        ("exchange", 2, 8),
        ("shift", 3, 12),
    ] {
        for after in ["all", "received"] {
            let outcome = job(&format!(
                r#"stages = [{{ from = "senders", to = "senders", pairs = "{pairs}", size = "1000 B", after = "{after}" }}]"#
            ));
            assert_eq!(outcome.flows.len(), flows, "{pairs}");
            let by_hand = f64::from(steps) * transfer(2);
            assert_near(times(&outcome)[0], by_hand, f64::from(steps) * 2e-6);
        }
    }
}

#[test]
fn a_host_waits_for_its_own_only_and_a_barrier_for_all() {
    // Step 1: sender1 -> sender2 1000 B, sender3 -> sender4 100 kB. Step 2: the receivers send back.
    let job = |after: &str| {
        job(&format!(
            r#"
            stages = [
                {{ from = ["sender1", "sender3", "sender3"], to = ["sender2", "sender4", "sender4"], size = "1000 B", flows = 3 }},
                {{ from = ["sender2", "sender4"], to = ["sender1", "sender3"], size = "1000 B", after = "{after}" }},
            ]
            "#
        ))
    };
    let start = |outcome: &Outcome, from: &str| {
        let mut flows = outcome.flows.iter().filter(|flow| flow.source == from);
        flows.next().unwrap().start_s
    };
    let ends = |outcome: &Outcome, to: &str| {
        let flows = outcome.flows.iter().filter(|flow| flow.destination == to);
        flows.map(|flow| flow.end_s.unwrap()).fold(0.0, f64::max)
    };
    let received = job("received");
    assert_near(start(&received, "sender2"), ends(&received, "sender2"), 0.0);
    assert_near(start(&received, "sender4"), ends(&received, "sender4"), 0.0);
    assert!(start(&received, "sender2") < start(&received, "sender4"));
    let all = job("all");
    assert_near(start(&all, "sender2"), ends(&all, "sender4"), 0.0);
    assert_near(start(&all, "sender4"), ends(&all, "sender4"), 0.0);
}

#[test]
fn partition_and_aggregate_goes_down_and_up() {
    let outcome = job(r#"
        clients = "receiver1"
        stages = [
            { from = "client", to = ["sender1", "sender2"], size = "1000 B" },
            { from = ["sender1", "sender2"], to = ["sender3", "sender4"], size = "1000 B", after = "received" },
            { from = ["sender3", "sender4"], to = ["sender1", "sender2"], size = "1000 B", after = "received", think = "100 us" },
            { from = ["sender1", "sender2"], to = "client", size = "1000 B", after = "received" },
        ]
    "#);
    // The second query of the client is behind the first, as the second answer is.
    let by_hand = 2.0 * transfer(3) + 2.0 * transfer(2) + 100e-6;
    assert_near(times(&outcome)[0], by_hand, 20e-6);
    assert!(times(&outcome)[0] > by_hand);
}

#[test]
fn an_open_loop_starts_jobs_on_time_and_a_run_ends_when_all_are_over() {
    let traffic = r#"
        [traffic.job]
        kind = "job"
        clients = "receivers"
        jobs = 5
        every = "1 ms"
        deadline = "100 us"
        stages = [{ from = "sender1", to = "client", size = "1000 B" }]
    "#;
    let text = wide("200 ms", "1000 packets", traffic)
        .replace("duration =", "until = \"done\"\nduration =");
    let outcome = outcome(&text, "drop-tail");
    assert_eq!(outcome.jobs.len(), 20);
    for (number, job) in outcome.jobs.iter().enumerate() {
        assert_eq!(job.job as usize, number);
        assert_near(job.start_s, (number / 4) as f64 * 1e-3, 0.0);
        assert_eq!(job.missed_deadline, Some(job.time_s.unwrap() > 100e-6));
    }
    let jobs = outcome.groups["job"].jobs.clone().unwrap();
    assert_eq!((jobs.finished, jobs.unfinished), (20, 0));
    assert_eq!(
        jobs.missed_deadlines,
        Some(20),
        "the handshake alone takes 60 us"
    );
}

#[test]
fn what_is_drawn_is_the_same_for_a_seed_and_has_the_right_mean() {
    let traffic = r#"
        [traffic.job]
        kind = "job"
        clients = "receivers"
        jobs = 200
        think = { exponential = "100 us" }
        connection = "persistent"
        pick = { two = { of = "senders", count = 2 } }
        stages = [{ from = "two", to = "client", size = "key-value", mode = "pull", request = { uniform = ["20 B", "60 B"] } }]
    "#;
    let text = wide("2 s", "1000 packets", traffic);
    let (one, two) = (outcome(&text, "drop-tail"), outcome(&text, "drop-tail"));
    assert_eq!(results(&one), results(&two));
    let bytes: Vec<f64> = one
        .flows
        .iter()
        .map(|flow| flow.bytes.unwrap() as f64)
        .collect();
    assert_eq!(bytes.len(), 4 * 200 * 2);
    let mean = bytes.iter().sum::<f64>() / bytes.len() as f64;
    assert!((150.0..270.0).contains(&mean), "{mean}");
    let mut thinks = Vec::new();
    for client in ["receiver1", "receiver2", "receiver3", "receiver4"] {
        let own = one
            .jobs
            .iter()
            .filter(|job| job.client.as_deref() == Some(client));
        let own: Vec<_> = own.collect();
        assert_eq!(own.len(), 200);
        thinks.extend(
            own.windows(2)
                .map(|pair| pair[1].start_s - pair[0].end_s.unwrap()),
        );
    }
    let mean = thinks.iter().sum::<f64>() / thinks.len() as f64;
    assert!((mean / 100e-6 - 1.0).abs() < 0.15, "{mean}");
}
