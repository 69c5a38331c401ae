// SPDX-License-Identifier: Apache-2.0
//! The programs of a port by BPF_PROG_TEST_RUN: each stack of headers goes in as an ACK with a large
//! window and must come back as the very packet built with the lower one, checksums included.
//! Needs root.

#![allow(clippy::unwrap_used)]

mod common;

use common::packet::{ACK, FIN, RST, SYN, Segment, ethernet, geneve, vxlan};
use libbpf_rs::skel::{OpenSkel, Skel, SkelBuilder};
use libbpf_rs::{MapCore, MapFlags, OpenObject, ProgramInput};
use penstockd::port::vxlan::VxlanPorts;
use penstockd::skel::port::{PortSkel, PortSkelBuilder, types};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd};

const SCALE: u8 = 7;
/// HSCC's first ACKs get two segments of 1460 bytes, rounded up to the scale.
const WINDOW: u16 = 23;
const KEY: [u8; 4] = [0; 4];

struct Port<'o>(PortSkel<'o>);

fn bytes_of<T>(value: &T) -> &[u8] {
    // SAFETY: plain integers.
    unsafe { std::slice::from_raw_parts(std::ptr::from_ref(value).cast(), size_of::<T>()) }
}

impl<'o> Port<'o> {
    fn new(memory: &'o mut MaybeUninit<OpenObject>) -> Port<'o> {
        let skel = PortSkelBuilder::default().open(memory).unwrap();
        let port = Port(
            skel.load()
                .expect("needs root and a kernel of 6.1 or later"),
        );
        port.configure(|_| {});
        port.beat(penstockd::host::clock::monotonic_ns());
        port
    }

    /// HSCC as by default, whose first ACKs are held at any queue; then what the test wants.
    fn configure(&self, change: impl FnOnce(&mut types::port_config)) {
        let mut config = types::port_config {
            abi: penstockd::port::pins::ABI,
            generation: 1,
            stale_ns: 60_000_000_000,
            buffer_bytes: 131_072,
            vxlan_ports: VxlanPorts::default().to_wire(),
            ..Default::default()
        };
        config.window.idle_ns = 60_000_000_000;
        config.window.first_acks = 4;
        config.schemes.fairq.interval_ns = 100_000;
        config.schemes.fairq.buffer_bytes = 131_072;
        config.schemes.fairq.alpha_q16 = 16_384;
        config.schemes.fairq.intervals = 10;
        config.schemes.fairq.mss_bytes = 1460;
        config.schemes.fairq.paths = 1;
        config.schemes.fairq.floor_segments = 1;
        config.schemes.fairq.first_floor_segments = 2;
        config.schemes.hscc.release_interval_ns = 100_000;
        config.schemes.hscc.alpha2_bytes = 32_768;
        config.schemes.hscc.mss_bytes = 1460;
        config.schemes.hscc.floor_segments = 1;
        config.schemes.hscc.first_flight_segments = 2;
        change(&mut config);
        let map = &self.0.maps.config;
        map.update(&KEY, bytes_of(&config), MapFlags::ANY).unwrap();
    }

    fn beat(&self, at_ns: u64) {
        let map = &self.0.maps.heartbeat;
        map.update(&KEY, &at_ns.to_ne_bytes(), MapFlags::ANY)
            .unwrap();
    }

    fn run(&self, program: &str, packet: &[u8]) -> Vec<u8> {
        let mut out = vec![0; packet.len() + 64];
        let object = self.0.object();
        let program = object.progs_mut().find(|p| p.name() == program).unwrap();
        let input = ProgramInput {
            data_in: Some(packet),
            data_out: Some(&mut out),
            ..Default::default()
        };
        let output = program.test_run(input).unwrap();
        assert_eq!(output.return_value as i32, -1, "NEXT is the only verdict");
        output.data.unwrap()[..packet.len()].to_vec()
    }

    fn sweep(&self) {
        let output = self.0.progs.sweep.test_run(ProgramInput::default());
        assert_eq!(output.unwrap().return_value, 0);
    }

    fn state(&self) -> types::port_state {
        let bytes = self
            .0
            .maps
            .port
            .lookup(&KEY, MapFlags::ANY)
            .unwrap()
            .unwrap();
        // SAFETY: plain integers, as long as the map's value.
        unsafe { bytes.as_ptr().cast::<types::port_state>().read_unaligned() }
    }

    fn counters(&self) -> types::port_counters {
        let map = &self.0.maps.counters;
        let cpus = map.lookup_percpu(&KEY, MapFlags::ANY).unwrap().unwrap();
        let mut sum = vec![0_u64; size_of::<types::port_counters>() / 8];
        for cpu in &cpus {
            for (total, word) in sum.iter_mut().zip(cpu.chunks(8)) {
                *total += u64::from_ne_bytes(word.try_into().unwrap());
            }
        }
        // SAFETY: nothing but counters of 64 bits.
        unsafe { sum.as_ptr().cast::<types::port_counters>().read() }
    }
}

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

fn flows() -> [(&'static str, Segment); 2] {
    [
        ("4", Segment::new("10.0.0.1", "10.0.0.2")),
        ("6", Segment::new("fd00::1", "fd00::2")),
    ]
}

fn syn(data: &Segment) -> Segment {
    data.with(|s| {
        (s.flags, s.options) = (SYN, Segment::syn_options(1460, SCALE));
        s.seq = s.seq.wrapping_sub(1);
    })
}

fn syn_ack(data: &Segment) -> Segment {
    syn(&data.reversed()).with(|s| {
        s.flags = SYN | ACK;
        (s.seq, s.ack) = (data.ack.wrapping_sub(1), data.seq);
    })
}

/// The receiver's ACK of all that `data` carries.
fn ack(data: &Segment) -> Segment {
    data.reversed().with(|s| {
        (s.seq, s.ack) = (data.ack, data.seq.wrapping_add(data.payload as u32));
        s.payload = 0;
    })
}

/// The three packets of a handshake.
fn open(port: &Port<'_>, scheme: &str, data: &Segment) {
    let [egress, ingress] = ["egress", "ingress"].map(|side| format!("{scheme}_{side}"));
    port.run(&egress, &syn(data).frame());
    port.run(&ingress, &syn_ack(data).frame());
    port.run(&egress, &data.frame());
}

#[test]
fn every_stack_of_headers_is_rewritten() {
    for (name, version, wrap) in stacks() {
        for (family, data) in flows()
            .into_iter()
            .filter(|(family, _)| version.is_empty() || version == *family)
        {
            let mut memory = MaybeUninit::uninit();
            let port = Port::new(&mut memory);
            let answer = syn_ack(&data);
            port.run("hscc_egress", &wrap(&syn(&data)));
            let got = port.run("hscc_ingress", &wrap(&answer));
            assert_eq!(
                got,
                wrap(&answer.with(|s| s.window = 2920)),
                "{name}, IPv{family}: SYN-ACK"
            );
            assert_eq!(port.state().flows, 0, "{name}, IPv{family}: half-open");
            port.run("hscc_egress", &wrap(&data));
            let ack = ack(&data);
            let got = port.run("hscc_ingress", &wrap(&ack));
            assert_eq!(
                got,
                wrap(&ack.with(|s| s.window = WINDOW)),
                "{name}, IPv{family}: ACK"
            );
            assert_eq!(port.state().flows, 1, "{name}, IPv{family}");
            assert_eq!(port.counters().acks_rewritten, 2, "{name}, IPv{family}");
        }
    }
}

#[test]
fn what_must_pass_passes() {
    let (_, data) = flows().into_iter().next().unwrap();
    let mut memory = MaybeUninit::uninit();
    let port = Port::new(&mut memory);
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

/// A digest covers the window (RFC 2385 §2, RFC 5925 §5.1).
#[test]
fn authenticated_segments_pass() {
    let (_, data) = flows().into_iter().next().unwrap();
    let timestamps = [vec![1, 1, 8, 10], vec![7; 8]].concat();
    let with = |options: &[u8]| ack(&data).with(|s| s.options = options.to_vec()).frame();
    let mut memory = MaybeUninit::uninit();
    let port = Port::new(&mut memory);
    open(&port, "hscc", &data);
    for digest in [[1, 1, 19, 18], [1, 1, 29, 18]] {
        let digest = [digest.to_vec(), vec![9; 16]].concat();
        let signed = with(&[timestamps.clone(), digest.clone()].concat());
        assert_eq!(port.run("hscc_ingress", &signed), signed);
        let signed = with(&digest);
        assert_eq!(port.run("hscc_ingress", &signed), signed);
    }
    assert_eq!(port.counters().passed[7], 4, "authenticated");
    let mut memory = MaybeUninit::uninit();
    let port = Port::new(&mut memory);
    open(&port, "hscc", &data);
    let plain = with(&timestamps);
    assert_ne!(port.run("hscc_ingress", &plain), plain);
}

/// Shims offer one scale for all, but a receiver may have none (RFC 7323 §2.2).
#[test]
fn a_receiver_without_scaling_keeps_its_bytes() {
    let (_, data) = flows().into_iter().next().unwrap();
    let mut memory = MaybeUninit::uninit();
    let port = Port::new(&mut memory);
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

/// What a port held opens in steps, or all senders would burst at once: paused, stale, detached.
#[test]
fn windows_open_in_steps() {
    let (_, data) = flows().into_iter().next().unwrap();
    let mut memory = MaybeUninit::uninit();
    let port = Port::new(&mut memory);
    open(&port, "hscc", &data);
    let ack = ack(&data).frame();
    let window_at = |ms: u64| {
        let now = penstockd::host::clock::monotonic_ns();
        port.configure(|config| {
            (config.pause_ns, config.resume_ns) = (now - ms * 1_000_000, u64::MAX);
            config.window.first_acks = 255;
        });
        let got = port.run("hscc_ingress", &ack);
        u16::from_be_bytes([got[48], got[49]])
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

#[test]
fn a_silent_agent_or_another_abi_lets_all_pass() {
    let (_, data) = flows().into_iter().next().unwrap();
    let mut memory = MaybeUninit::uninit();
    let port = Port::new(&mut memory);
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
    port.configure(|config| config.abi += 1);
    assert_eq!(port.run("hscc_ingress", &ack), ack);
}

#[test]
fn flows_are_counted_once_and_swept() {
    let mut memory = MaybeUninit::uninit();
    let port = Port::new(&mut memory);
    let flow = |i: u16| Segment::new("10.0.0.1", "10.0.0.2").with(|s| s.source_port = i);
    for i in 1..=100 {
        for _ in 0..2 {
            port.run("fairq_egress", &syn(&flow(i)).frame());
            port.run("fairq_ingress", &syn_ack(&flow(i)).frame());
        }
    }
    port.sweep();
    let state = port.state();
    assert_eq!((state.flows, state.tracked, state.half_open), (0, 0, 100));
    for i in 1..=100 {
        for _ in 0..2 {
            port.run("fairq_egress", &flow(i).frame());
        }
    }
    assert_eq!(port.state().flows, 100);
    port.sweep();
    let state = port.state();
    assert_eq!(
        (state.flows, state.recount, state.tracked, state.corrected),
        (100, 100, 100, 0)
    );
    assert_eq!(state.half_open, 0);
    for i in 1..=40 {
        for _ in 0..2 {
            port.run(
                "fairq_egress",
                &flow(i).with(|s| s.flags = FIN | ACK).frame(),
            );
        }
    }
    port.sweep();
    assert_eq!((port.state().flows, port.state().corrected), (60, 0));
    // Idle at once: uncounted; data counts one again.
    port.configure(|config| config.window.idle_ns = 1);
    port.sweep();
    assert_eq!(port.state().flows, 0);
    port.run("fairq_egress", &flow(50).with(|s| s.payload = 100).frame());
    assert_eq!(port.state().flows, 1);
    // An evicted entry: the next sweep sets the number right.
    port.configure(|_| {});
    let keys: Vec<_> = port.0.maps.flows4.keys().collect();
    keys.iter()
        .for_each(|key| port.0.maps.flows4.delete(key).unwrap());
    port.sweep();
    assert_eq!((port.state().flows, port.state().corrected), (0, 1));
}

/// The daemon and a `--stay` or `observe` of the same port.
#[test]
fn sweeps_at_once_count_as_one_does() {
    const FLOWS: u32 = 30_000;
    let mut memory = MaybeUninit::uninit();
    let port = Port::new(&mut memory);
    let mut flow = types::port_flow::default();
    flow.entry.phase = 1;
    flow.entry.last_ns = penstockd::host::clock::monotonic_ns();
    for source in 0..FLOWS {
        let key = [source, 0, 0, 0];
        let map = &port.0.maps.flows4;
        map.update(bytes_of(&key), bytes_of(&flow), MapFlags::ANY)
            .unwrap();
    }
    port.sweep();
    let before = port.state();
    assert_eq!(before.flows, before.tracked);
    let sweep = port.0.progs.sweep.as_fd().as_raw_fd();
    std::thread::scope(|threads| {
        for _ in 0..2 {
            threads.spawn(move || {
                for _ in 0..20 {
                    let mut options = libbpf_rs::libbpf_sys::bpf_test_run_opts {
                        sz: size_of::<libbpf_rs::libbpf_sys::bpf_test_run_opts>() as _,
                        ..Default::default()
                    };
                    // SAFETY: a valid descriptor and options.
                    let status = unsafe {
                        libbpf_rs::libbpf_sys::bpf_prog_test_run_opts(sweep, &raw mut options)
                    };
                    assert_eq!(status, 0);
                }
            });
        }
    });
    let after = port.state();
    assert_eq!(
        (after.flows, after.corrected),
        (before.flows, before.corrected)
    );
}

#[test]
fn fairq_shares_its_window_by_flows() {
    let mut memory = MaybeUninit::uninit();
    let port = Port::new(&mut memory);
    // No tick in the life of this test: the window is alpha * B / flows.
    port.configure(|config| config.schemes.fairq.interval_ns = 3_600_000_000_000);
    for i in 1..=8_u16 {
        let data = Segment::new("10.0.0.1", "10.0.0.2").with(|s| s.source_port = i);
        port.run("fairq_egress", &syn(&data).frame());
        let answer = syn_ack(&data);
        // Its share, though it does not take any from the others yet.
        let got = port.run("fairq_ingress", &answer.frame());
        assert_eq!(port.state().flows, u32::from(i) - 1);
        port.run("fairq_egress", &data.frame());
        let share = port.state().window_bytes as u16;
        // Each new flow rounds down by less than 1/256 byte.
        assert!((32_768 / i).abs_diff(share) <= 1, "{i} flows: {share}");
        assert_eq!(got, answer.with(|s| s.window = share).frame(), "{i} flows");
    }
}
