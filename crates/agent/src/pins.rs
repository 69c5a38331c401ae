// SPDX-License-Identifier: Apache-2.0
//! Where a port's programs and maps live: `DIR/v1/INTERFACE/` of a bpffs. `v1` is the number of
//! the maps' layout, `PENSTOCK_ABI` of `bpf/abi.h`.

use std::fs::File;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use libbpf_rs::{MapCore, MapFlags, MapHandle, Program, libbpf_sys as sys};

use crate::objects::port::types::{port_config, port_counters, port_state};
use crate::tcx;

/// Number of the layout of the maps (`PENSTOCK_ABI`).
pub const ABI: u32 = 1;

/// Where pins are by default.
pub const DEFAULT_DIR: &str = "/sys/fs/bpf/penstock";

/// A bpffs takes no dots, which names of VLANs have; no interface's name has a colon.
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

    /// Whether `interface` has pins. What is no name would be a path to somewhere else.
    pub fn has(&self, interface: &str) -> bool {
        let is_name = !interface.is_empty() && !interface.contains('/');
        is_name && self.of(interface).is_dir()
    }

    /// Keeps other penstockds from changing ports until dropped.
    ///
    /// # Errors
    /// The folder cannot be made.
    pub fn lock(&self) -> Result<File> {
        let folder = self.ports();
        let told = || folder.display().to_string();
        loop {
            std::fs::create_dir_all(&folder).with_context(told)?;
            let lock = File::open(&folder).with_context(told)?;
            lock.lock().with_context(told)?;
            // Whoever held it may have removed the folder.
            let is_same = std::fs::metadata(&folder)
                .is_ok_and(|there| lock.metadata().is_ok_and(|mine| mine.ino() == there.ino()));
            if is_same {
                return Ok(lock);
            }
        }
    }

    /// `observe`, `fairq` or `hscc`: whose programs are on the port.
    pub fn scheme(&self, interface: &str) -> Option<String> {
        let pin = self.of(interface).join("program_egress");
        let program = Program::fd_from_pinned_path(pin).ok()?;
        let name = tcx::name_of(&program)?;
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

    /// The refusal of a command for a port that has no pins.
    pub fn not_attached(&self, interface: &str) -> anyhow::Error {
        let all = self.interfaces().unwrap_or_default();
        let attached = match all.as_slice() {
            [] => "no port is".to_owned(),
            all => format!("attached: {}", all.join(", ")),
        };
        anyhow!(
            "{interface} is not attached in {} ({attached}); do: penstockd attach {interface} --scheme fairq",
            self.dir.display()
        )
    }

    /// Opens the maps of one port.
    ///
    /// # Errors
    /// The port is not attached, with those that are; or a map cannot be opened.
    pub fn open(&self, interface: &str) -> Result<Port> {
        if !self.has(interface) {
            return Err(self.not_attached(interface));
        }
        Port::open(&self.of(interface), interface)
    }
}

/// The maps of an attached port.
pub struct Port {
    /// The interface's name, that of the folder.
    pub interface: String,
    /// Where its pins are.
    pub folder: PathBuf,
    config: MapHandle,
    heartbeat: MapHandle,
    state: MapHandle,
    counters: MapHandle,
    depth: MapHandle,
}

impl Port {
    fn open(folder: &Path, interface: &str) -> Result<Port> {
        let map = |name: &str| open_map(&folder.join(name));
        Ok(Port {
            config: map("config")?,
            heartbeat: map("heartbeat")?,
            state: map("port")?,
            counters: map("counters")?,
            depth: map("depth")?,
            interface: interface.to_owned(),
            folder: folder.to_owned(),
        })
    }

    /// Another map of the port by its name in `bpf/maps.h`: `samples`, `events`, `flows4` ...
    ///
    /// # Errors
    /// It is not pinned, or may not be opened.
    pub fn map(&self, name: &str) -> Result<MapHandle> {
        open_map(&self.folder.join(name))
    }

    /// What the programs were told.
    ///
    /// # Errors
    /// The map's layout is another than this program's.
    pub fn config(&self) -> Result<port_config> {
        element(&self.config, 0)
    }

    /// Tells the programs something else, whole.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn set_config(&self, config: &port_config) -> Result<()> {
        let key = 0u32;
        // SAFETY: key and value are as long as the map says (`config` was read before, or is ours).
        let status = unsafe {
            sys::bpf_map_update_elem(
                self.config.as_fd().as_raw_fd(),
                (&raw const key).cast(),
                (&raw const *config).cast(),
                0,
            )
        };
        if status < 0 {
            let error = std::io::Error::from_raw_os_error(-status);
            bail!("{}: config: {error}", self.folder.display());
        }
        Ok(())
    }

    /// How far from now the agent was last alive, nanoseconds: as for the programs, a time to come
    /// is as bad as one long ago.
    ///
    /// # Errors
    /// As [`Port::config`].
    pub fn heartbeat_age_ns(&self) -> Result<u64> {
        Ok(element::<u64>(&self.heartbeat, 0)?.abs_diff(monotonic_ns()))
    }

    /// Tells the programs that the agent is alive now.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn beat(&self) -> Result<()> {
        let now = crate::pins::monotonic_ns().to_ne_bytes();
        self.heartbeat
            .update(&0u32.to_ne_bytes(), &now, MapFlags::ANY)?;
        Ok(())
    }

    /// What the programs hold of the port.
    ///
    /// # Errors
    /// As [`Port::config`].
    pub fn state(&self) -> Result<port_state> {
        element(&self.state, 0)
    }

    /// The counters, summed over the CPUs.
    ///
    /// # Errors
    /// As [`Port::config`].
    pub fn counters(&self) -> Result<port_counters> {
        let mut sum = port_counters::default();
        for words in per_cpu::<{ size_of::<port_counters>() / 8 }>(&self.counters, 0)? {
            // SAFETY: both are plain u64 fields, as many as there are words.
            let own: &mut [u64; size_of::<port_counters>() / 8] =
                unsafe { &mut *(&raw mut sum).cast() };
            for (total, word) in own.iter_mut().zip(words) {
                *total += word;
            }
        }
        Ok(sum)
    }

    /// Milliseconds by their longest queue, summed over the CPUs: bucket b holds
    /// `[2^(b-1), 2^b)` bytes.
    ///
    /// # Errors
    /// As [`Port::config`].
    pub fn depth(&self) -> Result<Vec<u64>> {
        (0..self.depth.max_entries())
            .map(|bucket| {
                let values = per_cpu::<1>(&self.depth, bucket)?;
                Ok(values.iter().map(|[value]| value).sum())
            })
            .collect()
    }
}

fn open_map(path: &Path) -> Result<MapHandle> {
    MapHandle::from_pinned_path(path).map_err(|error| match error.kind() {
        libbpf_rs::ErrorKind::PermissionDenied => anyhow!(
            "may not open {}; do it as root, or with CAP_BPF and read access",
            path.display()
        ),
        _ => anyhow!(
            "{}: {error}; do: penstockd detach and attach again",
            path.display()
        ),
    })
}

/// Element `index` of an array map as a plain struct of `bpf/abi.h`.
fn element<T: Copy>(map: &MapHandle, index: u32) -> Result<T> {
    let value = map
        .lookup(&index.to_ne_bytes(), MapFlags::ANY)?
        .ok_or_else(|| anyhow!("{:?} has no element {index}", map.name()))?;
    layout(map, value.len(), size_of::<T>())?;
    let mut target = MaybeUninit::<T>::uninit();
    // SAFETY: the types of `bpf/abi.h` are plain integers, valid for any bytes; the length is
    // checked above.
    unsafe {
        std::ptr::copy_nonoverlapping(
            value.as_ptr(),
            target.as_mut_ptr().cast::<u8>(),
            value.len(),
        );
        Ok(target.assume_init())
    }
}

/// Element `index` of a per-CPU array map as words, for each CPU.
fn per_cpu<const WORDS: usize>(map: &MapHandle, index: u32) -> Result<Vec<[u64; WORDS]>> {
    let values = map
        .lookup_percpu(&index.to_ne_bytes(), MapFlags::ANY)?
        .ok_or_else(|| anyhow!("{:?} has no element {index}", map.name()))?;
    values
        .iter()
        .map(|value| {
            layout(map, value.len(), 8 * WORDS)?;
            let mut words = [0; WORDS];
            for (word, bytes) in words.iter_mut().zip(value.chunks_exact(8)) {
                *word = u64::from_ne_bytes(bytes.try_into()?);
            }
            Ok(words)
        })
        .collect()
}

fn layout(map: &MapHandle, found: usize, expected: usize) -> Result<()> {
    if found != expected {
        bail!(
            "map {:?} holds {found} bytes where this penstockd expects {expected}; it was attached by another version: detach with that, or attach again",
            map.name()
        );
    }
    Ok(())
}

/// CLOCK_MONOTONIC, the clock of the programs, in nanoseconds.
pub fn monotonic_ns() -> u64 {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `now` is valid; CLOCK_MONOTONIC exists everywhere.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
