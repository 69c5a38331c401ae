// SPDX-License-Identifier: Apache-2.0
//! What becomes of an ACK, by its headers and the state of its port.

use super::common::packet::{ACK, RST, Segment, ethernet, geneve, vxlan};
use super::port::Port;
use super::segments::{SCALE, ack, flows, open, syn, syn_ack};

/// HSCC's first ACKs get two segments of 1460 bytes, rounded up to the scale.
const WINDOW: u16 = 23;

type Wrap = Box<dyn Fn(&Segment) -> Vec<u8>>;

fn tagged(tags: &'static [(u16, u16)]) -> Wrap {
    Box::new(move |s| ethernet(s.source, tags, &s.ip()))
}

fn stacks() -> Vec<(&'static str, &'static str, Wrap)> {
    let outer4 = Segment::new("192.0.2.1", "192.0.2.2");
    let outer6 = Segment::new("fd01::1", "fd01::2");
    let (a, b, c, d) = (outer4.clone(), outer4.clone(), outer4, outer6);
    vec![
        ("plain", "", Box::new(Segment::frame)),
        (
            "IPv4 options",
            "4",
            Box::new(|s| s.with(|s| s.ip_options = vec![1; 12]).frame()),
        ),
        (
            "IPv4 options, all",
            "4",
            Box::new(|s| s.with(|s| s.ip_options = vec![1; 40]).frame()),
        ),
        (
            "hop-by-hop, destination",
            "6",
            Box::new(|s| s.with(|s| s.extensions = vec![(0, 8), (60, 24)]).frame()),
        ),
        (
            "TCP options",
            "",
            Box::new(|s| {
                let options = [s.options.clone(), vec![1; 12]].concat();
                s.with(|s| s.options = options).frame()
            }),
        ),
        (
            "data in the ACK",
            "",
            Box::new(|s| s.with(|s| s.payload = 301).frame()),
        ),
        ("VLAN", "", tagged(&[(0x8100, 5)])),
        ("QinQ", "", tagged(&[(0x88a8, 5), (0x8100, 6)])),
        (
            "VXLAN",
            "",
            Box::new(move |s| ethernet(a.source, &[], &vxlan(&a, 4789, 9, false, &s.frame()))),
        ),
        (
            "VXLAN on 8472, summed",
            "",
            Box::new(move |s| ethernet(b.source, &[], &vxlan(&b, 8472, 9, true, &s.frame()))),
        ),
        (
            "Geneve, options, summed",
            "",
            Box::new(move |s| {
                ethernet(
                    c.source,
                    &[(0x8100, 3)],
                    &geneve(&c, 9, 24, true, &s.frame()),
                )
            }),
        ),
        (
            "VXLAN over IPv6, summed",
            "",
            Box::new(move |s| ethernet(d.source, &[], &vxlan(&d, 4789, 9, true, &s.frame()))),
        ),
    ]
}

#[test]
fn every_stack_of_headers_is_rewritten() {
    let port = Port::new();
    let mut number = 0;
    for (name, version, wrap) in stacks() {
        for (family, data) in flows()
            .into_iter()
            .filter(|(family, _)| version.is_empty() || version == *family)
        {
            number += 1;
            let data = data.with(|s| s.source_port = number);
            let what = format!("{name}, IPv{family}");
            let answer = syn_ack(&data);
            port.run("hscc_egress", &wrap(&syn(&data)));
            let got = port.run("hscc_ingress", &wrap(&answer));
            let lowered = wrap(&answer.with(|s| s.window = 2920));
            assert_eq!(got, lowered, "{what}: SYN-ACK");
            let flows = u32::from(number);
            assert_eq!(port.state().flows, flows - 1, "{what}: half-open");
            port.run("hscc_egress", &wrap(&data));
            let ack = ack(&data);
            let got = port.run("hscc_ingress", &wrap(&ack));
            let lowered = wrap(&ack.with(|s| s.window = WINDOW));
            assert_eq!(got, lowered, "{what}: ACK");
            assert_eq!(port.state().flows, flows, "{what}");
            let rewritten = port.counters().acks_rewritten;
            assert_eq!(rewritten, 2 * u64::from(flows), "{what}");
        }
    }
}

#[test]
fn what_must_pass_passes() {
    let (_, data) = flows().into_iter().next().unwrap();
    let port = Port::new();
    open(&port, "hscc", &data);
    let ack = ack(&data);
    let fragment = {
        let mut frame = ack.frame();
        frame[20] = 0x20;
        frame
    };
    let mut kept = vec![
        ack.with(|s| s.flags = RST).frame(),
        ack.with(|s| s.flags = RST | ACK).frame(),
        ack.with(|s| s.window = 0).frame(),
        ack.with(|s| s.window = WINDOW).frame(),
        ack.with(|s| s.source_port = 81).frame(),
        ethernet(ack.source, &[], &vxlan(&ack, 4790, 9, false, &ack.frame())),
        fragment,
    ];
    // Cut short; the kernel itself refuses test packets without a whole IP header.
    kept.extend((34..54).map(|length| ack.frame()[..length].to_vec()));
    for packet in kept {
        assert_eq!(port.run("hscc_ingress", &packet), packet);
        assert_eq!(port.run("hscc_egress", &packet), packet);
    }
    let data = data.with(|s| s.payload = 1448).frame();
    assert_eq!(port.run("hscc_egress", &data), data);
}

/// The datagram of a tunnel ends before the packet inside, which gives no length of its own.
#[test]
fn a_packet_inside_does_not_begin_after_its_tunnel() {
    let port = Port::new();
    let outer = Segment::new("192.0.2.1", "192.0.2.2");
    let [udp_length, inside] = [20 + 4, 20 + 8 + 8 + 14];
    for (length, (_, data)) in [2, 4].into_iter().zip(flows()) {
        let mut packet = vxlan(&outer, 4789, 9, false, &data.frame());
        packet[udp_length..][..2].copy_from_slice(&16_u16.to_be_bytes());
        packet[inside + length..][..2].fill(0);
        port.run("hscc_egress", &ethernet(outer.source, &[], &packet));
    }
    assert_eq!(port.passed("truncated"), 2);
}

/// A digest covers the window (RFC 2385 §2, RFC 5925 §5.1).
#[test]
fn authenticated_segments_pass() {
    let (_, data) = flows().into_iter().next().unwrap();
    let timestamps = [vec![1, 1, 8, 10], vec![7; 8]].concat();
    let with = |options: &[u8]| ack(&data).with(|s| s.options = options.to_vec()).frame();
    let port = Port::new();
    open(&port, "hscc", &data);
    for digest in [[1, 1, 19, 18], [1, 1, 29, 18]] {
        let digest = [digest.to_vec(), vec![9; 16]].concat();
        let signed = with(&[timestamps.clone(), digest.clone()].concat());
        assert_eq!(port.run("hscc_ingress", &signed), signed);
        let signed = with(&digest);
        assert_eq!(port.run("hscc_ingress", &signed), signed);
    }
    assert_eq!(port.counters().passed[7], 4, "authenticated");
    let port = Port::new();
    open(&port, "hscc", &data);
    let plain = with(&timestamps);
    assert_ne!(port.run("hscc_ingress", &plain), plain);
}

/// Shims offer one scale for all, but a receiver may have none (RFC 7323 §2.2).
#[test]
fn a_receiver_without_scaling_keeps_its_bytes() {
    let (_, data) = flows().into_iter().next().unwrap();
    let port = Port::new();
    port.configure(|config| {
        config.window.wscale_source = 3;
        config.window.network_wscale = 7;
    });
    port.run("hscc_egress", &syn(&data).frame());
    let answer = syn_ack(&data).with(|s| s.options = vec![2, 4, 5, 180]);
    port.run("hscc_ingress", &answer.frame());
    port.run("hscc_egress", &data.frame());
    let ack = ack(&data);
    let got = port.run("hscc_ingress", &ack.frame());
    assert_eq!(got, ack.with(|s| s.window = 2920).frame());
}

/// A SYN with another scale, or three NOPs for the option, at either end of the options.
fn with_scale(syn: &Segment, scale: Option<u8>, is_shifted: bool) -> Segment {
    let option = scale.map_or([1; 3], |scale| [3, 3, scale]);
    let options = match is_shifted {
        true => [&option[..], &[1, 2, 4, 5, 180]].concat(),
        false => [&[2, 4, 5, 180, 1], &option[..]].concat(),
    };
    syn.with(|s| s.options = options)
}

/// FairQ §III-B: the switch itself strips or unifies the scale, in SYNs of both directions.
#[test]
fn a_port_strips_or_lowers_what_syns_offer() {
    let port = Port::new();
    let mut number = 1000;
    for (source, offered, left) in [
        (4, Some(10), None),
        (4, None, None),
        (5, Some(10), Some(7)),
        (5, Some(3), Some(3)),
        (5, Some(254), Some(7)), // read as 14 (RFC 7323 §2.3)
        (4, Some(254), None),
        (0, Some(10), Some(10)),
        (3, Some(10), Some(10)),
    ] {
        for (_, flow) in flows() {
            for is_shifted in [false, true] {
                number += 1;
                let data = flow.with(|s| s.source_port = number);
                port.configure(|config| {
                    config.window.wscale_source = source;
                    config.window.network_wscale = 7;
                });
                let syn = |scale| with_scale(&syn(&data), scale, is_shifted).frame();
                let answer = |scale| with_scale(&syn_ack(&data), scale, is_shifted);
                let got = port.run("hscc_egress", &syn(offered));
                assert_eq!(got, syn(left), "source {source}");
                // It answers to an option that took another path.
                let answered = if source == 4 { offered } else { left };
                let got = port.run("hscc_ingress", &answer(offered).frame());
                let expected = answer(answered).with(|s| s.window = 2920).frame();
                assert_eq!(got, expected, "source {source}");
                // What was left is the scale of the flow.
                port.run("hscc_egress", &data.frame());
                let ack = ack(&data);
                let scale = left.unwrap_or(0);
                let window = (2920_u32.div_ceil(1 << scale)) as u16;
                let got = port.run("hscc_ingress", &ack.frame());
                assert_eq!(got, ack.with(|s| s.window = window).frame(), "{source}");
            }
        }
    }
}

#[test]
fn a_port_that_does_not_act_leaves_syns_as_they_are() {
    let (_, data) = flows().into_iter().next().unwrap();
    let port = Port::new();
    port.configure(|config| config.window.wscale_source = 4);
    let signed = syn(&data).with(|s| {
        s.options = [vec![3, 3, 7, 1, 19, 18], vec![9; 16], vec![1, 1]].concat();
    });
    assert_eq!(port.run("hscc_egress", &signed.frame()), signed.frame());
    assert_eq!(port.counters().passed[7], 1, "authenticated");
    let plain = syn(&data).frame();
    let outer = Segment::new("192.0.2.1", "192.0.2.2");
    let inside = ethernet(outer.source, &[], &vxlan(&outer, 4789, 9, true, &plain));
    assert_eq!(port.run("hscc_egress", &inside), inside, "in a tunnel");
    let reset = syn(&data).with(|s| s.flags |= RST).frame();
    assert_eq!(port.run("hscc_egress", &reset), reset, "RST");
    assert_eq!(port.run("observe_egress", &plain), plain);
    port.beat(1);
    assert_eq!(port.run("hscc_egress", &plain), plain, "stale");
}

/// The papers' deployment: what the shim at the far end put into the reserved bits is read here, and
/// cleared, as no shim does so at the sender. The checksum is that without them.
#[test]
fn the_last_port_clears_the_reserved_bits() {
    let bits = |frame: &[u8]| frame[34 + 12] & 0xf;
    let (_, data) = flows().into_iter().next().unwrap();
    let port = Port::new();
    for (clears, agent_beats) in [(false, true), (true, true), (true, false)] {
        port.configure(|config| {
            config.window.wscale_source = 1;
            config.window.clears_bits = clears.into();
        });
        open(&port, "hscc", &data);
        if !agent_beats {
            port.beat(1);
        }
        let plain = ack(&data).frame();
        let mut carried = plain.clone();
        carried[34 + 12] |= SCALE;
        let got = port.run("hscc_ingress", &carried);
        assert_eq!(bits(&got), if clears { 0 } else { SCALE });
        let mut expected = match agent_beats {
            true => ack(&data).with(|s| s.window = WINDOW).frame(),
            false => plain,
        };
        expected[34 + 12] |= bits(&got);
        assert_eq!(got, expected);
        assert_eq!(port.run("observe_ingress", &carried), carried);
    }
}

const MS: u64 = 1_000_000;

/// What a test run gets that takes less than 2 ms from `now` on, so that it falls into the step meant:
/// this thread may have to wait for others.
fn promptly<T>(attempt: impl Fn(u64) -> T) -> T {
    loop {
        let now = penstockd::host::clock::monotonic_ns();
        let got = attempt(now);
        if penstockd::host::clock::monotonic_ns() < now + 2 * MS {
            return got;
        }
    }
}

/// What a port held opens in steps, or all senders would burst at once: paused, stale, detached.
#[test]
fn windows_open_in_steps() {
    let (_, data) = flows().into_iter().next().unwrap();
    let port = Port::new();
    open(&port, "hscc", &data);
    let ack = ack(&data).frame();
    let window_at = |ms: u64| {
        promptly(|now| {
            port.configure(|config| {
                (config.pause_ns, config.resume_ns) = (now - ms * MS, u64::MAX);
                config.window.first_acks = 255;
            });
            let got = port.run("hscc_ingress", &ack);
            u16::from_be_bytes([got[48], got[49]])
        })
    };
    // Segments of 1460 bytes at a scale of 7; the first step is the first ACKs' two segments.
    assert_eq!(window_at(0), WINDOW);
    assert_eq!(window_at(12), (8 * 1460 / 128_u16) + 1);
    assert_eq!(window_at(41), 0xffff);
    port.configure(|config| {
        (config.pause_ns, config.resume_ns) = (1, 2);
        config.window.first_acks = 255;
    });
    let got = port.run("hscc_ingress", &ack);
    assert_eq!(
        u16::from_be_bytes([got[48], got[49]]),
        WINDOW,
        "the pause is over"
    );
}

/// Those of an agent that has fallen silent, from the moment at which it counts as dead.
#[test]
fn windows_open_in_steps_when_the_agent_is_silent() {
    const STALE_NS: u64 = 1_000_000_000;
    let (_, data) = flows().into_iter().next().unwrap();
    let port = Port::new();
    open(&port, "hscc", &data);
    port.configure(|config| {
        config.stale_ns = STALE_NS;
        config.window.first_acks = 255;
    });
    let window = promptly(|now| {
        port.beat(now - STALE_NS - 12 * MS);
        let got = port.run("hscc_ingress", &ack(&data).frame());
        u16::from_be_bytes([got[48], got[49]])
    });
    assert_eq!(window, (8 * 1460 / 128_u16) + 1);
}

#[test]
fn a_silent_agent_or_another_abi_lets_all_pass() {
    let (_, data) = flows().into_iter().next().unwrap();
    let port = Port::new();
    open(&port, "hscc", &data);
    let ack = ack(&data).frame();
    port.beat(1);
    assert_eq!(port.run("hscc_ingress", &ack), ack);
    assert_eq!(port.counters().passed[6], 1);
    // By a clock that is ahead (a time namespace): it would be trusted for that long.
    port.beat(penstockd::host::clock::monotonic_ns() + 3_600_000_000_000);
    assert_eq!(port.run("hscc_ingress", &ack), ack);
    assert_eq!(port.counters().passed[6], 2);
    port.beat(penstockd::host::clock::monotonic_ns());
    assert_ne!(port.run("hscc_ingress", &ack), ack);
    port.configure(|config| config.abi.0 += 1);
    assert_eq!(port.run("hscc_ingress", &ack), ack);
}

/// What a receiver offered to another connection does not bind, where its answer was never acknowledged.
#[test]
fn another_handshake_forgets_what_was_offered() {
    let port = Port::new();
    port.configure(|config| config.window.never_shrink = 1);
    let window = |data: &Segment| {
        port.run("hscc_egress", &syn(data).frame());
        let frame = port.run("hscc_ingress", &syn_ack(data).frame());
        u16::from_be_bytes([frame[48], frame[49]])
    };
    let first = Segment::new("10.0.0.1", "10.0.0.2");
    let offered = window(&first);
    assert_eq!(offered, 2 * 1460);
    // Its edge is below that of the first.
    let second = first.with(|s| s.seq = s.seq.wrapping_sub(1000));
    assert_eq!(window(&second), offered);
}

/// With never_shrink, an ACK that acknowledges what was never sent would open the window for all that
/// follow, up to its edge.
#[test]
fn a_forged_ack_offers_nothing() {
    let port = Port::new();
    port.configure(|config| config.window.never_shrink = 1);
    let data = Segment::new("10.0.0.1", "10.0.0.2");
    open(&port, "hscc", &data);
    let expected = ack(&data).with(|s| s.window = WINDOW).frame();
    assert_eq!(port.run("hscc_ingress", &ack(&data).frame()), expected);
    let forged = ack(&data).with(|s| s.ack = s.ack.wrapping_add(1 << 30));
    port.run("hscc_ingress", &forged.frame());
    assert_eq!(port.run("hscc_ingress", &ack(&data).frame()), expected);
}

/// With never_shrink, what a SYN-ACK offered binds the connection from its first ACK on.
#[test]
fn an_offer_outlives_its_handshake() {
    let port = Port::new();
    let set = |segments| {
        port.configure(|config| {
            config.window.never_shrink = 1;
            config.schemes.hscc.first_flight_segments = segments;
        });
    };
    let data = Segment::new("10.0.0.1", "10.0.0.2");
    set(2);
    open(&port, "hscc", &data);
    set(1);
    let expected = ack(&data).with(|s| s.window = WINDOW).frame();
    assert_eq!(port.run("hscc_ingress", &ack(&data).frame()), expected);
}
