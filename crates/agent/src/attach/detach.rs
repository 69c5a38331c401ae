// SPDX-License-Identifier: Apache-2.0
//! Detaches a scheme from a port and leaves nothing behind.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};

use super::hook::Hook;
use super::{grant, hcf, location, versions};
use crate::host::clock::monotonic_ns;
use crate::host::{audit, interface, requirements};
use crate::port::heartbeat::Sweep;
use crate::port::pins::PinsLock;
use crate::port::slots::Slots;
use crate::port::{PinsArg, Port};
use crate::skel::port::types::port_config;

/// In which windows are open again after a port is paused (`TCP_RELEASE_STEPS` of
/// `core/tcp_rewrite.h`, and a little more).
const RELEASE: Duration = Duration::from_millis(45);

/// When a port acts again whose detach was interrupted.
const RESUME_NS: u64 = 10_000_000_000;

/// Opens the windows of `interface` in steps, then removes everything of ours.
///
/// # Errors
/// It is not attached, another tool's object is where ours should be, or the kernel refuses.
pub fn detach(pins: &PinsArg, interface: &str) -> Result<()> {
    requirements::require_capabilities()?;
    // Without pins there is nothing to lock, nor to rename.
    if pins.interfaces()?.is_empty() && versions::others(pins)?.is_empty() {
        return Err(pins.not_attached(interface));
    }
    let lock = pins.lock()?;
    location::follow(pins, &lock)?;
    detach_locked(pins, &lock, interface)
}

/// The same for the holder of the lock, after [`location::follow`].
///
/// # Errors
/// As [`detach`].
pub fn detach_locked(pins: &PinsArg, lock: &PinsLock, interface: &str) -> Result<()> {
    let others = versions::of(pins, interface)?;
    versions::remove(pins, lock, &others)?;
    if !pins.has(interface) {
        return match !others.is_empty() {
            true => {
                audit::log("detach", interface, &[]);
                Ok(())
            }
            false => Err(pins.not_attached(interface)),
        };
    }
    // Maps that cannot be read are removed all the same.
    // No packet passes by an interface that is gone.
    let port = interface::find(interface).and_then(|_| pins.open(interface).ok());
    let before = port.as_ref().and_then(|port| release(port).ok());
    remove(pins, interface).inspect_err(|_| {
        // It stays attached, so it acts again.
        if let (Some(port), Some(config)) = (&port, before) {
            port.set_config(&config).ok();
        }
    })?;
    audit::log("detach", interface, &[]);
    Ok(())
}

/// The interfaces that [`detach`] can detach, by name.
///
/// # Errors
/// The folder of the pins cannot be read.
pub fn detachable(pins: &PinsArg) -> Result<Vec<String>> {
    let mut all = pins.interfaces()?;
    let others = versions::others(pins)?;
    all.extend(others.into_iter().map(|other| other.interface));
    all.sort();
    all.dedup();
    Ok(all)
}

/// Opens the windows in steps, as the programs do when paused; returns the configuration before.
fn release(port: &Port) -> Result<port_config> {
    let before = port.config()?;
    let mut config = before;
    if port.is_stale()? {
        return Ok(before); // all pass untouched already
    }
    config.pause_ns = monotonic_ns();
    // A pause of the operator's may last longer.
    config.resume_ns = before.resume_ns.max(config.pause_ns + RESUME_NS);
    port.set_config(&config)?;
    std::thread::sleep(RELEASE);
    Ok(before)
}

/// Removes programs, pins and folders; the caller holds the lock.
///
/// # Errors
/// As [`detach`].
pub(super) fn remove(pins: &PinsArg, interface: &str) -> Result<()> {
    let folder = pins.of(interface);
    let index = interface::find(interface);
    for hook in Hook::ALL {
        hook.detach(&folder, index)?;
    }
    if let Some(index) = index {
        hcf::detach(&folder, index)?;
    }
    grant::silence(&folder);
    remove_port(pins, &folder)
}

/// Removes the folder of a port of this version; its slot is free then, and its flows are gone.
///
/// # Errors
/// The file system refuses.
pub fn remove_port(pins: &PinsArg, folder: &Path) -> Result<()> {
    if folder.is_dir()
        && let Ok(slots) = Slots::open(pins)
    {
        slots.free(folder)?;
        // It may run on another thread, or be that of a later version: the next one deletes them.
        let _ = Sweep::open(&pins.shared()).and_then(|sweep| sweep.run());
    }
    remove_pins(folder)
}

/// Removes the folder of a port with all pins, and so what only these keep in the kernel.
///
/// # Errors
/// The file system refuses.
pub fn remove_pins(folder: &Path) -> Result<()> {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| folder.display().to_string())
        }
        _ => Ok(()),
    }
}
