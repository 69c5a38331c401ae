// SPDX-License-Identifier: Apache-2.0
//! Which interface a port's programs are on. A port is known by the kernel's own record of that, not
//! by the name that its interface had when they were attached.

use std::path::Path;

use anyhow::{Context, Result};
use penstock_linux::link::{self, Link};

use super::detach::remove_port;
use super::{clsact, tcx};
use crate::host::bpf::pinned;
use crate::port::pins::{PinsLock, program_pin};
use crate::port::{PinsArg, Side};

/// Where the programs of a port are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Location {
    /// On the interface with this index in this network namespace.
    Here(u32),
    /// On the interface with this index in another network namespace.
    Elsewhere(u32),
    /// Nowhere: the interface is gone, or they were removed.
    Nowhere,
}

/// Finds the interface of the port whose pins are in `folder`, among `links`.
pub fn of(folder: &Path, links: &[Link]) -> Location {
    for side in Side::BOTH {
        let Ok(Some((link, index))) = tcx::open(folder, side) else {
            continue;
        };
        let Ok(info) = link.info() else { continue };
        let programs = tcx::query(index, side).unwrap_or_default();
        match index {
            0 => (),
            _ if programs.iter().any(|program| program.link == info.id) => {
                return Location::Here(index);
            }
            _ => return Location::Elsewhere(index),
        }
    }
    let is_filter_of = |link: &&Link, side| {
        let program = pinned(&program_pin(folder, side));
        program.is_some() && clsact::query(link.index, side) == program
    };
    let mut all = links.iter();
    let filtered = all.find(|link| Side::BOTH.iter().any(|side| is_filter_of(link, *side)));
    filtered.map_or(Location::Nowhere, |link| Location::Here(link.index))
}

/// Ports whose interfaces have another name now: pairs of the old and the new name. A port stays under
/// its old name while the new one is that of a port in another network namespace.
///
/// # Errors
/// The folder of the pins cannot be read.
pub fn renamed(pins: &PinsArg, links: &[Link]) -> Result<Vec<(String, String)>> {
    Ok(renamed_of(
        pins,
        &all_of(pins, pins.interfaces()?, links),
        links,
    ))
}

/// Where the programs of these ports are.
pub fn all_of(pins: &PinsArg, interfaces: Vec<String>, links: &[Link]) -> Vec<(String, Location)> {
    let located = |interface: String| {
        let location = of(&pins.of(&interface), links);
        (interface, location)
    };
    interfaces.into_iter().map(located).collect()
}

/// The same as `renamed` of these ports alone.
pub fn renamed_of(
    pins: &PinsArg,
    ports: &[(String, Location)],
    links: &[Link],
) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for (old, location) in ports {
        let Location::Here(index) = *location else {
            continue;
        };
        let link = links.iter().find(|link| link.index == index);
        let Some(link) = link.filter(|link| link.name != *old) else {
            continue;
        };
        if !matches!(of(&pins.of(&link.name), links), Location::Elsewhere(_)) {
            all.push((old.clone(), link.name.clone()));
        }
    }
    all
}

/// Renames the folders of ports as their interfaces were renamed; returns the pairs of the old and
/// the new name.
///
/// # Errors
/// The interfaces cannot be listed, or the file system refuses.
pub fn follow(pins: &PinsArg, _: &PinsLock) -> Result<Vec<(String, String)>> {
    let links = link::all()?;
    let moves = renamed(pins, &links)?;
    // By way of names that no interface has, as two interfaces may have exchanged theirs.
    let passing = |number: usize| pins.of(&format!(".{number}"));
    let rename = |from: &Path, to: &Path| {
        std::fs::rename(from, to).with_context(|| format!("{} to {}", from.display(), to.display()))
    };
    for (number, (old, _)) in moves.iter().enumerate() {
        rename(&pins.of(old), &passing(number))?;
    }
    for (number, (_, new)) in moves.iter().enumerate() {
        let folder = pins.of(new);
        if folder.exists() {
            // The port of an interface that had this name, and is gone.
            remove_port(pins, &folder)?;
        }
        rename(&passing(number), &folder)?;
    }
    Ok(moves)
}
