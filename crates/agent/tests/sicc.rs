// SPDX-License-Identifier: Apache-2.0
//! SICC's shim on real TCP: below the sender, the interface's other end. ON clamps the window that the
//! sender's kernel sees; OFF, the end of `duration` and a pause release it. Needs root.

#![allow(clippy::unwrap_used)]

mod lab;

use lab::{PORT, PortLab};
use penstock_linux::socket::tcp_info;
use penstock_linux::testkit::{join, until};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread::JoinHandle;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(60);
const SENDER: &str = "10.0.0.2";
const RECEIVER: &str = "10.0.0.1";
const SENDER6: &str = "fd00::2";
const RECEIVER6: &str = "fd00::1";

/// What a receiver offers if no one lowers it; Linux offers 64 kB from the start.
const OPEN_BYTES: u32 = 30_000;

/// A connection of the host behind the port, which asks and is answered.
struct Dialogue {
    client: TcpStream,
    server: JoinHandle<()>,
}

impl Dialogue {
    fn begin(lab: &PortLab, receiver: &str) -> Dialogue {
        let listen = || TcpListener::bind((receiver, 7000));
        let listener = lab.near().run(listen).unwrap().unwrap();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.set_read_timeout(Some(LIMIT)).unwrap();
            let mut byte = [0];
            while stream.read(&mut byte).unwrap() == 1 {
                stream.write_all(&byte).unwrap();
            }
        });
        let connect = || TcpStream::connect((receiver, 7000));
        let client = lab.far().run(connect).unwrap().unwrap();
        client.set_read_timeout(Some(LIMIT)).unwrap();
        Dialogue { client, server }
    }

    /// The window that the client was shown last, after one more answer; bytes.
    fn window(&mut self) -> u32 {
        self.client.write_all(&[1]).unwrap();
        self.client.read_exact(&mut [0]).unwrap();
        tcp_info(&self.client).unwrap().send_window
    }

    fn scale(&self) -> u32 {
        tcp_info(&self.client).unwrap().peer_window_scale.into()
    }

    fn end(self) {
        drop(self.client);
        join(self.server, LIMIT);
    }
}

fn attach(lab: &PortLab, scheme: &str, settings: &[&str]) {
    let mut words = vec!["attach", PORT, "--scheme", scheme, "--stale", "60min"];
    words.extend(settings.iter().flat_map(|setting| ["--set", setting]));
    lab.ok(&words);
}

fn on(lab: &PortLab, mss: &str, scale: &str) {
    lab.ok(&[
        "sicc", "on", PORT, SENDER, RECEIVER, "--mss", mss, "--scale", scale,
    ]);
}

/// `mss` rounded up to the scale.
fn clamp(mss: u32, scale: u32) -> u32 {
    mss.next_multiple_of(1 << scale)
}

#[test]
fn on_clamps_what_the_sender_sees_and_off_and_a_pause_release_it() {
    let lab = PortLab::quiet();
    attach(&lab, "sicc", &["controller.duration=60 min"]);
    let mut dialogue = Dialogue::begin(&lab, RECEIVER);
    let scale = dialogue.scale();
    assert!(scale > 0, "the test needs scaled windows");
    assert!(dialogue.window() > OPEN_BYTES);
    assert_eq!(lab.status()["clamped_pairs"], 0);

    // The flow's own scale is known, so that the message's does not matter.
    on(&lab, "1448", "0");
    assert_eq!(dialogue.window(), clamp(1448, scale));
    on(&lab, "5000", "14");
    assert_eq!(dialogue.window(), clamp(5000, scale));
    assert_eq!(lab.status()["clamped_pairs"], 1);
    let metrics = lab.ok(&["metrics"]);
    let line = metrics.lines().find(|line| line.contains("clamped_pairs{"));
    assert!(line.is_some_and(|line| line.ends_with(" 1.0")), "{metrics}");
    assert!(lab.status()["counters"]["acks_rewritten"].as_u64() > Some(0));

    lab.ok(&["pause", PORT]);
    assert!(dialogue.window() > OPEN_BYTES, "paused");
    lab.ok(&["resume", PORT]);
    assert_eq!(dialogue.window(), clamp(5000, scale));

    // The other direction is another pair.
    lab.ok(&["sicc", "off", PORT, RECEIVER, SENDER]);
    assert_eq!(dialogue.window(), clamp(5000, scale));
    lab.ok(&["sicc", "off", PORT, SENDER, RECEIVER]);
    assert!(dialogue.window() > OPEN_BYTES, "off");
    assert_eq!(lab.status()["clamped_pairs"], 0);
    dialogue.end();
}

#[test]
fn pairs_of_ipv6_are_clamped_too() {
    let lab = PortLab::new();
    lab::run(
        lab.near(),
        &format!("ip address add {RECEIVER6}/64 dev {PORT} nodad"),
    );
    lab::run(
        lab.far(),
        &format!("ip address add {SENDER6}/64 dev eth0 nodad"),
    );
    attach(&lab, "sicc", &["controller.duration=60 min"]);
    let mut dialogue = Dialogue::begin(&lab, RECEIVER6);
    assert!(dialogue.window() > OPEN_BYTES);
    let order = |switch: &str, options: &[&str]| {
        lab.ok(&[&["sicc", switch, PORT, SENDER6, RECEIVER6], options].concat())
    };
    order("on", &["--mss", "1428"]);
    assert_eq!(dialogue.window(), clamp(1428, dialogue.scale()));
    order("off", &[]);
    assert!(dialogue.window() > OPEN_BYTES);
    dialogue.end();
}

#[test]
fn a_clamp_without_an_off_expires() {
    let lab = PortLab::quiet();
    attach(&lab, "sicc", &["controller.duration=200 ms"]);
    let mut dialogue = Dialogue::begin(&lab, RECEIVER);
    let clamped = clamp(1448, dialogue.scale());
    // On a slow machine it may have expired before an ACK passes.
    until("it is clamped", || {
        on(&lab, "1448", "7");
        dialogue.window() == clamped
    });
    until("it is released", || dialogue.window() > OPEN_BYTES);
    dialogue.end();
}

/// Algorithm 2 as printed: the scale is the message's, rounded down, until the OFF.
#[test]
fn as_printed_the_window_is_the_mss_shifted_by_the_messages_scale() {
    let lab = PortLab::quiet();
    attach(&lab, "sicc-paper", &["controller.duration=1 ms"]);
    let mut dialogue = Dialogue::begin(&lab, RECEIVER);
    let scale = dialogue.scale();
    // Enough for a byte to be sent; duration has long passed when the last is read.
    on(&lab, "1448", "6");
    for _ in 0..100 {
        assert_eq!(dialogue.window(), 1448 >> 6 << scale);
    }
    lab.ok(&["sicc", "off", PORT, SENDER, RECEIVER]);
    assert!(dialogue.window() > OPEN_BYTES);
    dialogue.end();
}

#[test]
fn orders_need_the_shim_and_one_version_of_ip() {
    let lab = PortLab::quiet();
    let order = ["sicc", "off", PORT, SENDER, RECEIVER];
    assert!(lab.refused(&order).contains("not attached"));
    attach(&lab, "fairq", &["buffer=128 kB"]);
    let refused = lab.refused(&order);
    assert!(
        refused.contains("penstockd attach eth1 --scheme sicc"),
        "{refused}"
    );
    attach(&lab, "sicc", &[]);
    let mixed = lab.refused(&["sicc", "off", PORT, SENDER, "fd00::1"]);
    assert!(mixed.contains("two versions of IP"), "{mixed}");
    let small = lab.refused(&["sicc", "on", PORT, SENDER, RECEIVER, "--mss", "535"]);
    assert!(small.contains("536"), "{small}");
    lab.ok(&order);
}
