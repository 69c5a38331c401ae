// SPDX-License-Identifier: Apache-2.0
//! An attached port's elements of the maps, read and written as the types of `bpf/abi.h`.

use std::os::fd::{AsFd, AsRawFd};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};
use libbpf_rs::{MapCore, MapFlags, MapHandle, MapType, libbpf_sys as sys};

use super::plain::{bytes_of, of_bytes};
use super::policy::Policy;
use super::slots::{self, STATS_PORTS, slot_of};
use crate::host::clock::monotonic_ns;
use crate::skel::port::types::{port_config, port_counters, port_policy, port_state, port_stats};

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

    /// The folder of what all ports share.
    pub fn shared(&self) -> &Path {
        &self.shared
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

    /// Nanoseconds between now and the last heartbeat. One in the future counts as much as one in
    /// the past, as for the programs.
    ///
    /// # Errors
    /// As [`Port::config`].
    pub fn heartbeat_age_ns(&self) -> Result<u64> {
        Ok(element::<u64>(&self.heartbeat, self.slot())?.abs_diff(monotonic_ns()))
    }

    /// Whether the heartbeat is so old that all packets pass untouched.
    ///
    /// # Errors
    /// As [`Port::config`].
    pub fn is_stale(&self) -> Result<bool> {
        Ok(self.heartbeat_age_ns()? > self.config()?.stale_ns)
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

    /// What the port did, summed over the CPUs.
    ///
    /// # Errors
    /// As [`Port::config`].
    pub fn stats(&self) -> Result<port_stats> {
        let index = self.slot() % STATS_PORTS;
        let cpus = self
            .stats
            .lookup_percpu(&index.to_ne_bytes(), MapFlags::ANY)?
            .ok_or_else(|| anyhow!("{:?} has no element {index}", self.stats.name()))?;
        sum_of_cpus(&cpus).ok_or_else(|| other_layout::<port_stats>(&self.stats))
    }

    /// The counters, summed over the CPUs.
    ///
    /// # Errors
    /// As [`Port::config`].
    pub fn counters(&self) -> Result<port_counters> {
        Ok(self.stats()?.counters)
    }
}

/// Adds up the statistics of the CPUs, word by word, so that those of the present millisecond mean nothing;
/// none if they are of another layout.
pub fn sum_of_cpus(cpus: &[Vec<u8>]) -> Option<port_stats> {
    let mut sum = [0u64; size_of::<port_stats>() / 8];
    for cpu in cpus {
        let (words, rest) = cpu.as_chunks();
        if words.len() != sum.len() || !rest.is_empty() {
            return None;
        }
        for (total, word) in sum.iter_mut().zip(words) {
            *total = total.wrapping_add(u64::from_ne_bytes(*word));
        }
    }
    of_bytes(bytes_of(&sum))
}

/// Renews the heartbeat in its map.
pub(super) fn beat(heartbeat: &MapHandle, slot: u32) -> Result<()> {
    write(heartbeat, slot, &monotonic_ns())
}

/// Writes element `index` of an array map.
pub(super) fn write<T: Copy>(map: &MapHandle, index: u32, value: &T) -> Result<()> {
    if map.value_size() as usize != size_of::<T>() {
        return Err(other_layout::<T>(map));
    }
    map.update(&index.to_ne_bytes(), bytes_of(value), MapFlags::ANY)?;
    Ok(())
}

/// Creates a map that is an element of another.
pub(super) fn create(
    kind: MapType,
    name: &str,
    (key_bytes, value_bytes): (u32, u32),
    entries: u32,
) -> Result<MapHandle> {
    let options = sys::bpf_map_create_opts {
        sz: size_of::<sys::bpf_map_create_opts>() as sys::size_t,
        ..Default::default()
    };
    let map = MapHandle::create(kind, Some(name), key_bytes, value_bytes, entries, &options)?;
    Ok(map)
}

/// Makes `inner` element `index` of a map of maps.
pub(super) fn put(outer: &MapHandle, index: u32, inner: &MapHandle) -> Result<()> {
    let descriptor = inner.as_fd().as_raw_fd().to_ne_bytes();
    outer.update(&index.to_ne_bytes(), &descriptor, MapFlags::ANY)?;
    Ok(())
}

/// Opens a pinned map.
///
/// # Errors
/// It is not pinned, or may not be opened.
pub fn open_map(path: &Path) -> Result<MapHandle> {
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
    of_bytes(&value).ok_or_else(|| other_layout::<T>(map))
}

fn other_layout<T>(map: &MapHandle) -> anyhow::Error {
    anyhow!(
        "map {:?} has {} bytes where this penstockd expects {}: another version attached it; detach with that version, or attach again",
        map.name(),
        map.value_size(),
        size_of::<T>()
    )
}
