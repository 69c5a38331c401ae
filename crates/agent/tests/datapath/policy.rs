// SPDX-License-Identifier: Apache-2.0
//! Which flows are left alone, to the byte.

use penstockd::port::policy::Policy;

use super::common::packet::{Segment, ethernet, vxlan};
use super::control::PORT_DROPS;
use super::port::{NEXT, Port};
use super::segments::{ack, flows, open, syn, syn_ack};

fn policy(exclude: &[&str], include: &[&str], canary: Option<f64>) -> Policy {
    let rules = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
    Policy {
        exclude: rules(exclude),
        include: rules(include),
        canary,
    }
}

/// Whether the ACKs of a flow that opened under a policy are lowered. Its packets are otherwise
/// untouched, and its flow is counted all the same.
fn is_controlled(port: &Port, policy: &Policy, data: &Segment, mark: u32) -> bool {
    port.forget();
    let counted = || [port.counters().acks_rewritten, port.passed("excluded")];
    let before = counted();
    // A number that the entries of other flows have not.
    port.control(policy, 1 + (before[0] + before[1]) as u32 / 2);
    port.run_marked("hscc_egress", &syn(data).frame(), mark);
    port.run("hscc_ingress", &syn_ack(data).frame());
    port.run_marked("hscc_egress", &data.frame(), mark);
    let ack = ack(data).frame();
    let is_lowered = port.run("hscc_ingress", &ack) != ack;
    assert_eq!(port.state().flows, 1);
    // The SYN-ACK, too: a flow is on one side all its life.
    let after = counted();
    let [rewritten, excluded] = [0, 1].map(|i| after[i] - before[i]);
    assert_eq!(
        (rewritten, excluded),
        if is_lowered { (2, 0) } else { (0, 2) }
    );
    is_lowered
}

#[test]
fn rules_choose_flows_by_what_they_match() {
    let port = Port::new();
    let [(_, four), (_, six)] = flows();
    let marked = four.with(|s| s.dscp = 46);
    let all: [(&str, &Segment, u32, bool); 19] = [
        ("10.0.0.0/8", &four, 0, true),
        ("10.0.0.1", &four, 0, true),
        ("10.0.0.2/32", &four, 0, true),
        ("10.0.0.4/30", &four, 0, false),
        ("0.0.0.0/0", &four, 0, true),
        ("::/0", &four, 0, false),
        ("0.0.0.0/0", &six, 0, false),
        ("fd00::/64", &six, 0, true),
        ("fd00::2", &six, 0, true),
        ("fd00::3", &six, 0, false),
        ("tcp:80", &four, 0, true),
        ("tcp:40000-40001", &six, 0, true),
        ("tcp:81-39999", &four, 0, false),
        ("dscp:46", &marked, 0, true),
        ("dscp:46", &six.with(|s| s.dscp = 46), 0, true),
        ("dscp:45", &marked, 0, false),
        ("mark:0x10/0xf0", &four, 0x1f, true),
        ("mark:0x10", &four, 0x1f, false),
        ("mark:0x10/0xf0", &four, 0x2f, false),
    ];
    for (rule, data, mark, matches) in all {
        let excluded = policy(&[rule], &[], None);
        assert_eq!(
            is_controlled(&port, &excluded, data, mark),
            !matches,
            "exclude {rule}"
        );
        let included = policy(&["tcp:1"], &["tcp:2", rule], None);
        assert_eq!(
            is_controlled(&port, &included, data, mark),
            matches,
            "include {rule}"
        );
    }
    let both = policy(&["tcp:80"], &["10.0.0.0/8"], None);
    assert!(
        !is_controlled(&port, &both, &four, 0),
        "exclude goes before include"
    );
    // The last of as many as there is room for counts as the first.
    let others: Vec<String> = (1..32).map(|port| format!("tcp:{port}")).collect();
    let mut rules: Vec<&str> = others.iter().map(String::as_str).collect();
    assert!(is_controlled(&port, &policy(&rules, &[], None), &four, 0));
    rules.push("tcp:80");
    assert!(!is_controlled(&port, &policy(&rules, &[], None), &four, 0));
}

/// However many treatments a port has for it: an early drop, a priority, a mark.
#[test]
fn a_packet_that_is_left_alone_counts_once() {
    let data = Segment::new("10.0.0.1", "10.0.0.2").with(|s| (s.ecn, s.payload) = (2, 1000));
    let pure_ack = data.with(|s| s.payload = 0);
    let port = Port::new();
    port.queue(10_000);
    for (number, rules, reason) in [
        (1, policy(&["tcp:80"], &[], None), "excluded"),
        (2, policy(&[], &[], Some(0.0)), "held_out"),
    ] {
        port.control(&rules, number);
        port.configure(|config| {
            config.policy = number;
            config.mark_bytes = 1;
            config.control_priority = 7;
            config.schemes.hscc.sigma_bytes = 100;
            config.flags = PORT_DROPS;
        });
        for (passed, packet) in (1..).zip([&data, &pure_ack]) {
            assert_eq!(
                port.outcome("hscc_egress", &packet.frame()),
                (NEXT, 0, packet.frame())
            );
            assert_eq!(port.passed(reason), passed);
        }
    }
}

/// The addresses inside a tunnel are the connection's; those outside belong to the hosts.
#[test]
fn a_tunnel_is_judged_by_the_addresses_inside() {
    let (_, data) = flows().into_iter().next().unwrap();
    let outer = Segment::new("192.0.2.1", "192.0.2.2");
    let wrap = |s: &Segment| ethernet(outer.source, &[], &vxlan(&outer, 4789, 9, true, &s.frame()));
    let port = Port::new();
    for (number, (rule, is_excluded)) in (1..).zip([("10.0.0.0/8", true), ("192.0.2.0/24", false)])
    {
        port.forget();
        port.control(&policy(&[rule], &[], None), number);
        port.run("hscc_egress", &wrap(&syn(&data)));
        port.run("hscc_ingress", &wrap(&syn_ack(&data)));
        port.run("hscc_egress", &wrap(&data));
        let ack = wrap(&ack(&data));
        assert_eq!(port.run("hscc_ingress", &ack) == ack, is_excluded, "{rule}");
    }
}

/// An ACK has neither the DSCP nor the mark of the data: before that, nothing is known.
#[test]
fn each_packet_that_leaves_judges_its_flow_again() {
    let (_, data) = flows().into_iter().next().unwrap();
    let port = Port::new();
    open(&port, "hscc", &data);
    let ack = ack(&data).frame();
    let is_lowered = || port.run("hscc_ingress", &ack) != ack;
    port.configure(|config| config.window.first_acks = 255);
    assert!(is_lowered());
    port.control(&policy(&["dscp:46"], &[], None), 1);
    assert!(!is_lowered(), "it may have that DSCP");
    port.run("hscc_egress", &data.frame());
    assert!(is_lowered());
    port.run("hscc_egress", &data.with(|s| s.dscp = 46).frame());
    assert!(!is_lowered());
    port.control(&policy(&["tcp:81"], &[], None), 2);
    assert!(is_lowered(), "by the new rules at once");
    port.control(&policy(&["tcp:80"], &[], None), 3);
    assert!(!is_lowered());
    port.configure(|config| config.window.first_acks = 255);
    assert!(is_lowered());
}

#[test]
fn a_canary_is_a_share_of_flows_and_each_stays_on_its_side() {
    const FLOWS: u16 = 400;
    let port = Port::new();
    let flow = |i: u16| {
        let data = Segment::new("10.0.0.1", "10.0.0.2");
        data.with(|s| (s.source_port, s.payload) = (1000 + i, 100))
    };
    port.control(&policy(&[], &[], Some(0.25)), 1);
    for i in 0..FLOWS {
        open(&port, "hscc", &flow(i));
    }
    let lowered = || -> Vec<u16> {
        let is_lowered = |i: &u16| {
            let ack = ack(&flow(*i)).frame();
            port.run("hscc_ingress", &ack) != ack
        };
        (0..FLOWS).filter(is_lowered).collect()
    };
    let quarter = lowered();
    assert!((60..=140).contains(&quarter.len()), "{}", quarter.len());
    assert_eq!(lowered(), quarter);
    let sides = port.sides();
    let controlled = quarter.len() as u64;
    let held_out = u64::from(FLOWS) - controlled;
    // For each flow three ACKs, of which the first is the SYN-ACK.
    assert_eq!(sides[0].acks, 3 * controlled);
    assert_eq!(sides[1].acks, 3 * held_out);
    assert_eq!(sides[0].acks_rewritten, 3 * controlled);
    assert_eq!(
        (sides[1].acks_rewritten, port.passed("held_out")),
        (0, 3 * held_out)
    );
    let packet = flow(0).frame().len() as u64;
    let opened = sides[1].egress_bytes - held_out * syn(&flow(0)).frame().len() as u64;
    assert_eq!(opened, held_out * packet);
    // The same data again.
    for i in 0..FLOWS {
        port.run("hscc_egress", &flow(i).frame());
    }
    let repeated = port.sides().map(|side| side.repeated_bytes);
    assert_eq!(repeated, [100 * controlled, 100 * held_out]);
    assert_eq!(port.counters().repeated_bytes, 100 * u64::from(FLOWS));
    // A sweep counts how long flows were counted.
    port.sweep();
    std::thread::sleep(std::time::Duration::from_millis(50));
    port.sweep();
    let ms = port.sides().map(|side| side.flow_ms);
    assert!(ms[0] >= 50 * controlled, "{ms:?}");
    assert_eq!(
        ms[0] / controlled,
        ms[1] / held_out,
        "the same time for all"
    );
    // A larger canary contains the smaller.
    port.control(&policy(&[], &[], Some(0.5)), 2);
    let half = lowered();
    assert!((140..=260).contains(&half.len()), "{}", half.len());
    assert!(quarter.iter().all(|flow| half.contains(flow)));
    port.control(&policy(&[], &[], Some(1.0)), 3);
    assert_eq!(lowered().len(), usize::from(FLOWS));
}
