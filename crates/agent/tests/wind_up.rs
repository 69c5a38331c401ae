// SPDX-License-Identifier: Apache-2.0
//! Many old connections with little to send, on real TCP, under FairQ: their windows stay within what
//! the port can hold, so that an incast on them finds windows that bind. Needs root.
//!
//! PENSTOCK_LONGEST_RTT="0 s" shows what happens without the bound, and fails.

#![allow(clippy::unwrap_used)]

mod lab;

use lab::SwitchLab;
use lab::transfers::{connect, send, serve};
use penstock_linux::testkit::join;
use penstockd::port::Port;
use std::net::TcpStream;
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(300);
const RATE_BPS: u64 = 200_000_000;
const BUFFER_BYTES: u32 = 131_072;
const CONNECTIONS: u64 = 32;
/// Long enough for a window that winds up to pass the bound several times.
const LIGHT: Duration = Duration::from_secs(4);
const ROUNDS: u64 = 3;

/// The default of `longest_rtt`, and a millisecond for the CPUs' counters.
const LONGEST_RTT_US: u64 = 11_000;

fn windows_bytes(port: &Port) -> u64 {
    let state = port.state().unwrap();
    u64::from(state.flows) * u64::from(state.window_bytes)
}

/// One piece of work on every connection at once; returns the connections, and how long it took.
fn on_each(
    lab: &SwitchLab,
    streams: Vec<TcpStream>,
    work: fn(&mut TcpStream, u64),
) -> (Vec<TcpStream>, Duration) {
    let begun = Instant::now();
    let threads = (0..).zip(streams).map(|(id, mut stream)| {
        lab.spawn("left", move || {
            work(&mut stream, id);
            stream
        })
    });
    let threads: Vec<_> = threads.collect();
    let streams = threads.into_iter().map(|thread| join(thread, LIMIT));
    (streams.collect(), begun.elapsed())
}

fn light(stream: &mut TcpStream, id: u64) {
    let begun = Instant::now();
    while begun.elapsed() < LIGHT {
        send(stream, id, 2000).unwrap();
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn incast(stream: &mut TcpStream, id: u64) {
    send(stream, id, 40_000).unwrap();
}

#[test]
fn light_load_does_not_wind_the_window_up() {
    let lab = SwitchLab::new(RATE_BPS, BUFFER_BYTES);
    lab.netns("right").run(serve).unwrap();
    let longest_rtt = std::env::var("PENSTOCK_LONGEST_RTT").unwrap_or("10 ms".into());
    let set = format!("window.longest_rtt={longest_rtt}");
    let (_agent, port) = lab.attach("fairq", &["--set", &set], LIMIT);
    let streams = (0..CONNECTIONS).map(|_| lab.spawn("left", || connect().unwrap()));
    let streams: Vec<_> = streams.collect();
    let streams = streams.into_iter().map(|thread| join(thread, LIMIT));
    let (mut streams, _) = on_each(&lab, streams.collect(), light);

    let (state, windows) = (port.state().unwrap(), windows_bytes(&port));
    let bound = u64::from(BUFFER_BYTES) + RATE_BPS / 8 * LONGEST_RTT_US / 1_000_000;
    println!(
        "{} flows of {} bytes each, {windows} in all; at most {bound}",
        state.flows, state.window_bytes
    );
    let before = port.counters().unwrap().acks_rewritten;
    for round in 1..=ROUNDS {
        let (drops, repeated) = (lab.drops(), lab.tcp_counter("RetransSegs"));
        let took;
        (streams, took) = on_each(&lab, streams, incast);
        let drops = lab.drops() - drops;
        let repeated = lab.tcp_counter("RetransSegs") - repeated;
        println!("round {round}: {took:.0?}, {drops} drops, {repeated} segments sent again");
        std::thread::sleep(Duration::from_millis(300));
    }
    assert_eq!(u64::from(state.flows), CONNECTIONS);
    assert!(windows <= bound, "{windows} bytes of windows");
    assert!(
        port.counters().unwrap().acks_rewritten > before,
        "no window was lowered in the incast"
    );
}
