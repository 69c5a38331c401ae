// SPDX-License-Identifier: Apache-2.0
use super::*;
use crate::observe::bursts::MILLISECOND_NS;
use crate::observe::fan_in::tests::transfer;
use crate::observe::verdict::{Assessment, Kind};

/// By scheme, with 0 for the others.
fn would_rewrite<const N: usize>(first: &[u32]) -> [u32; N] {
    std::array::from_fn(|scheme| first.get(scheme).copied().unwrap_or(0))
}

/// A look of 100 ms at a port of 200 Mb/s and 100 kB.
#[allow(
    clippy::needless_update,
    reason = "the struct has padding or not, by the number of schemes"
)]
pub fn look(queues: impl Iterator<Item = (u64, u32)>, transfers: Vec<Transfer>) -> Look {
    let samples = queues.map(|(ms, queue)| Sample {
        time_ns: ms * MILLISECOND_NS,
        cpu: 0,
        packets: 16,
        bytes: 24_000,
        queue_max: queue,
        queue_last: queue,
        drops: 7 + ms as u32 / 10,
        flows: 20,
        flows_begun: 1,
        acks: 10,
        acks_rewritten: 0,
        would_rewrite: would_rewrite(&[0, 8, 5]),
        window_bytes: 65_535,
        ..Sample::default()
    });
    Look {
        interface: "eth1".to_owned(),
        scheme: "observe".to_owned(),
        began_ns: 1_000 * MILLISECOND_NS,
        ended_ns: 1_100 * MILLISECOND_NS,
        line: Line {
            buffer_bytes: 100_000,
            rate_bps: Some(200_000_000),
        },
        samples: samples.collect(),
        transfers,
        timeouts_seen: 0,
        unreadable: 0,
        blind: Vec::new(),
    }
}

fn incast() -> Look {
    let queue = |ms: u64| {
        if (20..30).contains(&(ms % 50)) {
            97_000
        } else {
            2_000
        }
    };
    let at = |source: u8| transfer(source, 1_021, 1_029, 11_500);
    look(
        (1_000..1_100).map(|ms| (ms, queue(ms))),
        (1..=32).map(at).collect(),
    )
}

fn assess(look: &Look) -> Assessment {
    Assessment::of(Report::of(look))
}

#[test]
fn what_the_programs_did_not_see_is_not_called_idle() {
    let blind = Look {
        blind: vec!["egress"],
        samples: Vec::new(),
        ..incast()
    };
    let assessment = assess(&blind);
    assert_eq!(assessment.kind, Kind::Blind);
    let verdict = assessment.verdict;
    assert!(
        verdict.starts_with("blind at egress: in 100 ms packets pass"),
        "{verdict}"
    );
}

#[test]
fn an_incast_is_called_so_with_its_proof() {
    let assessment = assess(&incast());
    assert_eq!(assessment.kind, Kind::Incast);
    let others = scheme_names().skip(3);
    let others: String = others.map(|name| format!(", {name} 0 %")).collect();
    assert_eq!(
        assessment.verdict,
        format!(
            "incast: 2 bursts in 100 ms (longest 10 ms), 32 flows at once, queue up to 97 % of \
             100 kB, 9 drops; fairq would have rewritten 80 %, hscc 50 %{others} of the ACKs"
        )
    );
    let report = assessment.report;
    assert_eq!(report.queue_bytes.p50, 2_000);
    assert_eq!(report.histogram[9].milliseconds, 20);
    let burst = report.bursts[0];
    assert_eq!(burst.start_ns, 20 * MILLISECOND_NS);
    assert_eq!((burst.flows, report.bursts[1].flows), (32, 0));
    // 100 kB at 200 Mb/s.
    assert_eq!(incast().line.hold_ns(), 4 * MILLISECOND_NS);
    assert_eq!(report.timeline_bytes.len(), 60);
    assert_eq!(report.timeline_bytes[12], 97_000);
}

#[test]
fn the_acting_scheme_is_named_with_what_it_did() {
    let mut look = incast();
    look.scheme = "fairq".to_owned();
    look.samples
        .iter_mut()
        .for_each(|sample| sample.acks_rewritten = 9);
    assert!(
        assess(&look)
            .verdict
            .ends_with("; fairq rewrote 90 % of the ACKs")
    );
}

#[test]
fn few_flows_with_a_full_queue_are_no_incast() {
    let elephants = vec![
        transfer(1, 1_000, 1_100, 1_000_000),
        transfer(2, 1_000, 1_100, 900_000),
    ];
    let report = assess(&look((1_000..1_100).map(|ms| (ms, 60_000)), elephants));
    assert_eq!(report.kind, Kind::StandingQueue);
    let short = look(
        (1_000..1_100).map(|ms| (ms, if ms == 1_005 { 60_000 } else { 0 })),
        vec![],
    );
    let mut short = short;
    short.samples.iter_mut().for_each(|sample| sample.flows = 3);
    assert_eq!(assess(&short).kind, Kind::Bursts);
}

#[test]
fn calm_idle_and_unexplained_drops_are_distinguished() {
    let mut calm = look((1_000..1_100).map(|ms| (ms, 3_000)), vec![]);
    assert_eq!(assess(&calm).kind, Kind::Drops);
    calm.samples.iter_mut().for_each(|sample| sample.drops = 0);
    let report = assess(&calm);
    assert_eq!(report.kind, Kind::Calm);
    assert!(
        report
            .verdict
            .starts_with("calm: in 100 ms the queue reached 3 % of 100 kB")
    );
    let idle = assess(&look(std::iter::empty(), vec![]));
    assert_eq!(idle.verdict, "idle: nothing left by eth1 in 100 ms");
}

#[test]
fn timeouts_are_in_the_verdict() {
    let mut look = incast();
    look.timeouts_seen = 3;
    assert!(
        assess(&look)
            .verdict
            .contains(", 9 drops, 3 timeouts; fairq would")
    );
}

#[test]
fn a_share_is_never_above_all() {
    let mut look = incast();
    look.samples
        .iter_mut()
        .for_each(|sample| sample.would_rewrite[1] = 11);
    let report = Report::of(&look);
    assert_eq!(report.acks_would_rewrite["fairq"], report.acks);
    assert_eq!(report.acks_would_rewrite["hscc"], report.acks / 2);
}

#[test]
fn the_text_has_all_of_it_within_100_columns() {
    let text = crate::observe::text::render(&assess(&incast()));
    assert!(text.starts_with("incast: 2 bursts"), "{text}");
    assert!(
        text.contains("port      eth1, 200 Mb/s, buffer 100 kB, scheme observe"),
        "{text}"
    );
    assert!(
        text.contains("   90 - 100 %      20 % ##########\n"),
        "{text}"
    );
    assert!(
        text.contains("  0.020 s    10 ms    97 kB   240 kB     32     10"),
        "{text}"
    );
    let lines = text.lines().skip(1);
    let widest = lines.map(|line| line.chars().count()).max().unwrap();
    assert!(widest <= 100, "{widest}\n{text}");
}
