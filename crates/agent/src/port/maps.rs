// SPDX-License-Identifier: Apache-2.0
//! The maps of an attached port, read and written as the types of `bpf/abi.h`.

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd};
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow, bail};
use libbpf_rs::{MapCore, MapFlags, MapHandle, libbpf_sys as sys};

use crate::host::clock::monotonic_ns;
use crate::skel::port::types::{port_config, port_counters, port_state};

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
    pub(super) fn open(folder: &Path, interface: &str) -> Result<Port> {
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

    /// The configuration of the programs.
    ///
    /// # Errors
    /// The map's layout is another than this program's.
    pub fn config(&self) -> Result<port_config> {
        element(&self.config, 0)
    }

    /// Replaces the configuration of the programs.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn set_config(&self, config: &port_config) -> Result<()> {
        let key = 0u32;
        // SAFETY: key and value are as long as those of the map.
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

    /// Nanoseconds between now and the last heartbeat. One in the future counts as much as one in
    /// the past, as for the programs.
    ///
    /// # Errors
    /// As [`Port::config`].
    pub fn heartbeat_age_ns(&self) -> Result<u64> {
        Ok(element::<u64>(&self.heartbeat, 0)?.abs_diff(monotonic_ns()))
    }

    /// Renews the heartbeat.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn beat(&self) -> Result<()> {
        beat(&self.heartbeat)
    }

    /// The state of the port.
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

/// Renews the heartbeat in its map.
pub(super) fn beat(heartbeat: &MapHandle) -> Result<()> {
    let now = monotonic_ns().to_ne_bytes();
    heartbeat.update(&0u32.to_ne_bytes(), &now, MapFlags::ANY)?;
    Ok(())
}

fn open_map(path: &Path) -> Result<MapHandle> {
    MapHandle::from_pinned_path(path).map_err(|error| match error.kind() {
        libbpf_rs::ErrorKind::PermissionDenied => anyhow!(
            "cannot open {}: permission denied; run as root, or with CAP_BPF and read access",
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
            "map {:?} has {found} bytes where this penstockd expects {expected}: another version attached it; detach with that version, or attach again",
            map.name()
        );
    }
    Ok(())
}
