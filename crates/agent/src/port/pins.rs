// SPDX-License-Identifier: Apache-2.0
//! Where a port's programs and maps live: `DIR/v2/INTERFACE/` of a bpffs. `v2` is the number of
//! the maps' layout, `PENSTOCK_ABI` of `bpf/abi.h`.

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};
use libbpf_rs::Program;

use super::maps::Port;
use super::side::Side;
use crate::host::bpf;

/// Number of the layout of the maps (`PENSTOCK_ABI`).
pub const ABI: u32 = 2;

/// Where pins are by default.
pub const DEFAULT_DIR: &str = "/sys/fs/bpf/penstock";

/// Pin of the program at `side`.
pub fn program_pin(folder: &Path, side: Side) -> PathBuf {
    folder.join(format!("program_{}", side.name()))
}

/// Pin of our tcx link at `side`.
pub fn link_pin(folder: &Path, side: Side) -> PathBuf {
    folder.join(format!("link_{}", side.name()))
}

/// Pin of the program that expires idle flows.
pub const SWEEP: &str = "sweep";

/// Stands for the dot of a VLAN's name, as a bpffs allows no dots; no interface has a colon.
const DOT: &str = ":";

/// The pins' folder, an option of most commands.
#[derive(clap::Args, Clone, Debug)]
pub struct PinsArg {
    /// Folder of the pins, on a bpffs. Interfaces of the same name in different network
    /// namespaces need different folders.
    #[arg(long = "pins", value_name = "DIR", default_value = DEFAULT_DIR)]
    pub dir: PathBuf,
}

impl PinsArg {
    /// The folder of all ports.
    pub fn ports(&self) -> PathBuf {
        self.dir.join(format!("v{ABI}"))
    }

    /// The folder of one port.
    pub fn of(&self, interface: &str) -> PathBuf {
        self.ports().join(interface.replace('.', DOT))
    }

    /// Whether `interface` has pins. Names with a slash are refused, as they are paths elsewhere.
    pub fn has(&self, interface: &str) -> bool {
        let is_name = !interface.is_empty() && !interface.contains('/');
        is_name && self.of(interface).is_dir()
    }

    /// Locks out other processes that change ports, until dropped.
    ///
    /// # Errors
    /// The folder cannot be created.
    pub fn lock(&self) -> Result<File> {
        let folder = self.ports();
        let path = || folder.display().to_string();
        loop {
            std::fs::create_dir_all(&folder).with_context(path)?;
            let lock = File::open(&folder).with_context(path)?;
            lock.lock().with_context(path)?;
            // The process that held the lock may have removed the folder.
            let is_same = std::fs::metadata(&folder)
                .is_ok_and(|there| lock.metadata().is_ok_and(|mine| mine.ino() == there.ino()));
            if is_same {
                return Ok(lock);
            }
        }
    }

    /// `observe`, `fairq` or `hscc`: whose programs are on the port.
    pub fn scheme(&self, interface: &str) -> Option<String> {
        let pin = program_pin(&self.of(interface), Side::Egress);
        let program = Program::fd_from_pinned_path(pin).ok()?;
        let name = bpf::name_of(&program)?;
        name.strip_suffix("_egress").map(str::to_owned)
    }

    /// The interfaces that have pins, by name.
    ///
    /// # Errors
    /// The folder exists but cannot be read.
    pub fn interfaces(&self) -> Result<Vec<String>> {
        let folder = self.ports();
        let entries = match std::fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error).with_context(|| folder.display().to_string()),
        };
        let mut names = Vec::new();
        for entry in entries {
            let name = entry?.file_name().to_string_lossy().into_owned();
            names.push(name.replace(DOT, "."));
        }
        names.sort();
        Ok(names)
    }

    /// The error of a command for a port that is not attached.
    pub fn not_attached(&self, interface: &str) -> anyhow::Error {
        let all = self.interfaces().unwrap_or_default();
        let attached = match all.as_slice() {
            [] => "no port is".to_owned(),
            all => format!("attached: {}", all.join(", ")),
        };
        anyhow!(
            "{interface} is not attached in {} ({attached}); do: penstockd attach {interface} --scheme observe",
            self.dir.display()
        )
    }

    /// Opens the maps of one port.
    ///
    /// # Errors
    /// The port is not attached, with the list of those that are; or a map cannot be opened.
    pub fn open(&self, interface: &str) -> Result<Port> {
        if !self.has(interface) {
            return Err(self.not_attached(interface));
        }
        Port::open(&self.of(interface), interface)
    }
}
