// SPDX-License-Identifier: Apache-2.0
//! Room for control packets at a port that overflows, on real TCP: HSCC alone, with its early drop
//! of data (`sigma`), and with a band of their own for SYNs and pure ACKs. Needs root.
//!
//! `-- --nocapture` prints what each costs; PENSTOCK_SCHEME=fairq measures another scheme.

#![allow(clippy::unwrap_used)]

mod lab;

use lab::SwitchLab;
use lab::transfers::{serve, transfer};
use penstock_linux::testkit::{Process, join};
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(120);
const RATE_BPS: u64 = 200_000_000;
const BUFFER_BYTES: u32 = 131_072;
/// Too many for HSCC, whose clamp holds BUFFER / 4 in segments: 22 flows.
const CLIENTS: u64 = 150;
const REQUEST_BYTES: u64 = 11_500;
const ELEPHANTS: u64 = 4;
const ELEPHANT_BYTES: u64 = 10_000_000;
const SPAN: Duration = Duration::from_secs(5);

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
fn add_bands(lab: &SwitchLab) {
    let tc = |line: &str| lab::run(lab.netns("switch"), &format!("tc {line}"));
    let class = |id: &str, rate: u64, prio: u64| {
        tc(&format!(
            "class add dev right parent {id} htb rate {rate} ceil {RATE_BPS} burst 4k cburst 4k prio {prio}"
        ))
    };
    tc("qdisc replace dev right root handle 1: htb default 20");
    class("1: classid 1:1", RATE_BPS, 0);
    class("1:1 classid 1:10", RATE_BPS / 100, 0);
    class("1:1 classid 1:20", RATE_BPS / 100, 1);
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
    add_bands(&lab);
    let _agent = attach(&lab, room);
    let begun = Instant::now();
    let (drops, syns, timeouts) = counters(&lab);
    let client = |id: u64, bytes: u64| {
        lab.spawn("left", move || {
            let mut times = Vec::new();
            while begun.elapsed() < SPAN {
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

#[test]
fn handshakes_do_not_wait_for_a_full_queue() {
    let rooms = [Room::None, Room::Drops, Room::Band];
    let measured = rooms.map(|room| {
        let mut measured = measure(room);
        // Whether a SYN finds the queue full is chance.
        for _ in 0..4 {
            if measured.syns_repeated == 0 && matches!(room, Room::None) {
                measured = measure(room);
            }
        }
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
    let [none, _, band] = measured.map(|measured| measured.syns_repeated);
    assert!(none > 0, "the queue never refused a SYN");
    assert_eq!(band, 0, "SYNs were lost in their own band");
}
