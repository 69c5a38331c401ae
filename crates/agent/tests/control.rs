// SPDX-License-Identifier: Apache-2.0
//! Room for control packets at a port that overflows, on real TCP: HSCC alone, with its early drop
//! of data (`sigma`), and with a band of their own for SYNs and pure ACKs. Needs root.
//!
//! `-- --nocapture` prints what each costs; PENSTOCK_SCHEME=fairq measures another scheme, and
//! PENSTOCK_CONTROL_SECONDS=5 measures for longer.

#![allow(clippy::unwrap_used)]

mod lab;

use lab::transfers::{receiver, serve, transfer};
use lab::{LEFT, RIGHT, SwitchLab};
use penstock_linux::testkit::{Process, from_environment, join, until};
use std::net::{TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(120);
const RATE_BPS: u64 = 200_000_000;
const BUFFER_BYTES: u32 = 131_072;
/// Too many for HSCC, whose clamp holds BUFFER / 4 in segments: 22 flows.
const CLIENTS: u64 = 150;
const REQUEST_BYTES: u64 = 11_500;
const ELEPHANTS: u64 = 4;
const ELEPHANT_BYTES: u64 = 10_000_000;

/// Connections that open at the full queue.
const OPENERS: u64 = 50;
const DISCARD: u16 = 9;

/// What is done for control packets.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Room {
    None,
    Drops,
    Band,
}

#[derive(Debug)]
struct Measured {
    /// Time of each transfer.
    times: Vec<Duration>,
    drops: u64,
    syns_repeated: u64,
    timeouts: u64,
}

/// Two bands that share the rate, the first ahead of the second, where all packets go without a
/// priority. As much as `prio` below a token bucket, which fewer kernels have.
fn add_bands(lab: &SwitchLab, rate_bps: u64) {
    let tc = |line: &str| lab::run(lab.netns("switch"), &format!("tc {line}"));
    let class = |id: &str, rate: u64, prio: u64| {
        tc(&format!(
            "class add dev right parent {id} htb rate {rate} ceil {rate_bps} burst 4k cburst 4k prio {prio}"
        ))
    };
    tc("qdisc replace dev right root handle 1: htb default 20");
    class("1: classid 1:1", rate_bps, 0);
    class("1:1 classid 1:10", rate_bps / 100, 0);
    class("1:1 classid 1:20", rate_bps / 100, 1);
    tc("qdisc add dev right parent 1:10 bfifo limit 32k");
    tc(&format!(
        "qdisc add dev right parent 1:20 bfifo limit {BUFFER_BYTES}"
    ));
}

fn attach(lab: &SwitchLab, room: Room) -> Process {
    let scheme = std::env::var("PENSTOCK_SCHEME").unwrap_or("hscc".into());
    let buffer = format!("{BUFFER_BYTES} B");
    let mut options = vec!["--buffer", &buffer];
    match room {
        Room::None => {}
        Room::Drops => options.extend(["--set", "drops=true"]),
        Room::Band => options.extend(["--set", "control_priority=1:10"]),
    }
    lab.attach(&scheme, &options, LIMIT).0
}

/// New connections in a closed loop next to long transfers.
fn measure(room: Room) -> Measured {
    let lab = SwitchLab::new(RATE_BPS, BUFFER_BYTES);
    lab.netns("right").run(serve).unwrap();
    add_bands(&lab, RATE_BPS);
    let _agent = attach(&lab, room);
    let span = from_environment("PENSTOCK_CONTROL_SECONDS", 1);
    let span = Duration::from_secs(span);
    let begun = Instant::now();
    let (drops, syns, timeouts) = counters(&lab);
    let client = |id: u64, bytes: u64| {
        lab.spawn("left", move || {
            let mut times = Vec::new();
            while begun.elapsed() < span {
                let started = Instant::now();
                transfer(id, bytes).unwrap();
                times.push(started.elapsed());
            }
            times
        })
    };
    let elephants: Vec<_> = (0..ELEPHANTS)
        .map(|id| client(id, ELEPHANT_BYTES))
        .collect();
    let clients: Vec<_> = (0..CLIENTS)
        .map(|id| client(ELEPHANTS + id, REQUEST_BYTES))
        .collect();
    let times = clients.into_iter().flat_map(|client| join(client, LIMIT));
    let mut times: Vec<_> = times.collect();
    for elephant in elephants {
        join(elephant, LIMIT);
    }
    times.sort();
    let after = counters(&lab);
    Measured {
        times,
        drops: after.0 - drops,
        syns_repeated: after.1 - syns,
        timeouts: after.2 - timeouts,
    }
}

/// Drops by the port and its scheme, SYNs sent again, timeouts.
fn counters(lab: &SwitchLab) -> (u64, u64, u64) {
    let counters = lab.agent().port("right").counters().unwrap();
    (
        lab.drops() + counters.data_dropped,
        lab.tcp_counter("TCPSynRetrans"),
        lab.tcp_counter("TCPTimeouts"),
    )
}

/// SYNs sent again by connections that open while small datagrams keep the queue of data full.
fn syns_repeated_at_full_queue(room: Room) -> u64 {
    let lab = SwitchLab::new(RATE_BPS, BUFFER_BYTES);
    lab.netns("right").run(serve).unwrap();
    // A quarter of what the datagrams need.
    add_bands(&lab, RATE_BPS / 100);
    let _agent = attach(&lab, room);
    let is_over = Arc::new(AtomicBool::new(false));
    let over = is_over.clone();
    let datagrams = lab.spawn("left", move || {
        let socket = UdpSocket::bind((LEFT, 0)).unwrap();
        while !over.load(Ordering::Relaxed) {
            for _ in 0..20 {
                socket.send_to(&[0; 8], (RIGHT, DISCARD)).unwrap();
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    });
    until("the queue is full", || lab.drops() > 1000);
    let clients = (0..OPENERS).map(|_| {
        lab.spawn("left", || {
            // A SYN is sent again after a second.
            let patience = Duration::from_millis(1500);
            let _ = TcpStream::connect_timeout(&receiver(), patience);
        })
    });
    let clients: Vec<_> = clients.collect();
    for client in clients {
        join(client, LIMIT);
    }
    is_over.store(true, Ordering::Relaxed);
    join(datagrams, LIMIT);
    lab.tcp_counter("TCPSynRetrans")
}

#[test]
fn handshakes_do_not_wait_for_a_full_queue() {
    let [none, band] = [Room::None, Room::Band].map(syns_repeated_at_full_queue);
    assert!(none > 0, "the queue never refused a SYN");
    assert_eq!(band, 0, "SYNs were lost in their own band");
}

#[test]
fn handshakes_do_not_wait_for_data_of_others() {
    let rooms = [Room::None, Room::Drops, Room::Band];
    let measured = rooms.map(|room| {
        let measured = measure(room);
        let times = &measured.times;
        let mean = times.iter().sum::<Duration>() / times.len() as u32;
        let late = times.iter().filter(|time| time.as_millis() > 190).count();
        println!(
            "{room:?}: {} transfers, mean {mean:.1?}, p99 {:.1?}, max {:.1?}, {late} above 190 ms; {} drops, {} SYNs sent again, {} timeouts",
            times.len(),
            times[times.len() * 99 / 100],
            times[times.len() - 1],
            measured.drops,
            measured.syns_repeated,
            measured.timeouts,
        );
        measured
    });
    let [_, _, band] = measured.map(|measured| measured.syns_repeated);
    assert_eq!(band, 0, "SYNs were lost in their own band");
}
