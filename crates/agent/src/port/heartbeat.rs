// SPDX-License-Identifier: Apache-2.0
//! The agent's side of the heartbeat. A port whose heartbeat is stale passes packets untouched.

use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use anyhow::{Result, anyhow, bail};
use libbpf_rs::{Program, libbpf_sys as sys};

use super::pins::SWEEP;
use super::{PinsArg, Port};
use crate::host::bpf::program_info;

/// Default interval between heartbeats, which is also that of expiring idle flows.
pub const EVERY: std::time::Duration = std::time::Duration::from_millis(100);

fn inode(folder: &Path) -> Option<u64> {
    std::fs::metadata(folder).ok().map(|folder| folder.ino())
}

/// A port whose heartbeat is renewed.
pub struct Heartbeat {
    /// Its maps.
    pub port: Port,
    /// Inode of the folder of its pins; a new folder has new maps.
    inode: u64,
    sweep: OwnedFd,
    /// Whether `sweep` is a program for packets, as before Linux 6.6.
    takes_packet: bool,
}

impl Heartbeat {
    /// Opens the maps of `interface`.
    ///
    /// # Errors
    /// The port is not attached, or its pins cannot be opened.
    pub fn open(pins: &PinsArg, interface: &str) -> Result<Heartbeat> {
        let port = pins.open(interface)?;
        let inode = inode(&port.folder).unwrap_or_default();
        let pin = port.folder.join(SWEEP);
        let sweep = Program::fd_from_pinned_path(&pin)
            .map_err(|error| anyhow!("{}: {error}", pin.display()))?;
        let takes_packet =
            program_info(&sweep).is_some_and(|info| info.type_ == sys::BPF_PROG_TYPE_SCHED_CLS);
        Ok(Heartbeat {
            port,
            inode,
            sweep,
            takes_packet,
        })
    }

    /// Whether these are still the pins of the port; not after it was detached and attached again.
    pub fn is_pinned(&self) -> bool {
        inode(&self.port.folder) == Some(self.inode)
    }

    /// Renews the heartbeat and expires idle flows.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn beat_and_sweep(&self) -> Result<()> {
        self.port.beat()?;
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
            unsafe { sys::bpf_prog_test_run_opts(self.sweep.as_raw_fd(), &raw mut options) };
        if status < 0 {
            let error = std::io::Error::from_raw_os_error(-status);
            bail!("{}: sweep: {error}", self.port.interface);
        }
        Ok(())
    }
}
