// SPDX-License-Identifier: Apache-2.0
//! Attacks on a port that FairQ serves, on real TCP: what others forge takes nothing from those who
//! use the port, and gives nothing to those who forge. Needs root.
//!
//! What must not change at all is compared exactly, in the port's own tables. Goodput is compared with
//! that of the same flows a moment before, and with what the same flood costs them when penstockd only
//! observes, as its packets take their part of wire and CPU.

#![allow(clippy::unwrap_used)]

#[path = "common/mod.rs"]
mod common;
mod lab;

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use common::packet::{ACK, FIN, RST, SYN, Segment};
use lab::raw::Raw;
use lab::transfers::{self, connect, send, serve, transfer};
use lab::{LEFT, RIGHT, SwitchLab};
use libbpf_rs::{MapCore, MapFlags};
use penstock_linux::netns::NetNs;
use penstock_linux::testkit::{alone, join, until};
use penstockd::port::plain::of_bytes;
use penstockd::port::{Port, counters};
use penstockd::skel::port::types;

const LIMIT: Duration = Duration::from_secs(120);
const BUFFER_BYTES: u32 = 131_072;
const BULK_PORT: u16 = 6000;
const FLOWS: usize = 8;
/// How long goodput is measured.
const SPAN: Duration = Duration::from_millis(1500);
/// Bridges do not forward it (IEEE 802.1D, table 7-10).
const NOT_FORWARDED: [u8; 6] = [0x01, 0x80, 0xc2, 0, 0, 0x02];

fn unknown_scales(port: &Port) -> u64 {
    counters::named(&port.counters().unwrap())["passed_unknown_scale"]
}

/// Connections that send as much as they can, from `left` to `right`.
struct Bulk {
    /// What each has delivered, by the sender's port.
    delivered: Arc<Mutex<BTreeMap<u16, Arc<AtomicU64>>>>,
    is_over: Arc<AtomicBool>,
    senders: Vec<JoinHandle<()>>,
}

impl Bulk {
    fn start(lab: &SwitchLab) -> Bulk {
        let delivered = Arc::new(Mutex::new(BTreeMap::new()));
        let is_over = Arc::new(AtomicBool::new(false));
        let listener = lab
            .netns("right")
            .run(|| TcpListener::bind((RIGHT, BULK_PORT)));
        let (listener, all) = (listener.unwrap().unwrap(), delivered.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming().take(FLOWS).map_while(Result::ok) {
                let bytes = Arc::new(AtomicU64::new(0));
                let port = stream.peer_addr().unwrap().port();
                all.lock().unwrap().insert(port, bytes.clone());
                std::thread::spawn(move || receive(stream, &bytes));
            }
        });
        let senders = (0..FLOWS).map(|_| {
            let is_over = is_over.clone();
            lab.spawn("left", move || {
                let mut stream = TcpStream::connect((RIGHT, BULK_PORT)).unwrap();
                while !is_over.load(Ordering::Relaxed) {
                    stream.write_all(&[7; 16384]).unwrap();
                }
            })
        });
        let bulk = Bulk {
            senders: senders.collect(),
            delivered,
            is_over,
        };
        until("every flow delivers", || {
            let flows = bulk.snapshot();
            flows.len() == FLOWS && flows.values().all(|bytes| *bytes > 100_000)
        });
        bulk
    }

    fn snapshot(&self) -> BTreeMap<u16, u64> {
        let all = self.delivered.lock().unwrap();
        let load = |(port, bytes): (&u16, &Arc<AtomicU64>)| (*port, bytes.load(Ordering::Relaxed));
        all.iter().map(load).collect()
    }

    /// Bits per second of each in the next [`SPAN`].
    fn goodputs(&self) -> BTreeMap<u16, f64> {
        let (before, begun) = (self.snapshot(), Instant::now());
        std::thread::sleep(SPAN);
        let (after, seconds) = (self.snapshot(), begun.elapsed().as_secs_f64());
        let rate =
            |(port, bytes): (u16, u64)| (port, (bytes - before[&port]) as f64 * 8.0 / seconds);
        after.into_iter().map(rate).collect()
    }

    /// Of all flows.
    fn goodput(&self) -> f64 {
        self.goodputs().values().sum()
    }

    fn stop(self) {
        self.is_over.store(true, Ordering::Relaxed);
        for sender in self.senders {
            join(sender, LIMIT);
        }
    }
}

fn receive(mut stream: TcpStream, bytes: &AtomicU64) {
    let mut buffer = vec![0; 1 << 16];
    while let Ok(read @ 1..) = stream.read(&mut buffer) {
        bytes.fetch_add(read as u64, Ordering::Relaxed);
    }
}

/// Forged SYNs from an interface, each of another sender, until dropped.
struct Flood {
    is_over: Arc<AtomicBool>,
    sent: Arc<AtomicU64>,
    begun: Instant,
    thread: Option<JoinHandle<()>>,
}

impl Flood {
    fn start(netns: &NetNs, interface: &str, per_second: u64) -> Flood {
        let raw = netns.run(|| Raw::new(interface)).unwrap();
        let (is_over, sent) = (
            Arc::new(AtomicBool::new(false)),
            Arc::new(AtomicU64::new(0)),
        );
        let (over, count, begun) = (is_over.clone(), sent.clone(), Instant::now());
        let syn = Segment::new("192.0.2.1", "192.0.2.2").with(|s| {
            (s.flags, s.options) = (SYN, Segment::syn_options(1460, 7));
        });
        let mut frame = syn.frame();
        frame[..6].copy_from_slice(&NOT_FORWARDED);
        let thread = std::thread::spawn(move || {
            let mut random = Random(1);
            while !over.load(Ordering::Relaxed) {
                let due = begun.elapsed().as_micros() as u64 * per_second / 1_000_000;
                while count.load(Ordering::Relaxed) < due {
                    // Addresses, ports and sequence number; no one checks the checksum.
                    frame[26..30].copy_from_slice(&random.next().to_be_bytes());
                    frame[34..38].copy_from_slice(&random.next().to_be_bytes());
                    frame[38..42].copy_from_slice(&random.next().to_be_bytes());
                    raw.send_whole(&frame);
                    count.fetch_add(1, Ordering::Relaxed);
                }
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        Flood {
            is_over,
            sent,
            begun,
            thread: Some(thread),
        }
    }

    fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    fn per_second(&self) -> f64 {
        self.sent() as f64 / self.begun.elapsed().as_secs_f64()
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        let _ = self.thread.take().unwrap().join();
    }
}

/// The same numbers in each run (a linear congruential generator).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u32 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 32) as u32
    }
}

/// What flows kept of their goodput, under floods and after them.
#[derive(Debug)]
struct Kept {
    small: f64,
    large: f64,
    after: f64,
}

/// One round of quiet, a flood out by the port, a larger one in by it, and quiet again. `usual` is
/// what the flows got before, bits per second; `look` is called at times during the floods.
fn round(lab: &SwitchLab, bulk: &Bulk, usual: f64, look: &mut impl FnMut()) -> Kept {
    let quiet = bulk.goodput().max(usual);
    let mut flooded = |netns, interface, per_second| {
        let flood = Flood::start(lab.netns(netns), interface, per_second);
        let part = bulk.goodput() / quiet;
        look();
        println!(
            "  {:.0} forged SYNs a second: {:.0} % of {:.1} Mb/s",
            flood.per_second(),
            part * 100.0,
            quiet / 1e6
        );
        part
    };
    let kept = Kept {
        small: flooded("switch", "right", 1000),
        large: flooded("right", "eth0", 40_000),
        after: bulk.goodput() / quiet,
    };
    println!("  after them: {:.0} %", kept.after * 100.0);
    kept
}

#[test]
fn forged_syns_take_nothing_from_flows() {
    let _turn = alone();
    let lab = SwitchLab::new(50_000_000, BUFFER_BYTES);
    let _cable = lab.delay(Duration::from_millis(5));
    let (_agent, _) = lab.attach("observe", &[], LIMIT);
    let bulk = Bulk::start(&lab);
    println!("observed only:");
    let unavoidable = round(&lab, &bulk, 0.0, &mut || {});
    lab.agent().ok(&["attach", "right", "--scheme", "fairq"]);
    bulk.stop();
    let bulk = Bulk::start(&lab);
    let port = lab.agent().port("right");
    let (mut counted, mut half_open) = (Vec::new(), 0);
    let usual = bulk.goodput();
    // With or without a flood, a span has 0.8 to 1.1 of the usual goodput, and three rounds are played, as one
    // may be unlucky. If half-open flows were counted, it would be a tenth.
    let least = 0.7;
    let is_kept = (1..=3).any(|number| {
        println!("FairQ, round {number}:");
        let kept = round(&lab, &bulk, usual, &mut || {
            let state = port.state().unwrap();
            counted.push(state.flows);
            half_open = half_open.max(state.half_open);
        });
        kept.small >= least * unavoidable.small.min(1.0)
            && kept.large >= least * unavoidable.large.min(1.0)
            && kept.after >= least
    });
    assert!(is_kept, "flows lose goodput to forged SYNs");
    assert!(
        half_open > 500,
        "the port saw no flood: {half_open} half-open flows"
    );
    assert!(
        counted.iter().all(|flows| *flows == FLOWS as u32),
        "{counted:?} flows counted"
    );
    bulk.stop();
}

/// The entries of the flows to a port of `right`, by the sender's port.
fn entries(port: &Port, destination_port: u16) -> BTreeMap<u16, types::flow_entry> {
    let map = port.map("flows4").unwrap();
    let entries = map.keys().filter_map(|key| {
        let flow = map.lookup(&key, MapFlags::ANY).unwrap()?;
        let key: types::flow_key4 = of_bytes(&key).unwrap();
        let flow: types::port_flow = of_bytes(&flow).unwrap();
        let is_sought = u16::from_be(key.destination_port) == destination_port;
        is_sought.then_some((u16::from_be(key.source_port), flow.entry))
    });
    entries.collect()
}

fn ethernet_address(netns: &NetNs) -> Vec<u8> {
    let line = lab::run(netns, "ip -br link show eth0");
    let address = line.split_whitespace().nth(2).unwrap();
    let bytes = address
        .split(':')
        .map(|byte| u8::from_str_radix(byte, 16).unwrap());
    bytes.collect()
}

/// Segments that someone forges who knows a flow's addresses and ports, but none of its numbers.
fn forgeries(source_port: u16) -> Vec<Segment> {
    let data = Segment::new(LEFT, RIGHT).with(|s| {
        (s.source_port, s.destination_port) = (source_port, BULK_PORT);
    });
    let mut random = Random(source_port.into());
    let mut all = Vec::new();
    for side in [data.clone(), data.reversed()] {
        for (mss, scale) in [(1460, 0), (1460, 14), (1, 7), (65495, 7)] {
            for flags in [SYN, SYN | ACK] {
                let options = Segment::syn_options(mss, scale);
                all.push(side.with(|s| (s.flags, s.options) = (flags, options)));
            }
        }
        for flags in [RST, RST | ACK, FIN | ACK, ACK] {
            all.push(side.with(|s| s.flags = flags));
        }
    }
    // Many of each, as luck may help.
    let many = (0..20).flat_map(|_| all.clone()).collect::<Vec<_>>();
    let numbered = many
        .into_iter()
        .map(|segment| segment.with(|s| (s.seq, s.ack) = (random.next(), random.next())));
    numbered.collect()
}

#[test]
fn forged_segments_change_nothing_of_a_flow() {
    let _turn = alone();
    let lab = SwitchLab::new(50_000_000, BUFFER_BYTES);
    let (_agent, port) = lab.attach("fairq", &[], LIMIT);
    let bulk = Bulk::start(&lab);
    let known = |flow: &types::flow_entry| (flow.phase, flow.scale, flow.mss);
    let before: BTreeMap<_, _> = entries(&port, BULK_PORT)
        .iter()
        .map(|(port, flow)| (*port, known(flow)))
        .collect();
    let unknown = unknown_scales(&port);
    assert_eq!(before.len(), FLOWS);
    let goodputs_before = bulk.goodputs();
    let victims: Vec<u16> = before.keys().copied().take(3).collect();
    // They reach the ends, too, who ignore them.
    let sides = ["left", "right"].map(|host| {
        let peer = if host == "left" { "right" } else { "left" };
        let raw = lab.netns(host).run(|| Raw::new("eth0")).unwrap();
        (raw, ethernet_address(lab.netns(peer)))
    });
    let mut forged = 0;
    for segment in victims.iter().flat_map(|port| forgeries(*port)) {
        let (raw, destination) = &sides[usize::from(segment.source_port == BULK_PORT)];
        let mut frame = segment.frame();
        frame[..6].copy_from_slice(destination);
        raw.send_whole(&frame);
        forged += 1;
        // So that the port's queue has room for all.
        std::thread::sleep(Duration::from_micros(100));
    }
    let goodputs = bulk.goodputs();
    let after: BTreeMap<_, _> = entries(&port, BULK_PORT)
        .iter()
        .map(|(port, flow)| (*port, known(flow)))
        .collect();
    for (port, rate) in &goodputs {
        let is_victim = victims.contains(port);
        println!(
            "flow {port}: {:.2} Mb/s, then {:.2}; victim: {is_victim}",
            goodputs_before[port] / 1e6,
            rate / 1e6
        );
    }
    assert_eq!(
        before, after,
        "phase, scales or segment sizes, after {forged} forged segments"
    );
    assert_eq!(port.state().unwrap().flows, FLOWS as u32);
    assert_eq!(unknown_scales(&port), unknown);
    let mean = |is_victim| {
        let rates: Vec<f64> = goodputs
            .iter()
            .filter(|(port, _)| victims.contains(port) == is_victim)
            .map(|(_, rate)| *rate)
            .collect();
        rates.iter().sum::<f64>() / rates.len() as f64
    };
    let share = mean(true) / mean(false);
    assert!(
        (0.25..4.0).contains(&share),
        "victims get {share:.2} of the others' goodput"
    );
    bulk.stop();
}

#[test]
fn idle_connections_are_controlled_after_a_flood() {
    const IDLE: u64 = 16;
    const SYNS: u64 = 160_000;
    let _turn = alone();
    let lab = SwitchLab::new(50_000_000, BUFFER_BYTES);
    lab.netns("right").run(serve).unwrap();
    let (_agent, port) = lab.attach("fairq", &[], LIMIT);
    let streams = (0..IDLE).map(|id| {
        lab.spawn("left", move || {
            let mut stream = connect().unwrap();
            send(&mut stream, id, 2000).unwrap();
            stream
        })
    });
    let streams: Vec<TcpStream> = streams
        .collect::<Vec<_>>()
        .into_iter()
        .map(|thread| join(thread, LIMIT))
        .collect();
    let flood = Flood::start(lab.netns("switch"), "right", SYNS / 4);
    until("all SYNs are sent", || flood.sent() >= SYNS);
    println!("{SYNS} forged SYNs, {:.0} a second", flood.per_second());
    drop(flood);
    let before = port.counters().unwrap();
    assert!(before.syns > SYNS / 2, "the port saw {} SYNs", before.syns);
    let unknown = unknown_scales(&port);
    let followed = entries(&port, transfers::PORT);
    assert!(
        followed.len() == IDLE as usize
            && followed
                .values()
                .all(|flow| flow.scale.iter().all(|scale| *scale <= 14)),
        "scales are lost: {followed:?}"
    );
    let threads = (0..)
        .zip(streams)
        .map(|(id, mut stream)| lab.spawn("left", move || send(&mut stream, id, 200_000).unwrap()));
    for thread in threads.collect::<Vec<_>>() {
        join(thread, LIMIT);
    }
    let rewritten = port.counters().unwrap().acks_rewritten - before.acks_rewritten;
    println!("{rewritten} ACKs rewritten since");
    assert_eq!(unknown_scales(&port), unknown, "scales are lost");
    assert!(rewritten >= IDLE, "{rewritten} ACKs rewritten");
}

/// Drops of an incast of connections whose SYNs all offer segments of so many bytes; none: as usual.
fn drops_of_incast(lab: &SwitchLab, mss_bytes: Option<u32>) -> u64 {
    for host in ["left", "right"] {
        let mut route = "ip route replace 10.98.0.0/24 dev eth0 mtu 1500".to_owned();
        if let Some(bytes) = mss_bytes {
            route += &format!(" advmss {bytes}");
        }
        lab::run(lab.netns(host), &route);
    }
    let before = lab.drops();
    let threads = (0..64).map(|id| lab.spawn("left", move || transfer(id, 400_000).unwrap()));
    for thread in threads.collect::<Vec<_>>() {
        join(thread, LIMIT);
    }
    lab.drops() - before
}

/// Receivers with an MTU of 9000 behind a path of 1500, or tenants who would like a larger floor.
#[test]
fn an_option_of_large_segments_gives_no_larger_floor() {
    let _turn = alone();
    let lab = SwitchLab::new(200_000_000, BUFFER_BYTES);
    lab.netns("right").run(serve).unwrap();
    let (_agent, port) = lab.attach("fairq", &[], LIMIT);
    let usual = drops_of_incast(&lab, None);
    let claimed = drops_of_incast(&lab, Some(8960));
    println!("{usual} drops, {claimed} with an MSS option of 8960");
    let offered = entries(&port, transfers::PORT)
        .into_values()
        .map(|flow| flow.mss)
        .max();
    assert_eq!(offered, Some(8960), "both SYNs have the option");
    assert!(port.counters().unwrap().acks_rewritten > 1000);
    assert!(
        claimed <= 3 * usual + 300,
        "{claimed} drops instead of {usual}"
    );
}
