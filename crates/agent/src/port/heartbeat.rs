// SPDX-License-Identifier: Apache-2.0
//! The agent's side of the heartbeat. A port whose heartbeat is stale passes packets untouched.
//!
//! One thread renews the heartbeats of all ports, and takes no lock: neither a slow attach, nor a
//! lock that another process holds, nor a slow sweep makes a port stale. A second thread sweeps.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use libbpf_rs::{MapCore, MapHandle, Program, libbpf_sys as sys};
use penstock_linux::note;

use super::PinsArg;
use super::maps::beat;
use super::pins::SWEEP;
use super::timer::{self, Timer};
use crate::host::bpf::{TestRun, program_info, test_run};
use crate::host::rounds::Rounds;

/// Default interval between heartbeats, which is also that of expiring idle flows.
pub const EVERY: Duration = Duration::from_millis(100);

/// The shortest interval.
pub const SHORTEST: Duration = Duration::from_millis(10);

/// So many intervals a port outlives at least before it is stale, as a thread may be late.
pub const BEATS: u32 = 4;

/// Keeps ports alive, and the tables of flows swept, on two threads that end when it is dropped.
pub struct Keeper {
    beats: Rounds<Beat>,
    sweeps: Rounds<Sweep>,
    timers: Rounds<Timer>,
    kept: Mutex<Kept>,
}

/// The ports, and what they share.
#[derive(Default)]
struct Kept {
    /// By interface: the kernel's number of the map of heartbeats.
    ports: BTreeMap<String, u32>,
    /// By that number. One is enough, unless all ports were detached and attached again meanwhile.
    heartbeats: BTreeMap<u32, Arc<MapHandle>>,
}

/// The heartbeat of one port.
struct Beat {
    map: Arc<MapHandle>,
    slot: u32,
}

impl Keeper {
    /// Starts the threads, which do both once in each `interval`.
    pub fn start(interval: Duration) -> Keeper {
        let mut errors = Errors::default();
        let beats = Rounds::start(interval, move |interface, heartbeat: Option<&Beat>| {
            let beaten = heartbeat.map_or(Ok(()), |heartbeat| beat(&heartbeat.map, heartbeat.slot));
            errors.log_once(interface, beaten);
        });
        let mut errors = Errors::default();
        let sweeps = Rounds::start(interval, move |name, sweep: Option<&Sweep>| {
            errors.log_once(name, sweep.map_or(Ok(()), Sweep::run));
        });
        let mut errors = Errors::default();
        let mut is_urgent = false;
        let timers = Rounds::start_paced(timer::IDLE, move |interface, timer: Option<&Timer>| {
            let Some(timer) = timer else {
                errors.log_once(interface, Ok(()));
                return None;
            };
            if !is_urgent {
                is_urgent = true;
                // Of this thread alone, which is late where the machine is busy; it may not be permitted.
                let _ = rustix::process::setpriority_process(None, -20);
            }
            let next = timer.run();
            let pause = next.as_ref().ok().copied();
            errors.log_once(interface, next.map(drop));
            pause
        });
        Keeper {
            beats,
            sweeps,
            timers,
            kept: Mutex::default(),
        }
    }

    /// Keeps `interface` alive from now on. Its pins may go: their objects are held.
    ///
    /// # Errors
    /// The port is not attached, or its pins cannot be opened.
    pub fn keep(&self, pins: &PinsArg, interface: &str) -> Result<()> {
        let port = pins.open(interface)?;
        port.beat()?;
        let map = port.map("heartbeat")?;
        let number = map.info()?.info.id;
        let sweep = Sweep::open(&pins.shared())?;
        let mut kept = self.kept();
        let map = kept.heartbeats.entry(number).or_insert_with(|| map.into());
        let beat = Beat {
            map: Arc::clone(map),
            slot: port.slot(),
        };
        self.beats.insert(interface, beat);
        match Timer::open(&port.folder, port.config()?.ifindex) {
            Some(timer) => self.timers.insert(interface, timer),
            None => self.timers.remove(interface),
        }
        // Again for each port, as another build has another program.
        self.sweeps.insert(&number.to_string(), sweep);
        kept.ports.insert(interface.to_owned(), number);
        self.drop_unused(&mut kept);
        Ok(())
    }

    /// Lets a port become stale.
    pub fn release(&self, interface: &str) {
        self.beats.remove(interface);
        self.timers.remove(interface);
        let mut kept = self.kept();
        kept.ports.remove(interface);
        self.drop_unused(&mut kept);
    }

    /// Changes the interval.
    pub fn set_interval(&self, interval: Duration) {
        self.beats.set_interval(interval);
        self.sweeps.set_interval(interval);
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, Kept> {
        // No thread that holds it can panic half-way.
        self.kept
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Closes the maps that no port uses.
    fn drop_unused(&self, kept: &mut Kept) {
        let Kept { ports, heartbeats } = kept;
        heartbeats.retain(|number, _| {
            let is_used = ports.values().any(|used| used == number);
            if !is_used {
                self.sweeps.remove(&number.to_string());
            }
            is_used
        });
    }
}

/// The last error of each port, so that it is logged once.
#[derive(Default)]
pub struct Errors(BTreeMap<String, String>);

impl Errors {
    /// Logs an error unless it is the same as the last of this port.
    pub fn log_once(&mut self, interface: &str, result: Result<()>) {
        let Err(error) = result else {
            self.0.remove(interface);
            return;
        };
        let line = format!("{error:#}");
        if self.0.get(interface) != Some(&line) {
            note!("{line}");
            self.0.insert(interface.to_owned(), line);
        }
    }

    /// Forgets the errors of others than these.
    pub fn retain(&mut self, mut stays: impl FnMut(&str) -> bool) {
        self.0.retain(|interface, _| stays(interface));
    }

    /// The last errors of those that `are_meant`.
    pub fn lines(&self, are_meant: impl Fn(&str) -> bool) -> Vec<&str> {
        let meant = self.0.iter().filter(|(name, _)| are_meant(name));
        meant.map(|(_, line)| line.as_str()).collect()
    }

    /// Forgets all errors.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

/// More runs than a sweep can take: each visits thousands of flows.
const RUNS: u32 = 1 << 16;

/// The program that expires idle flows of all ports.
pub struct Sweep {
    program: OwnedFd,
    /// Whether it is a program for packets, as before Linux 6.6.
    takes_packet: bool,
}

impl Sweep {
    /// Opens the program among the pins that all ports share.
    ///
    /// # Errors
    /// It is not pinned.
    pub fn open(shared: &Path) -> Result<Sweep> {
        let pin = shared.join(SWEEP);
        let program = Program::fd_from_pinned_path(&pin)
            .map_err(|error| anyhow!("{}: {error}", pin.display()))?;
        let info = program_info(&program);
        Ok(Sweep {
            program,
            takes_packet: info.is_some_and(|info| info.type_ == sys::BPF_PROG_TYPE_SCHED_CLS),
        })
    }

    /// Expires idle flows.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn run(&self) -> Result<()> {
        for _ in 0..RUNS {
            if !self.run_slice()? {
                return Ok(());
            }
        }
        bail!("the sweep does not end")
    }

    /// A part of a sweep; whether it goes on.
    fn run_slice(&self) -> Result<bool> {
        let run = TestRun {
            packet: self.takes_packet.then_some(&[0; 64]),
            ..Default::default()
        };
        let result = test_run(&self.program, run).map_err(|error| anyhow!("sweep: {error}"))?;
        Ok(result.value == 1)
    }
}
