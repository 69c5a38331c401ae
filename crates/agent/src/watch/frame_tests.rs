// SPDX-License-Identifier: Apache-2.0
use super::*;

fn view(interface: &str) -> View {
    View {
        interface: interface.to_owned(),
        scheme: "fairq".to_owned(),
        attached: true,
        acting: true,
        paused: false,
        resumes_in_s: None,
        blind: Vec::new(),
        heartbeat_age_s: 0.1,
        buffer_bytes: 131_072,
        peaks_bytes: (0..60).map(|column| column * 2_000).collect(),
        peaks_span_s: 6.0,
        flows: 32,
        window_bytes: Some(2_920),
        credit: None,
        rates: [
            ("egress_bytes", 199.6e6 / 8.0),
            ("flows_begun", 1_240.0),
            ("acks", 12_430.0),
            ("acks_rewritten", 12_000.0),
            ("acks_floored", 360.0),
            ("ecn_marks", 0.0),
            ("drops", 118.0),
            ("timeouts_seen", 4.0),
        ]
        .map(|(name, rate)| (name.to_owned(), rate))
        .into(),
    }
}

#[test]
fn a_port_takes_four_lines_of_80_columns() {
    let mut busy = view("a-name-of-15-ch");
    busy.flows = 65_535;
    busy.scheme = "hscc".to_owned();
    busy.acting = false;
    let text = plain(&[busy, view("eth1")]);
    assert_eq!(text.lines().count(), 2 * PORT_LINES, "{text}");
    let widest = text.lines().map(|line| line.chars().count()).max();
    assert!(widest <= Some(80), "{widest:?}\n{text}");
    let title = "  eth1            fairq        acting, window 2.9 kB\n";
    assert!(text.contains(title), "{text}");
    assert!(
        text.contains("PASSING: heartbeat stale, no agent runs"),
        "{text}"
    );
    let queue = "  queue 90 % of 131 kB, 200 Mb/s, drops 118/s, timeouts 4/s, marks 0/s\n";
    assert!(text.contains(queue), "{text}");
    let flows = "  flows 32 (+1.2k/s), ACKs 12.4k/s, rewritten 12k/s (97 %), floored 3 %\n";
    assert!(text.contains(flows), "{text}");
}

#[test]
fn a_port_with_credit_shows_who_holds_it_and_who_waits() {
    let mut port = view("eth1");
    port.scheme = "grant".to_owned();
    port.flows = 65_535;
    port.credit = Some(crate::attach::grant::Status {
        side: "receiver",
        rate_bps: 200_000_000,
        outstanding_bytes: 27_000,
        waiting: 12_480,
        active: 16,
        short_openers: 1.0,
        waits: vec![0; 16],
        sizes: vec![0; 16],
        counters: Default::default(),
    });
    port.rates.insert("grants".to_owned(), 12_430.0);
    let text = plain(&[port]);
    assert!(text.contains("acting as receiver, 200 Mb/s\n"), "{text}");
    let flows = "  flows 65,535 (+1.2k/s), 16 hold 27 kB, 12,480 wait, 12.4k grants/s, 0 resent\n";
    assert!(text.contains(flows), "{text}");
    let widest = text.lines().map(|line| line.chars().count()).max();
    assert!(widest <= Some(80), "{widest:?}\n{text}");
}

#[test]
fn why_packets_pass_is_shown() {
    let mut port = view("eth1");
    port.acting = false;
    port.paused = true;
    assert_eq!(port.standing(), "PASSING: paused until penstockd resume");
    port.resumes_in_s = Some(41.7);
    assert_eq!(port.standing(), "PASSING: paused for 42 s more");
    port.blind = vec!["egress", "ingress"];
    let blind = "BLIND at egress and ingress: packets pass unseen";
    assert_eq!(port.standing(), blind);
    let text = plain(&[port]);
    let title = text.lines().next().unwrap();
    assert!(
        title.ends_with(blind) && title.chars().count() <= 80,
        "{title}"
    );
}

#[test]
fn the_port_chosen_is_always_on_the_screen() {
    let views: Vec<View> = (0..12).map(|port| view(&format!("eth{port}"))).collect();
    for selected in 0..12 {
        let choice = Choice {
            selected,
            ..Choice::default()
        };
        let text = frame(&views, &[], choice, 24);
        assert!(text.lines.len() <= 24);
        let shown = text.to_string();
        assert!(shown.contains(&format!("> eth{selected} ")), "{shown}");
    }
}

#[test]
fn colours_are_left_out_where_not_wanted() {
    let coloured = |has_colour| {
        let choice = Choice {
            has_colour,
            ..Choice::default()
        };
        let text = frame(&[view("eth1")], &[], choice, 24);
        text.lines
            .iter()
            .flat_map(|line| &line.spans)
            .any(|span| span.style.fg.is_some())
    };
    assert!(coloured(true) && !coloured(false));
}

#[test]
fn without_a_port_it_shows_what_to_do() {
    let text = frame(&[], &[], Choice::default(), 24).to_string();
    assert!(text.contains("penstockd attach"), "{text}");
}

#[test]
fn a_port_that_cannot_be_read_is_shown_with_the_reason() {
    let broken = Unreadable {
        interface: "eth2".to_owned(),
        error: "no map".to_owned(),
    };
    let text = frame(
        &[view("eth1")],
        std::slice::from_ref(&broken),
        Choice::default(),
        24,
    )
    .to_string();
    assert!(text.contains("eth2: cannot be read: no map\n"), "{text}");
    let alone = frame(&[], &[broken], Choice::default(), 24).to_string();
    assert!(!alone.contains("No port"), "{alone}");
}

#[test]
fn what_is_not_known_is_not_shown_as_none() {
    let mut port = view("eth1");
    port.rates.shift_remove("drops");
    assert!(port.queue().contains("drops ?/s"), "{}", port.queue());
    port.window_bytes = Some(0);
    assert_eq!(port.standing(), "acting, window at the floor");
    port.peaks_span_s = 12.0;
    assert!(plain(&[port]).contains("| 12 s\n"));
}
