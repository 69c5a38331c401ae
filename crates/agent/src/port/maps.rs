// SPDX-License-Identifier: Apache-2.0
//! An attached port's elements of the maps, read and written as the types of `bpf/abi.h`.

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use libbpf_rs::{MapCore, MapFlags, MapHandle, libbpf_sys as sys};

use super::policy::Policy;
use super::slots::{self, STATS_PORTS, slot_of};
use crate::host::clock::monotonic_ns;
use crate::skel::port::types::{
    port_config, port_counters, port_policy, port_state, port_stats, side_counters,
};

/// An attached port, and the maps of all ports.
pub struct Port {
    /// The interface's name, that of the folder.
    pub interface: String,
    /// Where its pins are.
    pub folder: PathBuf,
    /// Its number, which no port had before or will have: the slot, and above it how often that was given
    /// away.
    pub id: u32,
    shared: PathBuf,
    config: MapHandle,
    heartbeat: MapHandle,
    state: MapHandle,
    stats: MapHandle,
    policy: MapHandle,
}

/// Words of `struct port_stats`, and of the counters at its begin.
const STATS_WORDS: usize = size_of::<port_stats>() / 8;
const COUNTER_WORDS: usize = size_of::<port_counters>() / 8;
/// Where the histogram of queues begins in them.
const DEPTH_WORD: usize = std::mem::offset_of!(port_stats, depth) / 8;

/// Where the sides of a canary begin in them, and how many words they have.
const SIDES_WORD: usize = std::mem::offset_of!(port_stats, sides) / 8;
const SIDES_WORDS: usize = size_of::<[side_counters; 2]>() / 8;

impl Port {
    pub(super) fn open(folder: &Path, shared: &Path, interface: &str) -> Result<Port> {
        let map = |name: &str| open_map(&shared.join(name));
        let incomplete = || {
            anyhow!(
                "{} is incomplete; do: penstockd detach {interface} and attach again",
                folder.display()
            )
        };
        let id = slots::mark_of(folder).ok_or_else(incomplete)?;
        let port = Port {
            config: map("config")?,
            heartbeat: map("heartbeat")?,
            state: map("port")?,
            stats: map(&slots::stats_pin(slot_of(id)))?,
            policy: map("policy")?,
            interface: interface.to_owned(),
            folder: folder.to_owned(),
            shared: shared.to_owned(),
            id,
        };
        match port.state()?.id {
            owner if owner == id => Ok(port),
            _ => Err(incomplete()),
        }
    }

    /// The port's element of the maps.
    pub fn slot(&self) -> u32 {
        slot_of(self.id)
    }

    /// A map of all ports by its name in `bpf/maps.h`: `samples`, `events`, `flows4` ...
    ///
    /// # Errors
    /// It is not pinned, or may not be opened.
    pub fn map(&self, name: &str) -> Result<MapHandle> {
        open_map(&self.shared.join(name))
    }

    /// The configuration of the programs.
    ///
    /// # Errors
    /// The map's layout is another than this program's.
    pub fn config(&self) -> Result<port_config> {
        element(&self.config, self.slot())
    }

    /// Replaces the configuration of the programs.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn set_config(&self, config: &port_config) -> Result<()> {
        write(&self.config, self.slot(), config)
            .with_context(|| format!("{}: config", self.folder.display()))
    }

    /// The two elements of the map `policy`.
    ///
    /// # Errors
    /// As [`Port::config`].
    pub fn policies(&self) -> Result<[port_policy; 2]> {
        let first = 2 * self.slot();
        Ok([
            element(&self.policy, first)?,
            element(&self.policy, first + 1)?,
        ])
    }

    /// The policy in use.
    ///
    /// # Errors
    /// As [`Port::config`].
    pub fn policy(&self) -> Result<Policy> {
        Ok(match self.config()?.policy {
            0 => Policy::default(),
            number => Policy::from_map(&element(&self.policy, 2 * self.slot() + (number & 1))?),
        })
    }

    /// Writes a policy into its element, which must not be in use.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn set_policy(&self, policy: &port_policy) -> Result<()> {
        write(&self.policy, 2 * self.slot() + (policy.number & 1), policy)
            .with_context(|| format!("{}: policy", self.folder.display()))
    }

    /// What the flows controlled and those held out did, summed over the CPUs.
    ///
    /// # Errors
    /// As [`Port::config`].
    pub fn sides(&self) -> Result<[side_counters; 2]> {
        let mut sides = [side_counters::default(); 2];
        // SAFETY: both are plain u64 fields, as many as there are words.
        let words: &mut [u64; SIDES_WORDS] = unsafe { &mut *(&raw mut sides).cast() };
        words.copy_from_slice(&self.stats()?[SIDES_WORD..][..SIDES_WORDS]);
        Ok(sides)
    }

    /// Nanoseconds between now and the last heartbeat. One in the future counts as much as one in
    /// the past, as for the programs.
    ///
    /// # Errors
    /// As [`Port::config`].
    pub fn heartbeat_age_ns(&self) -> Result<u64> {
        Ok(element::<u64>(&self.heartbeat, self.slot())?.abs_diff(monotonic_ns()))
    }

    /// Renews the heartbeat.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn beat(&self) -> Result<()> {
        beat(&self.heartbeat, self.slot())
    }

    /// The state of the port.
    ///
    /// # Errors
    /// As [`Port::config`].
    pub fn state(&self) -> Result<port_state> {
        element(&self.state, self.slot())
    }

    /// The counters, summed over the CPUs.
    ///
    /// # Errors
    /// As [`Port::config`].
    pub fn counters(&self) -> Result<port_counters> {
        let mut sum = port_counters::default();
        let stats = self.stats()?;
        // SAFETY: both are plain u64 fields, as many as there are words.
        let words: &mut [u64; COUNTER_WORDS] = unsafe { &mut *(&raw mut sum).cast() };
        words.copy_from_slice(&stats[..COUNTER_WORDS]);
        Ok(sum)
    }

    /// Milliseconds by their longest queue, summed over the CPUs: bucket b holds
    /// `[2^(b-1), 2^b)` bytes.
    ///
    /// # Errors
    /// As [`Port::config`].
    pub fn depth(&self) -> Result<Vec<u64>> {
        let buckets = port_stats::default().depth.len();
        Ok(self.stats()?[DEPTH_WORD..][..buckets].to_vec())
    }

    /// The words of `struct port_stats`, each summed over the CPUs.
    fn stats(&self) -> Result<[u64; STATS_WORDS]> {
        let mut sum = [0u64; STATS_WORDS];
        for words in per_cpu::<STATS_WORDS>(&self.stats, self.slot() % STATS_PORTS)? {
            for (total, word) in sum.iter_mut().zip(words) {
                *total = total.wrapping_add(word);
            }
        }
        Ok(sum)
    }
}

/// Renews the heartbeat in its map.
pub(super) fn beat(heartbeat: &MapHandle, slot: u32) -> Result<()> {
    write(heartbeat, slot, &monotonic_ns())
}

/// Writes element `index` of an array map.
pub(super) fn write<T: Copy>(map: &MapHandle, index: u32, value: &T) -> Result<()> {
    layout(map, map.value_size() as usize, size_of::<T>())?;
    // SAFETY: key and value are as long as those of the map.
    let status = unsafe {
        sys::bpf_map_update_elem(
            map.as_fd().as_raw_fd(),
            (&raw const index).cast(),
            std::ptr::from_ref(value).cast(),
            0,
        )
    };
    match status {
        0 => Ok(()),
        _ => Err(std::io::Error::from_raw_os_error(-status).into()),
    }
}

pub(super) fn open_map(path: &Path) -> Result<MapHandle> {
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
pub(super) fn element<T: Copy>(map: &MapHandle, index: u32) -> Result<T> {
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
