// SPDX-License-Identifier: Apache-2.0
//! What is attached to a port before a scheme is replaced, to which a failed replacement returns.

use std::os::fd::{AsFd, OwnedFd};

use anyhow::{Context, Result};
use libbpf_rs::Program;

use super::hook::Hook;
use crate::port::pins::program_pin;
use crate::port::{PinsArg, Port, Side};
use crate::skel::port::types::port_config;

/// The programs of a port and their configuration. It keeps the programs loaded.
pub struct Snapshot {
    port: Port,
    config: port_config,
    programs: [OwnedFd; 2],
}

impl Snapshot {
    /// Reads an attached port.
    ///
    /// # Errors
    /// It is incomplete, or cannot be read.
    pub fn of(pins: &PinsArg, interface: &str) -> Result<Snapshot> {
        let port = pins.open(interface)?;
        let open = |pin: std::path::PathBuf| {
            Program::fd_from_pinned_path(&pin).with_context(|| pin.display().to_string())
        };
        let [egress, ingress] = Side::BOTH.map(|side| open(program_pin(&port.folder, side)));
        Ok(Snapshot {
            config: port.config()?,
            programs: [egress?, ingress?],
            port,
        })
    }

    /// Attaches the programs again, on the hook that they were on, with their configuration.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn restore(&self, hook: Hook, index: u32) -> Result<()> {
        let folder = &self.port.folder;
        for (side, program) in Side::BOTH.into_iter().zip(&self.programs) {
            hook.attach(program.as_fd(), folder, index, side)?;
        }
        self.port.set_config(&self.config)
    }
}
