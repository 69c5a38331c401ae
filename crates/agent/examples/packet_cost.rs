// SPDX-License-Identifier: Apache-2.0
//! What the programs of a port cost a packet: BPF_PROG_TEST_RUN over real packets, and next to it a program
//! that does nothing, on the same packets, in turn; medians of many short rounds. Needs root.
//!
//! `cargo run --release --example packet_cost -- [--json] [--rounds N]` (make bench-datapath)

#![allow(
    clippy::unwrap_used,
    reason = "a measurement stops where it cannot go on"
)]
#![allow(missing_docs)]

#[path = "../tests/common/packet.rs"]
#[allow(dead_code)]
mod packet;
#[allow(warnings)]
mod skel {
    include!(concat!(env!("OUT_DIR"), "/packet_cost.skel.rs"));
}

use libbpf_rs::skel::{OpenSkel, Skel, SkelBuilder};
use libbpf_rs::{MapCore, MapFlags, Object, ProgramInput};
use packet::{ACK, SYN, Segment};
use penstock_core::Params;
use penstock_core::definitions;
use penstockd::host::clock::monotonic_ns;
use penstockd::port::plain::bytes_of;
use skel::types;
use std::mem::MaybeUninit;
use std::net::Ipv4Addr;

/// Runs of a program in one measurement, about a millisecond.
const REPEAT: u32 = 10_000;
const SCALE: u8 = 7;
const BUFFER_BYTES: u32 = 131_072;
/// Offset of `cb` in `struct __sk_buff`.
const CB: usize = 48;

#[derive(Clone)]
struct Case {
    name: String,
    /// The program under test, and the one taken off.
    programs: [String; 2],
    packet: Vec<u8>,
    tcp: u32,
}

/// The names of the window schemes.
fn schemes() -> impl Iterator<Item = &'static str> {
    definitions::window_schemes().map(|definition| definition.name)
}

fn configure(object: &skel::PacketCostSkel) {
    let mut config = types::port_config {
        vxlan_ports: penstockd::port::vxlan::VxlanPorts::default().to_wire(),
        abi: types::port_abi::PENSTOCK_ABI,
        generation: 1,
        ifindex: 1, // of test runs: the loopback
        flows_max: u32::MAX,
        stale_ns: u64::MAX / 2,
        buffer_bytes: BUFFER_BYTES,
        ..Default::default()
    };
    config.window.idle_ns = 10_000_000_000;
    config.window.first_acks = 255; // every ACK is rewritten
    for definition in definitions::window_schemes() {
        let params = Params::new(definition, BUFFER_BYTES);
        let all = std::ptr::from_mut(&mut config.schemes).cast::<u8>();
        let bytes = params.bytes();
        // SAFETY: the struct of the scheme is at its offset in that of all.
        unsafe {
            let target = all.add(definition.offset);
            target.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
        }
    }
    let key = 0_u32.to_ne_bytes();
    let maps = &object.maps;
    maps.config
        .update(&key, bytes_of(&config), MapFlags::ANY)
        .unwrap();
    maps.heartbeat
        .update(&key, &monotonic_ns().to_ne_bytes(), MapFlags::ANY)
        .unwrap();
}

/// Data from 10.0.x.y:40000 to 10.9.9.9:80; flow 0 is the one measured.
fn data(index: u32) -> Segment {
    let source = Ipv4Addr::from(0x0a00_0001 + index);
    Segment::new(&source.to_string(), "10.9.9.9").with(|s| s.payload = 1448)
}

fn run(object: &Object, program: &str, packet: &[u8], tcp: u32, repeat: u32) -> f64 {
    let program = object.progs_mut().find(|p| p.name() == program).unwrap();
    let mut context = [0_u8; 192];
    context[CB..CB + 4].copy_from_slice(&tcp.to_ne_bytes());
    let mut out = vec![0; packet.len() + 256];
    let input = ProgramInput {
        data_in: Some(packet),
        data_out: Some(&mut out),
        context_in: Some(&mut context),
        repeat,
        ..Default::default()
    };
    program.test_run(input).unwrap().duration.as_nanos() as f64
}

/// Shows the port the handshake of a flow.
fn open_flow(object: &Object, data: &Segment, wrap: impl Fn(&Segment) -> Vec<u8>) {
    let options = Segment::syn_options(1460, SCALE);
    let syn = data.with(|s| {
        (s.flags, s.payload, s.options) = (SYN, 0, options.clone());
        s.seq -= 1;
    });
    let answer = data.reversed().with(|s| {
        (s.flags, s.payload, s.options) = (SYN | ACK, 0, options);
        (s.seq, s.ack) = (data.ack - 1, data.seq);
    });
    run(object, "fairq_egress", &wrap(&syn), 0, 1);
    run(object, "fairq_ingress", &wrap(&answer), 0, 1);
    run(object, "fairq_egress", &wrap(data), 0, 1);
}

/// A segment's frame inside VXLAN.
fn inside(segment: &Segment) -> Vec<u8> {
    let outer = Segment::new("192.0.2.1", "192.0.2.2");
    let frame = segment.frame();
    packet::ethernet(
        outer.source,
        &[],
        &packet::vxlan(&outer, 4789, 7, false, &frame),
    )
}

/// Checks that a case does what its name states: the window came back lower.
fn prove(object: &Object, case: &Case) {
    let mut out = vec![0; case.packet.len() + 256];
    let program = object
        .progs_mut()
        .find(|p| p.name() == case.programs[0].as_str());
    let mut context = [0_u8; 192];
    context[CB..CB + 4].copy_from_slice(&case.tcp.to_ne_bytes());
    let input = ProgramInput {
        data_in: Some(&case.packet),
        data_out: Some(&mut out),
        context_in: Some(&mut context),
        ..Default::default()
    };
    program.unwrap().test_run(input).unwrap();
    let at = case.tcp as usize + 14;
    let is_lower = out[at..at + 2] < case.packet[at..at + 2];
    assert_eq!(is_lower, case.name.contains("rewritten"), "{}", case.name);
}

fn cases() -> Vec<Case> {
    let data4 = data(0);
    let ack4 = data4.reversed().with(|s| s.payload = 0);
    let data6 = Segment::new("fd00::1", "fd00::2").with(|s| s.payload = 1448);
    let ack6 = data6.reversed().with(|s| s.payload = 0);
    let options = Segment::syn_options(1460, SCALE);
    let syn = data4.with(|s| (s.flags, s.payload, s.options) = (SYN, 0, options));
    let mut cases = Vec::new();
    for scheme in schemes().chain(["observe"]) {
        let mut case = |what: &str, test: &str, off: &str, packet, tcp| {
            cases.push(Case {
                name: format!("{scheme}: {what}"),
                programs: [format!("{scheme}_{test}"), off.to_owned()],
                packet,
                tcp,
            });
        };
        let passed = ack4.with(|s| s.window = 1).frame();
        case("data, IPv4", "egress", "empty", data4.frame(), 34);
        case("data, IPv6", "egress", "empty", data6.frame(), 54);
        case("data, VXLAN", "egress", "empty", inside(&data4), 84);
        case("ACK passed, IPv4", "ingress", "empty", passed, 34);
        if scheme == "observe" {
            continue;
        }
        for (name, packet, tcp) in [
            ("ACK rewritten, IPv4", ack4.frame(), 34),
            ("ACK rewritten, IPv6", ack6.frame(), 54),
            ("ACK rewritten, VXLAN", inside(&ack4), 84),
        ] {
            case(name, "restored", "restore", packet, tcp);
        }
        case("SYN repeated, IPv4", "egress", "empty", syn.frame(), 34);
    }
    cases
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Net nanoseconds: the median of the differences of neighbours, with the base's own median.
fn measure(object: &Object, cases: &[Case], rounds: usize) -> Vec<(f64, f64)> {
    let mut net = vec![Vec::new(); cases.len()];
    let mut base = vec![Vec::new(); cases.len()];
    for _ in 0..rounds {
        for (i, case) in cases.iter().enumerate() {
            let [test, off] = case
                .programs
                .each_ref()
                .map(|program| run(object, program, &case.packet, case.tcp, REPEAT));
            net[i].push(test - off);
            base[i].push(off);
        }
    }
    let both = net.iter_mut().zip(&mut base);
    both.map(|(net, base)| (median(net), median(base)))
        .collect()
}

/// One run for each of many flows, their entries out of the caches: net, with the clock's cost.
fn scattered(object: &Object, flows: u32, rounds: usize) -> [f64; 2] {
    let scheme = schemes().next().unwrap();
    [("egress", true), ("ingress", false)].map(|(side, is_data)| {
        let test = format!("{scheme}_{side}");
        let mut net = Vec::new();
        for i in 0..(rounds as u32 * 20).min(flows) {
            let data = data((i * 7919) % flows);
            let packet = if is_data {
                data.frame()
            } else {
                data.reversed().with(|s| s.payload = 0).frame()
            };
            let base = run(object, "empty", &packet, 34, 1);
            net.push(run(object, &test, &packet, 34, 1) - base);
        }
        median(&mut net)
    })
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let is_json = arguments.iter().any(|a| a == "--json");
    let at = arguments.iter().position(|a| a == "--rounds");
    let rounds = at.map_or(101, |at| arguments[at + 1].parse().unwrap());
    let mut memory = MaybeUninit::uninit();
    let skel = skel::PacketCostSkelBuilder::default()
        .open(&mut memory)
        .unwrap();
    let skel = skel
        .load()
        .expect("loading needs root and a kernel of 6.1 or later");
    configure(&skel);
    let object = skel.object();
    let cases = cases();
    let mut results = Vec::new();
    let data6 = Segment::new("fd00::1", "fd00::2");
    open_flow(object, &data6, Segment::frame);
    open_flow(object, &data(0), inside);
    let mut opened = 0;
    open_flow(object, &data(0), Segment::frame);
    cases.iter().for_each(|case| prove(object, case));
    for flows in [1, 1000, 50_000] {
        while opened < flows {
            open_flow(object, &data(opened), Segment::frame);
            opened += 1;
        }
        // The size of the table matters to look-ups only: a few cases of one scheme are enough.
        let scheme = schemes().next().unwrap();
        let is_chosen = |case: &&Case| {
            flows == 1 || case.name.starts_with(scheme) && case.name.ends_with("IPv4")
        };
        let chosen: Vec<Case> = cases.iter().filter(is_chosen).cloned().collect();
        eprintln!("{flows} flows: {} cases, {rounds} rounds", chosen.len());
        for (case, (net, base)) in chosen.iter().zip(measure(object, &chosen, rounds)) {
            results.push((flows, case.name.clone(), net, base));
        }
        if flows > 1 {
            let [data, ack] = scattered(object, flows, rounds);
            results.push((
                flows,
                format!("{scheme}: data, each of another flow (cold)"),
                data,
                f64::NAN,
            ));
            results.push((
                flows,
                format!("{scheme}: ACK rewritten, each of another flow (cold)"),
                ack,
                f64::NAN,
            ));
        }
    }
    print(&results, is_json);
}

fn print(results: &[(u32, String, f64, f64)], is_json: bool) {
    if is_json {
        let all: Vec<_> = results
            .iter()
            .map(|(flows, name, net, base)| {
                serde_json::json!({"flows": flows, "case": name, "net_ns": net, "base_ns": base})
            })
            .collect();
        println!("{}", serde_json::json!(all));
        return;
    }
    println!(
        "{:>6}  {:<50} {:>8} {:>8} {:>6}",
        "flows", "case", "net ns", "base ns", "ratio"
    );
    for (flows, name, net, base) in results {
        println!(
            "{flows:>6}  {name:<50} {net:>8.0} {base:>8.0} {:>6.1}",
            (net + base) / base
        );
    }
}
