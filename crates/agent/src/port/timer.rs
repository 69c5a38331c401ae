// SPDX-License-Identifier: Apache-2.0
//! A port's program that is to run while no packet passes, if its scheme has one: the timer of last
//! resort. It gets a packet of the agent's, which it may send copies of.

use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, bail};
use libbpf_rs::{Program, libbpf_sys as sys};

/// Name of the pin, in the port's folder.
pub const TIMER: &str = "timer";

/// Between two runs while there is something to wait for.
const BUSY: Duration = Duration::from_micros(500);

/// And otherwise.
pub const IDLE: Duration = Duration::from_millis(10);

/// Offset of `ifindex` in `struct __sk_buff`.
const IFINDEX: usize = 40;

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
        use std::os::fd::AsFd;
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
        let mut context = [0u8; IFINDEX + 4];
        context[IFINDEX..].copy_from_slice(&index.to_ne_bytes());
        let mut options = sys::bpf_test_run_opts {
            sz: size_of::<sys::bpf_test_run_opts>() as sys::size_t,
            data_in: packet.as_ptr().cast(),
            data_size_in: packet.len() as u32,
            ctx_in: context.as_ptr().cast(),
            ctx_size_in: context.len() as u32,
            repeat: 1,
            ..Default::default()
        };
        // SAFETY: the descriptor and what the options point to are valid for the call.
        let status = unsafe { sys::bpf_prog_test_run_opts(program.as_raw_fd(), &raw mut options) };
        if status < 0 {
            bail!("timer: {}", std::io::Error::from_raw_os_error(-status));
        }
        Ok(options.retval)
    }
}
