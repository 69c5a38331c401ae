// SPDX-License-Identifier: Apache-2.0
//! Transfers of known bytes through a port whose agent is killed, restarted, upgraded, stopped
//! until its heartbeat is stale, reconfigured, and taken off: no flow is reset, no byte lost, and
//! throughput, drops and timeouts are those of undisturbed phases, with the scheme and without.
//!
//! PENSTOCK_CHAOS_SECONDS (`make chaos`: 180) is the duration.

#![allow(clippy::unwrap_used)]

mod lab;

use lab::transfers::{serve, transfer};
use lab::{PENSTOCKD, SwitchLab};
use penstock_linux::testkit::{Process, Signal, from_environment, join, until};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

const SENDERS: u64 = 16;
/// Time between two faults.
const PAUSE: Duration = Duration::from_millis(700);

/// The agent as an operator runs it, with its configuration and a second copy of its program.
struct Operator<'lab> {
    lab: &'lab SwitchLab,
    folder: PathBuf,
    daemon: Option<Process>,
    /// Longest life of a daemon.
    limit: Duration,
}

impl Operator<'_> {
    fn configure(&self, scheme: &str) {
        let text = format!(
            "[agent]\npins = \"{}\"\nstale = \"1 s\"\n[port.right]\nscheme = \"{scheme}\"\n",
            self.lab.pins().display()
        );
        std::fs::write(self.folder.join("penstockd.toml"), text).unwrap();
    }

    fn start(&mut self, program: &Path) {
        let config = self.folder.join("penstockd.toml");
        let daemon = self.lab.agent().daemon(program, &config, self.limit);
        self.daemon = Some(daemon);
    }

    fn upgraded(&self) -> PathBuf {
        let copy = self.folder.join("penstockd");
        if !copy.exists() {
            std::fs::copy(PENSTOCKD, &copy).unwrap();
        }
        copy
    }

    fn signal(&self, signal: Signal) {
        self.daemon.as_ref().unwrap().signal(signal);
    }

    /// One thing that may happen to an agent; returns its name.
    fn inject(&mut self, number: usize) -> &'static str {
        let schemes = ["hscc", "observe", "fairq-paper", "fairq"];
        match number % 7 {
            0 => {
                drop(self.daemon.take());
                std::thread::sleep(PAUSE);
                self.start(Path::new(PENSTOCKD));
                "killed and restarted"
            }
            1 => {
                self.configure(schemes[number / 7 % 4]);
                self.signal(Signal::HUP);
                "scheme changed by reloading"
            }
            2 => {
                drop(self.daemon.take());
                let copy = self.upgraded();
                self.start(&copy);
                "upgraded"
            }
            3 => {
                let scheme = schemes[(number / 7 + 1) % 4];
                self.lab
                    .agent()
                    .ok(&["attach", "right", "--scheme", scheme]);
                "scheme changed by attach"
            }
            4 => {
                self.signal(Signal::STOP);
                std::thread::sleep(Duration::from_millis(1500));
                self.signal(Signal::CONT);
                "stale and back"
            }
            5 => {
                drop(self.daemon.take());
                self.lab.agent().ok(&["detach", "right"]);
                std::thread::sleep(PAUSE);
                self.start(Path::new(PENSTOCKD));
                "detached and attached"
            }
            _ => {
                self.signal(Signal::TERM);
                assert!(self.daemon.take().unwrap().wait().success());
                self.start(Path::new(PENSTOCKD));
                "ended and restarted"
            }
        }
    }
}

/// What has passed so far.
struct Snapshot {
    at: Instant,
    moved: u64,
    drops: u64,
    timeouts: u64,
}

/// What passes in a second.
#[derive(Debug)]
struct Pace {
    bytes: f64,
    drops: f64,
    timeouts: f64,
}

impl Snapshot {
    fn pace(&self, later: &Snapshot) -> Pace {
        let seconds = later.at.duration_since(self.at).as_secs_f64();
        let rate = |before: u64, after: u64| (after - before) as f64 / seconds;
        Pace {
            bytes: rate(self.moved, later.moved),
            drops: rate(self.drops, later.drops),
            timeouts: rate(self.timeouts, later.timeouts),
        }
    }
}

#[test]
fn nothing_that_happens_to_the_agent_hurts_a_flow() {
    let seconds = from_environment("PENSTOCK_CHAOS_SECONDS", 10);
    let lab = SwitchLab::new(200_000_000, 65_536);
    let limit = Duration::from_secs(seconds + 120);
    lab.netns("right").run(serve).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut operator = Operator {
        lab: &lab,
        folder: folder.path().to_owned(),
        daemon: None,
        limit,
    };
    operator.configure("fairq");
    operator.start(Path::new(PENSTOCKD));

    let stop = Arc::new(AtomicBool::new(false));
    let (done, moved) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let senders: Vec<_> = (0..SENDERS)
        .map(|sender| {
            let (stop, done, moved) = (stop.clone(), done.clone(), moved.clone());
            lab.spawn("left", move || {
                for round in 0.. {
                    if stop.load(Ordering::Relaxed) {
                        break;
                    }
                    // Most last a fault or more; one of four is short.
                    let id = round * SENDERS + sender;
                    let bytes = if sender % 4 == 0 {
                        20_000
                    } else {
                        500_000 + id * 65_537 % 2_000_000
                    };
                    transfer(id, bytes)?;
                    done.fetch_add(1, Ordering::Relaxed);
                    moved.fetch_add(bytes, Ordering::Relaxed);
                }
                Ok::<(), std::io::Error>(())
            })
        })
        .collect();
    let snapshot = || Snapshot {
        at: Instant::now(),
        moved: moved.load(Ordering::Relaxed),
        drops: lab.drops(),
        timeouts: lab.tcp_counter("TCPTimeouts"),
    };
    let undisturbed = |what: &str| {
        // The first transfers of all begin at once.
        std::thread::sleep(PAUSE);
        let before = snapshot();
        std::thread::sleep(Duration::from_secs((seconds / 5).max(2)));
        let pace = before.pace(&snapshot());
        println!("undisturbed, {what}: {pace:.1?}");
        pace
    };
    until("the port is attached", || {
        lab.agent().attempt(&["status", "right", "--for", "1 ms"]).0
    });
    let served = undisturbed("fairq");
    drop(operator.daemon.take());
    lab.agent().ok(&["detach", "right"]);
    let without = undisturbed("no scheme");
    operator.start(Path::new(PENSTOCKD));
    let begun = Instant::now();
    let before = snapshot();
    let mut faults = 0;
    while begun.elapsed() < Duration::from_secs(seconds) || faults < 7 {
        std::thread::sleep(PAUSE);
        let before = moved.load(Ordering::Relaxed);
        let what = operator.inject(faults);
        println!(
            "{:5.1} s: {what}; {} kB since",
            begun.elapsed().as_secs_f32(),
            (moved.load(Ordering::Relaxed) - before) / 1000
        );
        faults += 1;
    }
    let pace = before.pace(&snapshot());
    println!("with {faults} faults: {pace:.1?}");
    stop.store(true, Ordering::Relaxed);
    for sender in senders {
        join(sender, limit).expect("every transfer ends with all its bytes");
    }
    // RSTs that answer what came after a connection's end are harmless, and printed only.
    let (resets, answers) = (lab.tcp_counter("EstabResets"), lab.tcp_counter("OutRsts"));
    let (done, moved) = (done.load(Ordering::Relaxed), moved.load(Ordering::Relaxed));
    println!(
        "{faults} faults in {:.0} s: {done} transfers, {} MB, {resets} flows reset ({answers} RSTs sent)",
        begun.elapsed().as_secs_f32(),
        moved / 1_000_000
    );
    drop(operator);
    assert_eq!(resets, 0, "flows were reset");
    assert!(
        pace.bytes > served.bytes.min(without.bytes) / 2.0,
        "less than half of what an undisturbed port carries"
    );
    assert!(
        pace.drops < 3.0 * served.drops.max(without.drops) + 100.0,
        "more drops than on an undisturbed port"
    );
    assert!(
        pace.timeouts < 3.0 * served.timeouts.max(without.timeouts) + 10.0,
        "more timeouts than on an undisturbed port"
    );
    assert!(
        done > 10 * SENDERS,
        "too little traffic to prove anything: {done} transfers"
    );
}
