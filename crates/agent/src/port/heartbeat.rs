// SPDX-License-Identifier: Apache-2.0
//! The agent's side of the heartbeat. A port whose heartbeat is stale passes packets untouched.
//!
//! One thread renews the heartbeats of all ports, and takes no lock: neither a slow attach, nor a
//! lock that another process holds, nor a slow sweep makes a port stale. A second thread sweeps.

use std::collections::BTreeMap;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use libbpf_rs::{MapHandle, Program, libbpf_sys as sys};

use super::maps::beat;
use super::pins::SWEEP;
use super::{PinsArg, Port};
use crate::host::bpf::program_info;
use crate::host::rounds::Rounds;

/// Default interval between heartbeats, which is also that of expiring idle flows.
pub const EVERY: Duration = Duration::from_millis(100);

/// Keeps ports alive, and their tables of flows swept, on two threads that end when it is dropped.
pub struct Keeper {
    beats: Rounds<MapHandle>,
    sweeps: Rounds<Sweep>,
}

impl Keeper {
    /// Starts the threads, which do both once in each `interval`.
    pub fn start(interval: Duration) -> Keeper {
        let mut errors = Errors::default();
        let beats = Rounds::start(interval, move |interface, heartbeat: &MapHandle| {
            errors.log_once(interface, beat(heartbeat));
        });
        let mut errors = Errors::default();
        let sweeps = Rounds::start(interval, move |interface, sweep: &Sweep| {
            errors.log_once(interface, sweep.run());
        });
        Keeper { beats, sweeps }
    }

    /// Keeps `interface` alive from now on. Its pins may go: their objects are held.
    ///
    /// # Errors
    /// The port is not attached, or its pins cannot be opened.
    pub fn keep(&self, pins: &PinsArg, interface: &str) -> Result<()> {
        let port = pins.open(interface)?;
        let sweep = Sweep::open(&port)?;
        port.beat()?;
        self.beats.insert(interface, port.map("heartbeat")?);
        self.sweeps.insert(interface, sweep);
        Ok(())
    }

    /// Lets a port become stale.
    pub fn release(&self, interface: &str) {
        self.beats.remove(interface);
        self.sweeps.remove(interface);
    }

    /// Changes the interval.
    pub fn set_interval(&self, interval: Duration) {
        self.beats.set_interval(interval);
        self.sweeps.set_interval(interval);
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
            // The reader of the log may be gone.
            let _ =
                std::io::Write::write_all(&mut std::io::stderr(), format!("{line}\n").as_bytes());
            self.0.insert(interface.to_owned(), line);
        }
    }

    /// Forgets all errors.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

/// The program that expires idle flows of one port.
struct Sweep {
    program: OwnedFd,
    /// Whether it is a program for packets, as before Linux 6.6.
    takes_packet: bool,
    interface: String,
}

impl Sweep {
    fn open(port: &Port) -> Result<Sweep> {
        let pin = port.folder.join(SWEEP);
        let program = Program::fd_from_pinned_path(&pin)
            .map_err(|error| anyhow!("{}: {error}", pin.display()))?;
        let info = program_info(&program);
        Ok(Sweep {
            program,
            takes_packet: info.is_some_and(|info| info.type_ == sys::BPF_PROG_TYPE_SCHED_CLS),
            interface: port.interface.clone(),
        })
    }

    /// Expires idle flows.
    fn run(&self) -> Result<()> {
        let packet = [0u8; 64];
        let mut options = sys::bpf_test_run_opts {
            sz: size_of::<sys::bpf_test_run_opts>() as sys::size_t,
            ..Default::default()
        };
        if self.takes_packet {
            options.data_in = packet.as_ptr().cast();
            options.data_size_in = packet.len() as u32;
            options.repeat = 1;
        }
        // SAFETY: the descriptor and what the options point to are valid for the call.
        let status =
            unsafe { sys::bpf_prog_test_run_opts(self.program.as_raw_fd(), &raw mut options) };
        if status < 0 {
            let error = std::io::Error::from_raw_os_error(-status);
            bail!("{}: sweep: {error}", self.interface);
        }
        Ok(())
    }
}
