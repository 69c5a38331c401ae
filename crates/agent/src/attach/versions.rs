// SPDX-License-Identifier: Apache-2.0
//! Ports attached by versions of penstockd whose maps have another layout: `DIR/vN/INTERFACE`. No
//! daemon renews their heartbeats, yet their programs cost time with every packet.

use std::path::{Path, PathBuf};

use anyhow::Result;
use penstock_linux::{link, qdisc};

use super::detach::remove_pins;
use super::hcf;
use super::hook::Hook;
use super::location::{self, Location};
use crate::port::PinsArg;
use crate::port::pins::{ABI, PinsLock, SHARED, interface_of};

/// A port that another version attached.
pub struct Other {
    /// Its interface, by its name now; by that of its folder if the interface is gone.
    pub interface: String,
    /// Where its pins are.
    pub folder: PathBuf,
    /// The number of its maps' layout.
    pub version: u32,
    /// The index of its interface; none if that is gone.
    pub index: Option<u32>,
}

/// The ports of other versions, but for those of other network namespaces.
///
/// # Errors
/// The interfaces cannot be listed.
pub fn others(pins: &PinsArg) -> Result<Vec<Other>> {
    let folders = |path: &Path| {
        let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
        let paths = entries.map(|entry| entry.path());
        paths.filter(|path| path.is_dir()).collect::<Vec<_>>()
    };
    let name = |path: &Path| {
        let name = path.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    };
    let version_of = |path: PathBuf| {
        let number = name(&path).strip_prefix('v')?.parse().ok()?;
        (number != ABI).then_some((number, path))
    };
    let versions = folders(&pins.dir).into_iter().filter_map(version_of);
    let ports = versions.flat_map(|(version, path)| {
        let all = folders(&path).into_iter();
        all.map(move |folder| (version, folder))
    });
    let mut ports: Vec<(u32, PathBuf)> = ports.collect();
    ports.retain(|(_, path)| name(path) != SHARED);
    if ports.is_empty() {
        return Ok(Vec::new());
    }
    let links = link::all()?;
    let other = |(version, folder): (u32, PathBuf)| {
        let index = match location::of(&folder, &links) {
            Location::Here(index) => Some(index),
            Location::Nowhere => None,
            Location::Elsewhere(_) => return None,
        };
        let link = links.iter().find(|link| Some(link.index) == index);
        Some(Other {
            interface: link.map_or_else(|| interface_of(&name(&folder)), |link| link.name.clone()),
            folder,
            version,
            index,
        })
    };
    Ok(ports.into_iter().filter_map(other).collect())
}

/// Those of [`others`] on `interface`.
///
/// # Errors
/// As [`others`].
pub fn of(pins: &PinsArg, interface: &str) -> Result<Vec<Other>> {
    let mut all = others(pins)?;
    all.retain(|other| other.interface == interface);
    Ok(all)
}

/// Removes the programs and pins of ports.
///
/// # Errors
/// The kernel or the file system refuses.
pub fn remove(pins: &PinsArg, _: &PinsLock, others: &[Other]) -> Result<()> {
    for other in others {
        for hook in Hook::ALL {
            hook.detach(&other.folder, other.index)?;
        }
        if let Some(index) = other.index
            && hcf::is_pinned(&other.folder)
            && !hcf::is_pinned(&pins.of(&other.interface))
            && hcf::is_ours(&qdisc::root(index)?.kind)
        {
            qdisc::delete_root(index)?;
        }
        remove_pins(&other.folder)?;
        if let Some(version) = other.folder.parent() {
            let is_last = std::fs::read_dir(version)
                .is_ok_and(|mut all| all.all(|entry| entry.is_ok_and(|e| e.file_name() == SHARED)));
            if is_last {
                let _ = std::fs::remove_dir_all(version.join(SHARED));
            }
            let _ = std::fs::remove_dir(version);
        }
    }
    Ok(())
}
