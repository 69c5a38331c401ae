// SPDX-License-Identifier: Apache-2.0
//! Takes a scheme off a port and leaves nothing behind.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};

use super::tcx::{self, Side};
use super::{clsact, hcf};
use crate::host::{interface, requirements};
use crate::port::{PinsArg, Port};

/// Floors of the release, segments, 5 ms apart: senders that were held to a window for long have
/// large congestion windows, and would burst into the queue together.
const RELEASE: [u8; 8] = [2, 4, 8, 16, 32, 64, 128, 255];

/// Takes everything of ours off `interface`, after its windows were opened in steps.
///
/// # Errors
/// It is not attached, something foreign is where our pins should be, or the kernel refuses.
pub fn detach(pins: &PinsArg, interface: &str) -> Result<()> {
    requirements::require_capabilities()?;
    if !pins.has(interface) {
        return Err(pins.not_attached(interface));
    }
    let _lock = pins.lock()?;
    if !pins.has(interface) {
        return Err(pins.not_attached(interface));
    }
    // Maps that cannot be read are to be removed all the more.
    if let Ok(port) = pins.open(interface) {
        release(&port).ok();
    }
    detach_locked(pins, interface)
}

/// Opens the windows in steps.
fn release(port: &Port) -> Result<()> {
    let mut config = port.config()?;
    if port.heartbeat_age_ns()? > config.stale_ns {
        return Ok(()); // all pass untouched already
    }
    for floor in RELEASE {
        config.fq.floor_segments = floor.max(config.fq.floor_segments);
        config.fq.first_floor_segments = floor.max(config.fq.first_floor_segments);
        config.hscc.clamp_segments = floor.max(config.hscc.clamp_segments);
        if config.hscc.first_segments > 0 {
            config.hscc.first_segments = floor.max(config.hscc.first_segments);
        }
        port.set_config(&config)?;
        port.beat()?;
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

/// Takes programs, pins and folders away; the caller holds the lock.
///
/// # Errors
/// As [`detach`].
pub fn detach_locked(pins: &PinsArg, interface: &str) -> Result<()> {
    let folder = pins.of(interface);
    for side in Side::BOTH {
        if let Some((link, _)) = tcx::open(&folder.join(format!("link_{}", side.name())), side)? {
            link.detach()
                .with_context(|| format!("cannot detach at {}", side.name()))?;
        }
    }
    if let Some(index) = interface::find(interface) {
        for side in Side::BOTH {
            let pin = folder.join(format!("program_{}", side.name()));
            clsact::detach(index, side, &pin)?;
        }
        clsact::remove_if_made(index, &folder)?;
        hcf::detach(&folder, interface, index)?;
    }
    remove_pins(&folder)?;
    // The folders above, if no other port has pins.
    std::fs::remove_dir(pins.ports()).ok();
    std::fs::remove_dir(&pins.dir).ok();
    Ok(())
}

/// Removes the folder of a port with all pins; what they held and nobody uses goes with them.
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
