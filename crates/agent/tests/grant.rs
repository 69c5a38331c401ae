// SPDX-License-Identifier: Apache-2.0
//! Grant on real TCP, at a port and on the receiving host: nothing is lost and no sender times out,
//! however many send at once; what others forge opens nothing; a dead agent stops no flow. Needs root.

#![allow(clippy::unwrap_used)]

#[path = "common/mod.rs"]
mod common;
#[path = "grant/handshakes.rs"]
mod handshakes;
mod lab;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;

use common::packet::{ACK, SYN, Segment};
use common::run::run;
use lab::credit::{ANSWER_BYTES, LIMIT, Lab, PLACES, RATE_BPS, attach};
use lab::raw::Raw;
use lab::transfers::{connect, patient, send, send_on_all, send_whole, transfer};
use lab::{Agent, LEFT, PORT, PortLab, RIGHT};
use libbpf_rs::{MapCore, MapFlags, MapHandle, Program};
use penstock_linux::link::{self, Change};
use penstock_linux::socket::set_number;
use penstock_linux::testkit::{Signal, alone, join, until};
use penstockd::attach::grant;
use penstockd::host::clock::monotonic_ns;
use penstockd::port::Side;
use penstockd::port::pins::program_pin;

/// Enough that slow senders overlap, too.
const LONG_BYTES: u64 = 10 * ANSWER_BYTES;

#[test]
fn nothing_is_lost_however_many_send_at_once() {
    let _alone = alone();
    for place in PLACES {
        let lab = Lab::new(place, &[]);
        for (flows, bytes) in [(32, ANSWER_BYTES), (126, ANSWER_BYTES), (126, LONG_BYTES)] {
            lab.at_once(flows, bytes);
            assert_eq!(lab.harm(), (0, 0), "{flows} of {bytes}, {place:?}");
        }
        let counted = lab.credit().counters;
        assert!(counted["grants"] >= 158, "{counted:?}");
        assert_eq!(counted["carriers_failed"], 0, "{counted:?}");
        lab.settles();
    }
}

/// The control: without Grant the same load overflows the port.
#[test]
fn the_same_load_overflows_a_port_without_it() {
    let _alone = alone();
    let lab = Lab::new(PLACES[1], &[]);
    let at = Agent {
        netns: lab.lab.netns("right"),
        pins: lab.lab.pins(),
    };
    at.ok(&["pause", "eth0"]);
    lab.at_once(126, LONG_BYTES);
    assert!(
        lab.harm().0 > 0,
        "nothing was dropped: the load is too small"
    );
}

/// Windows are 0 when the agent dies, and stay Grant's until its heartbeat is stale.
#[test]
fn flows_go_on_when_the_agent_dies() {
    let _alone = alone();
    for place in PLACES {
        let mut lab = Lab::new(place, &["--stale", "300 ms"]);
        let threads: Vec<_> = (0..64)
            .map(|id| {
                lab.lab.spawn("left", move || {
                    let mut stream = connect().unwrap();
                    for _ in 0..4 {
                        send(&mut stream, id, 100_000).unwrap();
                    }
                })
            })
            .collect();
        until("flows wait", || lab.credit().waiting > 16);
        let before = lab.passed("stale");
        lab.agent.signal(Signal::KILL);
        let _ = lab.agent.wait();
        for thread in threads {
            join(thread, LIMIT);
        }
        assert_eq!(lab.lab.tcp_counter("EstabResets"), 0, "{place:?}");
        assert_eq!(lab.credit().waiting, 0, "{place:?}");
        assert!(lab.passed("stale") > before, "{place:?}");
    }
}

/// Programs of another version give way to today's, which follow their flows from the middle on.
#[test]
fn flows_of_another_version_are_followed() {
    let _alone = alone();
    const FLOWS: u64 = 6;
    for place in PLACES {
        let mut lab = Lab::new(place, &[]);
        let left = lab.lab.netns("left");
        let mut streams: Vec<_> = (0..FLOWS)
            .map(|_| left.run(connect).unwrap().unwrap())
            .collect();
        send_on_all(left, &mut streams, 1000);
        lab.agent.signal(Signal::KILL);
        let _ = lab.agent.wait();
        let pin = lab.port.folder.join("grant_config");
        let config = MapHandle::from_pinned_path(pin).unwrap();
        let mut value = config.lookup(&[0; 4], MapFlags::ANY).unwrap().unwrap();
        value[0] -= 1; // `abi`
        config.update(&[0; 4], &value, MapFlags::ANY).unwrap();
        let unreadable = grant::status(&lab.port.folder).unwrap_err();
        assert!(unreadable.to_string().contains("another version"));

        let (netns, pins) = (lab.lab.netns(place.1), lab.lab.pins());
        Agent { netns, pins }.ok(&[&attach(place)[..], &["--stale", "60 s"]].concat());
        assert_eq!(lab.credit().counters["grants"], 0, "{place:?}");
        // New ones come first, and are not taken for those.
        let mut new: Vec<_> = (0..FLOWS)
            .map(|_| left.run(connect).unwrap().unwrap())
            .collect();
        send_on_all(left, &mut new, 1000);
        streams.append(&mut new);
        send_on_all(left, &mut streams, 300_000);
        drop(streams); // no agent takes credit back
        assert!(lab.credit().counters["grants"] >= FLOWS, "{place:?}");
        assert_eq!(lab.lab.tcp_counter("EstabResets"), 0, "{place:?}");
        lab.settles();
    }
}

/// Both ends of a connection send so much, and read what the other sends.
fn exchange(stream: TcpStream, bytes: usize) {
    let mut out = patient(stream).unwrap();
    let mut input = out.try_clone().unwrap();
    let sender = std::thread::spawn(move || {
        let block = vec![7; bytes];
        out.write_all(&block).unwrap();
        out.shutdown(std::net::Shutdown::Write).unwrap();
    });
    let mut all = Vec::new();
    input.read_to_end(&mut all).unwrap();
    assert_eq!(all.len(), bytes);
    join(sender, LIMIT);
}

fn listen(lab: &Lab, address: (&str, u16)) -> TcpListener {
    let bind = || TcpListener::bind(address);
    lab.lab.netns("right").run(bind).unwrap().unwrap()
}

/// Data that leaves in the direction of the ACKs is no request for more.
#[test]
fn both_ends_may_send_at_once() {
    let _alone = alone();
    const FLOWS: usize = 48;
    const BYTES: usize = 150_000;
    for place in PLACES {
        let lab = Lab::new(place, &[]);
        let address = (RIGHT, 5003);
        let listener = listen(&lab, address);
        let server = lab.lab.spawn("right", move || {
            let accepted = (0..FLOWS).map(|_| listener.accept().unwrap().0);
            let threads = accepted.map(|stream| {
                // Not faster than they receive: else grants wait behind what they send, and are late.
                let rate = RATE_BPS as usize / 8 / FLOWS;
                let pacing = libc::SO_MAX_PACING_RATE;
                set_number(&stream, libc::SOL_SOCKET, pacing, rate as i32).unwrap();
                std::thread::spawn(|| exchange(stream, BYTES))
            });
            for thread in threads.collect::<Vec<_>>() {
                join(thread, LIMIT);
            }
        });
        let clients: Vec<_> = (0..FLOWS)
            .map(|_| {
                let work = move || exchange(TcpStream::connect(address).unwrap(), BYTES);
                lab.lab.spawn("left", work)
            })
            .collect();
        for thread in clients.into_iter().chain([server]) {
            join(thread, LIMIT);
        }
        assert_eq!(lab.harm(), (0, 0), "{place:?}");
        lab.settles();
    }
}

/// Clients that ask, and close their side: an ACK of Grant's own is behind their FIN. The last packets
/// of handshakes pass on two CPUs at once, now and then: often enough in so many rounds.
#[test]
fn clients_may_close_their_side_first() {
    let _alone = alone();
    const ROUNDS: usize = 20;
    const CLIENTS: usize = 96;
    for place in PLACES {
        let lab = Lab::new(place, &[]);
        let address = (LEFT, 5005);
        let bind = || TcpListener::bind(address);
        let listener = lab.lab.netns("left").run(bind).unwrap().unwrap();
        let server = lab.lab.spawn("left", move || {
            for _ in 0..ROUNDS {
                let accepted = (0..CLIENTS).map(|_| listener.accept().unwrap().0);
                let threads = accepted.map(|stream| std::thread::spawn(|| answer_all(stream)));
                for thread in threads.collect::<Vec<_>>() {
                    join(thread, LIMIT);
                }
            }
        });
        let ask = move || {
            let mut stream = patient(TcpStream::connect(address).unwrap()).unwrap();
            stream.write_all(&[7; 300]).unwrap();
            stream.shutdown(std::net::Shutdown::Write).unwrap();
            let mut all = Vec::new();
            assert_eq!(stream.read_to_end(&mut all).unwrap(), ANSWER.len());
        };
        for _ in 0..ROUNDS {
            let clients: Vec<_> = (0..CLIENTS).map(|_| lab.lab.spawn("right", ask)).collect();
            for thread in clients {
                join(thread, LIMIT);
            }
        }
        join(server, LIMIT);
        assert_eq!(lab.harm(), (0, 0), "{place:?}");
        assert_eq!(lab.lab.tcp_counter("TCPWinProbe"), 0, "{place:?}");
        lab.settles();
    }
}

static ANSWER: [u8; 20_000] = [7; 20_000];

fn answer_all(stream: TcpStream) {
    let mut stream = patient(stream).unwrap();
    stream.read_to_end(&mut Vec::new()).unwrap();
    stream.write_all(&ANSWER).unwrap();
}

/// Flows that wait while the parameters change get what these allow: none has to ask again.
#[test]
fn other_parameters_forget_no_flow() {
    let _alone = alone();
    for place in PLACES {
        let lab = Lab::new(place, &[]);
        let (netns, pins) = (lab.lab.netns(place.1), lab.lab.pins());
        let at = Agent { netns, pins };
        let send = |id| {
            lab.lab
                .spawn("left", move || transfer(id, LONG_BYTES).unwrap())
        };
        let threads: Vec<_> = (0..126).map(send).collect();
        until("flows wait", || lab.credit().waiting > 60);
        let grants = lab.credit().counters["grants"];
        for target in ["0.15", "0.25"] {
            let set = format!("window.target={target}");
            at.ok(&[&attach(place)[..], &["--set", &set]].concat());
        }
        for thread in threads {
            join(thread, LIMIT);
        }
        assert!(lab.credit().counters["grants"] > grants + 126, "{place:?}");
        assert_eq!(lab.harm(), (0, 0), "{place:?}");
        assert_eq!(lab.lab.tcp_counter("TCPWinProbe"), 0, "{place:?}");
        lab.settles();
    }
}

/// Clients that open connections and ask: once the port knows that they begin with little, no grant is made for a
/// request, nor for the answer that passes towards them.
#[test]
fn requests_of_new_connections_need_no_grant() {
    let _alone = alone();
    const CLIENTS: usize = 60;
    for place in PLACES {
        let lab = Lab::new(place, &[]);
        let address = (RIGHT, 5004);
        let listener = listen(&lab, address);
        let server = lab.lab.spawn("right", move || {
            for _ in 0..2 * CLIENTS {
                let mut stream = patient(listener.accept().unwrap().0).unwrap();
                stream.read_exact(&mut [0; 300]).unwrap();
                stream.write_all(&[7; 1000]).unwrap();
            }
        });
        let mut grants = [0, 0];
        for granted in &mut grants {
            let before = lab.credit().counters["grants"];
            let ask = move || {
                for _ in 0..CLIENTS {
                    let mut stream = patient(TcpStream::connect(address).unwrap()).unwrap();
                    stream.write_all(&[7; 300]).unwrap();
                    assert_eq!(stream.read_to_end(&mut Vec::new()).unwrap(), 1000);
                }
            };
            join(lab.lab.spawn("left", ask), LIMIT);
            *granted = lab.credit().counters["grants"] - before;
        }
        assert!(lab.credit().short_openers > 0.9, "{place:?}");
        join(server, LIMIT);
        assert!(grants[0] > 20, "{grants:?}, {place:?}");
        assert_eq!(grants[1], 0, "{place:?}");
        lab.settles();
    }
}

/// Headers of ACKs are noted again in each unit of 2^30 ns.
fn unit_now() -> u64 {
    monotonic_ns() >> 30
}

/// As /proc/net/tcp has it between two columns.
const FIN_WAIT_2: &str = " 05 ";

/// Whether headers of ACKs to the sender at this TCP port are noted.
fn is_noted(lab: &Lab, port: u16) -> bool {
    let peers = MapHandle::from_pinned_path(lab.port.folder.join("grant_peers")).unwrap();
    (1u32..16).any(|flow| {
        let peer = peers.lookup(&flow.to_ne_bytes(), MapFlags::ANY).unwrap();
        peer.unwrap()
            .windows(2)
            .any(|two| two == port.to_be_bytes())
    })
}

/// The entry of a flow that has ended is the next one's; its later packets do not take it back.
#[test]
fn an_ended_flow_redirects_no_grants() {
    let _alone = alone();
    for place in PLACES {
        let lab = Lab::new(place, &[]);
        let (left, right) = (lab.lab.netns("left"), lab.lab.netns("right"));
        let address = (RIGHT, 5003);
        // All of this within a unit, and no silence of a second, after which flows are forgotten.
        let unit = unit_now();
        until("a unit begins", || unit_now() > unit);
        std::thread::sleep(std::time::Duration::from_millis(500));
        let listener = right.run(|| TcpListener::bind(address)).unwrap().unwrap();
        let old = left.run(|| TcpStream::connect(address)).unwrap().unwrap();
        let mut old = patient(old).unwrap();
        // It does not read: the ACK of the end is the last packet before the next flow has the entry.
        let (mut its_receiver, _) = listener.accept().unwrap();
        old.write_all(&[7; 3000]).unwrap();
        old.shutdown(std::net::Shutdown::Write).unwrap();
        until("its end is acknowledged", || {
            let sockets = left.run(|| std::fs::read_to_string("/proc/thread-self/net/tcp"));
            sockets.unwrap().unwrap().contains(FIN_WAIT_2)
        });
        let mut next = left.run(connect).unwrap().unwrap();
        send(&mut next, 1, 1000).unwrap();
        let port = next.local_addr().unwrap().port();
        assert!(is_noted(&lab, port), "{place:?}");
        let unit = unit_now();
        until("headers are noted again", || unit_now() > unit);
        its_receiver.write_all(&[7]).unwrap();
        old.read_exact(&mut [0]).unwrap();
        assert!(is_noted(&lab, port), "{place:?}");
        send(&mut next, 1, 300_000).unwrap();
    }
}

/// However a sender puts segments together, and wherever windows cut them: a message is one.
#[test]
fn super_packets_end_no_messages() {
    let _alone = alone();
    let lab = Lab::new(PLACES[0], &[]);
    let left = lab.lab.netns("left");
    let joins = || link::change("eth0", &[Change::GsoMaxSegments(64)]);
    left.run(joins).unwrap().unwrap();
    let mut stream = left.run(connect).unwrap().unwrap();
    // All of it at once: where a writer comes late, what it wrote last ends as a message does.
    set_number(&stream, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, 64_000_000).unwrap();
    send_whole(&mut stream, 1, 20_000_000).unwrap();
    let sizes = lab.credit().sizes;
    assert!(sizes.iter().sum::<u32>() < 20, "{sizes:?}");
}

/// `penstockd limit` is Grant at the side `limit`.
#[test]
fn a_limit_drops_nothing() {
    let _alone = alone();
    let words = ["limit", "eth0", "--ingress", "50mbit", "--stay"];
    let lab = Lab::with("right", "eth0", &words);
    lab.at_once(32, 100_000);
    assert_eq!(lab.harm(), (0, 0));
    let credit = lab.credit();
    assert_eq!((credit.side, credit.rate_bps), ("limit", 50_000_000));
    assert!(credit.waits.iter().sum::<u64>() >= 32, "{credit:?}");
    let at = Agent {
        netns: lab.lab.netns("right"),
        pins: lab.lab.pins(),
    };
    let (succeeded, printed) =
        at.attempt(&["observe", "eth0", "--for", "1 ms", "--rate", "1 Gb/s"]);
    assert!(!succeeded && printed.contains("sees no queue"), "{printed}");
    lab.settles();
}

/// SYNs, data and ACKs of connections that do not exist.
#[test]
fn forged_packets_open_nothing() {
    let _alone = alone();
    let lab = Lab::new(PLACES[1], &[]);
    lab.at_once(1, ANSWER_BYTES);
    lab.settles();
    let before = lab.credit().counters;
    let (left, right) = (
        lab.lab.netns("left").run(|| Raw::new("eth0")).unwrap(),
        lab.lab.netns("right").run(|| Raw::new("eth0")).unwrap(),
    );
    for number in 0..2000u16 {
        let forged = |flags, payload| {
            Segment::new(LEFT, RIGHT).with(|s| {
                (s.source_port, s.destination_port) = (1024 + number, 5002);
                (s.flags, s.payload) = (flags, payload);
            })
        };
        left.send_whole(&forged(SYN, 0).frame());
        left.send_whole(&forged(ACK, 1000).frame());
        right.send_whole(&forged(ACK, 100).reversed().frame());
    }
    lab.at_once(4, ANSWER_BYTES);
    lab.settles();
    let after = lab.credit().counters;
    let grants = after["grants"] - before["grants"];
    assert!((4..100).contains(&grants), "{grants} grants");
    assert_eq!(lab.lab.tcp_counter("EstabResets"), 0);
}

/// Timestamps, as options of a segment.
const TIMESTAMPS: [u8; 12] = [1, 1, 8, 10, 0, 0, 0, 9, 0, 0, 0, 8];

/// Grant's programs at a port, to be run with packets.
struct Programs {
    both: [OwnedFd; 2],
    index: u32,
}

impl Programs {
    fn attach(lab: &PortLab, side: &str) -> Programs {
        let words = ["attach", PORT, "--scheme", "grant", "--side", side];
        let rate = ["--rate", "100 Mb/s", "--buffer", "128 kB"];
        lab.ok(&[&words[..], &rate].concat());
        let pinned =
            |side| Program::fd_from_pinned_path(program_pin(&lab.port_folder(), side)).unwrap();
        Programs {
            both: Side::BOTH.map(pinned),
            index: lab.near().run(|| link::get(PORT)).unwrap().unwrap().index,
        }
    }

    /// The verdict on a packet that leaves, or arrives, and the packet as it went on. None: the kernel takes no such
    /// packet, as it ends within its first header.
    fn pass(&self, leaves: bool, frame: &[u8]) -> Option<(i32, Vec<u8>)> {
        match run(&self.both[usize::from(!leaves)], self.index, frame) {
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) && frame.len() < 54 => None,
            done => {
                let done = done.unwrap_or_else(|error| panic!("{error}: {frame:02x?}"));
                Some((done.verdict, done.packet))
            }
        }
    }
}

/// Whatever a packet is, it passes, and no more than its window and checksum change.
#[test]
fn packets_with_random_faults_pass_unharmed() {
    let _alone = alone();
    let lab = PortLab::quiet();
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = |below: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        (random % below as u64) as usize
    };
    for side in ["port", "receiver", "limit"] {
        let programs = Programs::attach(&lab, side);
        let mut lowered = 0;
        for round in 0..3000u32 {
            let [near, far] = match round % 2 {
                0 => ["10.0.0.1", "10.0.0.2"],
                _ => ["fd00::1", "fd00::2"],
            };
            // A handshake and some packets of a flow, each with a chance of faults.
            let flow = Segment::new(near, far).with(|s| s.source_port = round as u16 | 1024);
            let syn = Segment::syn_options(1460, 7);
            let steps = [
                flow.with(|s| (s.flags, s.options) = (SYN, syn.clone())),
                flow.reversed().with(|s| {
                    (s.flags, s.seq, s.ack) = (SYN | ACK, 2000, 1001);
                    s.options = syn.clone();
                }),
                flow.with(|s| (s.seq, s.ack, s.options) = (1001, 2001, TIMESTAMPS.to_vec())),
                flow.with(|s| {
                    (s.seq, s.ack, s.payload) = (1001, 2001, 100);
                    s.options = TIMESTAMPS.to_vec();
                }),
                flow.reversed().with(|s| {
                    (s.seq, s.ack, s.payload) = (2001, 1101, 1448);
                    s.options = TIMESTAMPS.to_vec();
                }),
            ];
            for step in &steps {
                let leaves = step.source == flow.source;
                let mut frame = step.frame();
                if next(3) == 0 {
                    for _ in 0..=next(3) {
                        let at = next(frame.len());
                        frame[at] = next(256) as u8;
                    }
                }
                if next(10) == 0 {
                    frame.truncate(14 + next(frame.len() - 14));
                }
                if frame.len() < 15 {
                    continue;
                }
                let Some((verdict, out)) = programs.pass(leaves, &frame) else {
                    continue;
                };
                assert_eq!(verdict, -1, "{frame:02x?}");
                assert_eq!(out.len(), frame.len());
                let differs = |(_, (a, b)): &(usize, (&u8, &u8))| a != b;
                let all = frame.iter().zip(&out).enumerate().filter(differs);
                let places: Vec<usize> = all.map(|(place, _)| place).collect();
                let (Some(first), Some(last)) = (places.first(), places.last()) else {
                    continue;
                };
                assert!(last - first < 4, "{places:?} of {frame:02x?}");
                lowered += 1;
            }
        }
        assert!(lowered > 100, "{side}: {lowered} windows");
        lab.ok(&["detach", PORT]);
    }
}

/// Flows beyond those that there is room for pass untouched.
#[test]
fn a_full_table_leaves_flows_alone() {
    let _alone = alone();
    let lab = Lab::new(PLACES[0], &["--flows", "64"]);
    lab.at_once(126, 20_000);
    assert!(lab.passed("table_full") > 0);
    assert_eq!(lab.lab.tcp_counter("EstabResets"), 0);
    lab.settles();
}
