// SPDX-License-Identifier: Apache-2.0
//! Hundreds of interfaces that a pattern of the configuration attaches as they come and detaches as
//! they go. A port with traffic notices nothing of it, and nothing is left behind.
//!
//! PENSTOCK_MANY_PORTS sets how many there are at once.

#![allow(clippy::unwrap_used)]

#[path = "common/mod.rs"]
mod common;
mod lab;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use common::packet::{ACK, SYN, Segment};
use lab::raw::Raw;
use lab::stream::Stream;
use lab::{LIMIT, PORT, PortLab};
use libbpf_rs::query::LinkInfoIter;
use libbpf_rs::{MapCore, MapFlags};
use penstock_linux::testkit::{Process, from_environment, join, until};
use penstockd::host::bpf::pinned;
use penstockd::port::pins::program_pin;
use penstockd::port::plain::of_bytes;
use penstockd::port::{PinsArg, Port, Side, counters};
use penstockd::skel::port::types::{flow_key4, port_config};

/// Ports at once, apart from the one with traffic.
const PORTS: u64 = 300;
/// Ports that have flows of their own.
const WITH_FLOWS: u32 = 20;
const STALE: Duration = Duration::from_secs(2);

fn ports() -> u32 {
    from_environment("PENSTOCK_MANY_PORTS", PORTS) as u32
}

/// Looks at the age of a port's heartbeat all the time.
struct Watch {
    oldest_ns: Arc<AtomicU64>,
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Watch {
    fn start(pins: PinsArg) -> Watch {
        let (oldest_ns, is_over) = (Arc::new(AtomicU64::new(0)), Arc::default());
        let (oldest, over) = (oldest_ns.clone(), Arc::clone(&is_over));
        let thread = std::thread::spawn(move || {
            let port = pins.open(PORT).unwrap();
            while !AtomicBool::load(&over, Ordering::Relaxed) {
                oldest.fetch_max(port.heartbeat_age_ns().unwrap(), Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(2));
            }
        });
        Watch {
            oldest_ns,
            is_over,
            thread,
        }
    }

    /// The greatest age seen.
    fn stop(self) -> Duration {
        self.is_over.store(true, Ordering::Relaxed);
        join(self.thread, LIMIT);
        Duration::from_nanos(self.oldest_ns.load(Ordering::Relaxed))
    }
}

struct Many {
    lab: PortLab,
    daemon: Process,
    stream: Stream,
    /// The names of the interfaces that exist.
    interfaces: BTreeSet<String>,
}

impl Many {
    fn start() -> Many {
        let lab = PortLab::quiet();
        lab.congest();
        lab.configure_with(
            "",
            &format!(
                "[port.{PORT}]\nscheme = \"fairq\"\n[port.\"lxc*\"]\nscheme = \"fairq\"\nbuffer = \"1 MB\"\n"
            ),
        );
        let daemon = lab.start_daemon(None);
        until("the daemon attaches", || attached(&lab).contains(PORT));
        Many {
            stream: Stream::start(&lab),
            daemon,
            lab,
            interfaces: BTreeSet::from([PORT.to_owned()]),
        }
    }

    fn port(&self) -> Port {
        self.lab.agent().port(PORT)
    }

    fn rewritten(&self) -> u64 {
        self.port().counters().unwrap().acks_rewritten
    }

    /// Changes interfaces by lines of ip(8).
    fn ip(&self, lines: &[String]) {
        let file = self.lab.folder.path().join("batch");
        std::fs::write(&file, lines.join("\n")).unwrap();
        self.lab.run(&format!("ip -batch {}", file.display()));
    }

    fn create(&mut self, numbers: impl Iterator<Item = u32>) {
        let numbers: Vec<u32> = numbers.collect();
        let lines = numbers.iter().flat_map(|n| {
            [
                format!("link add lxc{n} up group 7 type veth peer name peer{n}"),
                format!("link set peer{n} up"),
            ]
        });
        self.ip(&lines.collect::<Vec<_>>());
        self.interfaces
            .extend(numbers.iter().map(|n| format!("lxc{n}")));
    }

    /// Deletes them one by one.
    fn delete(&mut self, numbers: impl Iterator<Item = u32>) {
        let names: Vec<String> = numbers.map(|n| format!("lxc{n}")).collect();
        self.ip(&names
            .iter()
            .map(|name| format!("link del {name}"))
            .collect::<Vec<_>>());
        names
            .iter()
            .for_each(|name| assert!(self.interfaces.remove(name)));
    }

    /// All at once, as the kernel does when a namespace goes.
    fn delete_all(&mut self) {
        self.lab.run("ip link delete group 7");
        self.interfaces.retain(|name| name == PORT);
    }

    /// Waits until exactly the interfaces that exist are attached, and the port with traffic was under
    /// control meanwhile.
    fn follow(&self, what: &str) {
        let (begun, rewritten) = (Instant::now(), self.rewritten());
        let missing = || {
            attached(&self.lab)
                .symmetric_difference(&self.interfaces)
                .count()
        };
        let mut left = missing();
        while left > 0 {
            let before = left;
            until("another port comes or goes", || {
                left = missing();
                left < before
            });
        }
        println!("{what}: {:?}", begun.elapsed());
        until("ACKs are rewritten", || self.rewritten() > rewritten);
    }

    /// The first `count` ports have flows, whose data leaves by them, and a half-open one.
    fn make_flows(&self, count: u32) {
        for number in 0..count {
            let [port, peer] = ["lxc", "peer"].map(|stem| {
                let raw = || Raw::new(&format!("{stem}{number}"));
                self.lab.near().run(raw).unwrap()
            });
            let data = Segment::new("192.0.2.1", "192.0.2.2");
            let syn = data.with(|s| {
                (s.flags, s.seq) = (SYN, s.seq - 1);
                s.options = Segment::syn_options(1460, 7);
            });
            let answer = data.reversed().with(|s| {
                (s.flags, s.seq, s.ack) = (SYN | ACK, data.ack - 1, data.seq);
                s.options = Segment::syn_options(1460, 7);
            });
            port.send_whole(&syn.frame());
            peer.send_whole(&answer.frame());
            port.send_whole(&data.frame());
            port.send_whole(&syn.with(|s| s.source_port += 1).frame());
        }
        let owners = || owners(&self.port(), &["flows4"]).len();
        until("their flows are followed", || owners() as u32 > count);
    }
}

/// The ports that the daemon has attached.
fn attached(lab: &PortLab) -> BTreeSet<String> {
    let pins = PinsArg::at(lab.pins());
    let mut all = pins.interfaces().unwrap();
    // It marks them last.
    all.retain(|name| pins.of(name).join("by_daemon").exists());
    all.into_iter().collect()
}

/// The numbers of the ports that have entries in these maps.
fn owners(port: &Port, maps: &[&str]) -> BTreeSet<u32> {
    let mut owners = BTreeSet::new();
    for name in maps {
        let map = port.map(name).unwrap();
        let number = |key: Vec<u8>| match of_bytes::<flow_key4>(&key) {
            Some(key) => key.port,
            // Of IPv6, it is last as well.
            None => u32::from_ne_bytes(key[key.len() - 4..].try_into().unwrap()),
        };
        owners.extend(map.keys().map(number));
    }
    owners
}

fn slots_used(port: &Port) -> u32 {
    let map = port.map("slots_used").unwrap();
    let value = map.lookup(&0u32.to_ne_bytes(), MapFlags::ANY).unwrap();
    of_bytes(&value.unwrap()).unwrap()
}

fn slots_taken(port: &Port) -> usize {
    let map = port.map("config").unwrap();
    let slots = 0..map.max_entries();
    let configs = slots.filter_map(|slot| map.lookup(&slot.to_ne_bytes(), MapFlags::ANY).unwrap());
    let taken = |value: &Vec<u8>| of_bytes::<port_config>(value).unwrap().ifindex != 0;
    configs.filter(taken).count()
}

/// Links of the programs that all ports share.
fn links(port: &Port) -> usize {
    let programs = Side::BOTH.map(|side| pinned(&program_pin(&port.folder, side)).unwrap());
    LinkInfoIter::default()
        .filter(|link| programs.contains(&link.prog_id))
        .count()
}

fn descriptors(daemon: &Process) -> usize {
    let folder = format!("/proc/{}/fd", daemon.id());
    std::fs::read_dir(folder).unwrap().count()
}

/// The same, once it has not changed for a second.
fn settled_descriptors(daemon: &Process) -> usize {
    let mut seen = (descriptors(daemon), Instant::now());
    until("the daemon opens and closes nothing", || {
        let now = descriptors(daemon);
        if now != seen.0 {
            seen = (now, Instant::now());
        }
        seen.1.elapsed() > Duration::from_secs(1)
    });
    seen.0
}

fn passed_stale(port: &Port) -> u64 {
    counters::named(&port.counters().unwrap())["passed_stale"]
}

#[test]
fn hundreds_of_ports_come_and_go_next_to_one_with_traffic() {
    let all = ports();
    let mut many = Many::start();
    let watch = Watch::start(PinsArg::at(many.lab.pins()));
    let before = (
        passed_stale(&many.port()),
        settled_descriptors(&many.daemon),
    );

    many.create(0..all);
    many.follow(&format!("{all} come"));
    many.make_flows(WITH_FLOWS.min(all));
    assert_eq!(slots_taken(&many.port()) as u32, all + 1);
    assert_eq!(links(&many.port()) as u32, 2 * (all + 1));
    // The daemon meets some before and some after they are gone again.
    many.create(all..all + all / 4);
    many.delete((0..all + all / 4).step_by(2));
    many.follow("some come, half of all go");
    many.delete_all();
    many.follow("all go");
    many.create(0..all / 4);
    many.follow("a quarter comes again");
    let most = slots_used(&many.port());
    many.delete_all();
    many.follow("all go");

    assert!(most <= all + all / 4 + 1, "{most} slots for {all} ports");
    let port = many.port();
    assert_eq!((slots_taken(&port), links(&port)), (1, 2));
    let maps = ["flows4", "flows6", "half_own", "half_open"];
    until("the flows of other ports are deleted", || {
        owners(&port, &maps) == BTreeSet::from([port.id])
    });
    until("the daemon has closed what it had open for them", || {
        descriptors(&many.daemon) == before.1
    });
    let oldest = watch.stop();
    println!("the oldest heartbeat was of {oldest:?}");
    assert!(oldest < STALE, "the oldest heartbeat was of {oldest:?}");
    assert_eq!(passed_stale(&port), before.0, "ACKs passed a stale port");
    many.stream.stop();
    drop(many.daemon);
    many.lab.ok(&["detach", PORT]);
    assert!(!many.lab.pins().exists());
}

/// Commands do not wait for the end of a round in which the daemon attaches all of them.
#[test]
fn a_command_has_its_turn_while_the_daemon_attaches_hundreds() {
    let all = ports() / 3;
    let lab = PortLab::quiet();
    lab.configure_with(
        "",
        "[port.\"lxc*\"]\nscheme = \"fairq\"\nbuffer = \"1 MB\"\n",
    );
    let lines: Vec<String> = (0..all)
        .map(|n| format!("link add lxc{n} up type veth peer name peer{n}"))
        .collect();
    let batch = lab.folder.path().join("batch");
    std::fs::write(&batch, lines.join("\n")).unwrap();
    lab.run(&format!("ip -batch {}", batch.display()));
    let daemon = lab.start_daemon(None);
    until("the daemon attaches the first", || {
        !attached(&lab).is_empty()
    });

    let attach = ["attach", PORT, "--scheme", "hscc", "--buffer", "1 MB"];
    for words in [&attach[..], &["pause", PORT], &["detach", PORT]] {
        let begun = Instant::now();
        lab.ok(words);
        let took = begun.elapsed();
        let here = attached(&lab).len() as u32;
        println!("{words:?} took {took:?}; {here} of {all} were attached");
        assert!(here < all, "{words:?} waited for all ports");
    }
    until("all are attached", || attached(&lab).len() as u32 == all);
    assert!(!lab.log().contains("another process"), "{}", lab.log());
    drop(daemon);
    lab.ok(&["detach", "--all"]);
}
