// SPDX-License-Identifier: Apache-2.0
//! Congestion Experienced (RFC 3168), and the queue by which it is decided.

use penstockd::port::policy::Policy;

use super::common::packet::ethernet;
use super::port::Port;
use super::segments::flows;

const EGRESS: &str = "hscc_egress";
const MARK_BYTES: u32 = 10_000;

/// A port whose queue is as long as marking takes.
fn crowded() -> Port {
    let port = Port::new();
    port.configure(|config| config.mark_bytes = MARK_BYTES);
    port.queue(MARK_BYTES);
    port
}

#[test]
fn what_can_be_marked_is_marked_from_that_queue_on() {
    let port = crowded();
    let mut marked = 0;
    for (_, data) in flows() {
        for (ecn, left) in [(0, 0), (1, 3), (2, 3), (3, 3)] {
            let [before, after] = [ecn, left].map(|ecn| data.with(|s| s.ecn = ecn).frame());
            assert_eq!(port.run(EGRESS, &before), after, "ECN {ecn}");
            marked += u64::from(ecn != left);
            assert_eq!(port.counters().ecn_marks, marked);
        }
    }
    // Behind other headers the class is read by other code.
    for data in [
        flows()[0].1.with(|s| s.ip_options = vec![1; 12]),
        flows()[1].1.with(|s| s.extensions = vec![(0, 8)]),
    ] {
        let [before, after] = [2, 3].map(|ecn| data.with(|s| s.ecn = ecn).frame());
        assert_eq!(port.run(EGRESS, &before), after);
        marked += 1;
    }
    let data = flows()[0].1.with(|s| s.ecn = 2);
    port.queue(MARK_BYTES - 1);
    assert_eq!(port.run(EGRESS, &data.frame()), data.frame());
    port.configure(|config| config.mark_bytes = 0);
    assert_eq!(port.run(EGRESS, &data.frame()), data.frame());
    assert_eq!(port.counters().ecn_marks, marked);
}

#[test]
fn what_is_left_alone_is_not_marked() {
    let port = crowded();
    let data = flows()[0].1.with(|s| s.ecn = 2);
    let is_marked = || port.run(EGRESS, &data.frame()) != data.frame();
    let tagged = ethernet(data.source, &[(0x8100, 5)], &data.ip());
    assert_eq!(
        port.run(EGRESS, &tagged),
        tagged,
        "the tag would be written to"
    );
    assert_eq!(port.run("observe_egress", &data.frame()), data.frame());
    assert!(is_marked());
    let policy = |rule: &str| Policy {
        exclude: vec![rule.parse().unwrap()],
        include: Vec::new(),
        canary: None,
    };
    for (number, rule, expected) in [(1, "tcp:80", false), (2, "tcp:81", true)] {
        port.control(&policy(rule), number);
        port.configure(|config| (config.policy, config.mark_bytes) = (number, MARK_BYTES));
        assert_eq!(is_marked(), expected, "{rule}");
    }
    port.configure(|config| config.mark_bytes = MARK_BYTES);
    port.beat(1);
    assert!(!is_marked(), "stale");
}

/// The sum of several queues is read for all CPUs; what one has seen last is older.
#[test]
fn a_millisecond_that_is_over_leaves_the_sum_of_several_queues() {
    let port = Port::new();
    port.queue(700);
    port.change_stats(|stats| {
        (stats.sample.end_ns, stats.sample.queue_last) = (7_000_000, 300);
    });
    port.run(EGRESS, &flows()[0].1.frame());
    assert_eq!(port.state().queue_bytes, 700);
}

/// What a packet found is that of the millisecond: the longest, and the last.
#[test]
fn the_longest_queue_of_a_millisecond_is_kept() {
    let port = Port::new();
    let data = flows()[0].1.frame();
    let cpus = || {
        let all = port.stats_of_cpus();
        let samples = all.iter().map(|cpu| cpu.sample);
        samples.fold((0, 0), |(longest, sum), it| {
            (longest.max(it.queue_max), sum + it.queue_last)
        })
    };
    for (bytes, longest) in [(700, 700), (300, 700), (900, 900)] {
        port.change_stats(|stats| stats.sample.queue_last = 0);
        port.queue(bytes);
        port.run(EGRESS, &data);
        assert_eq!(cpus(), (longest, bytes));
    }
}
