// SPDX-License-Identifier: Apache-2.0
//! A port's program that is to run while no packet passes, if its scheme has one: the timer of last
//! resort. It gets a packet of the agent's, which it may send copies of.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, anyhow};
use libbpf_rs::Program;

use crate::host::bpf::{TestRun, context_on, test_run};

/// Name of the pin, in the port's folder.
pub const TIMER: &str = "timer";

/// Between two runs while there is something to wait for.
const BUSY: Duration = Duration::from_micros(500);

/// And otherwise.
pub const IDLE: Duration = Duration::from_millis(10);

/// The program of a port.
pub struct Timer {
    program: OwnedFd,
    pin: PathBuf,
    index: u32,
}

impl Timer {
    /// The timer of the port whose pins are in `folder`, on the interface with this index; none if its
    /// scheme has none.
    pub fn open(folder: &Path, index: u32) -> Option<Timer> {
        let pin = folder.join(TIMER);
        let program = Program::fd_from_pinned_path(&pin).ok()?;
        Some(Timer {
            program,
            pin,
            index,
        })
    }

    /// Runs the program; returns when it is to run again.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn run(&self) -> Result<Duration> {
        if !self.pin.exists() {
            return Ok(IDLE);
        }
        match Timer::once(self.program.as_fd(), self.index)? {
            0 => Ok(IDLE),
            _ => Ok(BUSY),
        }
    }

    /// Runs a program with a packet on the interface with this index, 0 for any; returns what it returned.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn once(program: BorrowedFd<'_>, index: u32) -> Result<u32> {
        // Ethernet, IPv4, TCP with timestamps: as large as most ACKs.
        let mut packet = [0u8; 66];
        packet[12..15].copy_from_slice(&[0x08, 0x00, 0x45]);
        packet[17] = 52;
        packet[23] = libc::IPPROTO_TCP as u8;
        packet[46] = 0x80;
        let run = TestRun {
            context: Some(&mut context_on(index)),
            packet: Some(&packet),
            ..Default::default()
        };
        let result = test_run(&program, run).map_err(|error| anyhow!("timer: {error}"))?;
        Ok(result.value)
    }
}
