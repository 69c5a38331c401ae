// SPDX-License-Identifier: Apache-2.0
//! All watched ports, read every tenth of a second, or as fast as that many ports can be.

use std::collections::BTreeMap;

use anyhow::Result;

use super::history::History;
use super::view::View;
use crate::host::clock::monotonic_ns;
use crate::port::PinsArg;
use crate::port::rings::Rings;
use crate::status::Unreadable;
use crate::status::reading::Reading;
use crate::status::sight::Sights;

struct Watched {
    /// Number of the folder of the port's pins, another if it was attached again.
    inode: Option<u64>,
    history: History,
    /// None if another process reads the records.
    rings: Option<Rings>,
}

/// The ports, by name.
pub struct Ports {
    pins: PinsArg,
    only: Vec<String>,
    watched: BTreeMap<String, Watched>,
    sights: Sights,
    unreadable: Vec<Unreadable>,
}

impl Ports {
    /// Watches the ports in `only`, or all attached ports if it is empty.
    ///
    /// # Errors
    /// One of them is not attached.
    pub fn new(pins: PinsArg, only: Vec<String>) -> Result<Ports> {
        for interface in &only {
            pins.open_settled(interface)?;
        }
        let mut ports = Ports {
            pins,
            only,
            watched: BTreeMap::new(),
            sights: Sights::default(),
            unreadable: Vec::new(),
        };
        ports.read()?;
        Ok(ports)
    }

    /// Reads all again; ports come and go.
    ///
    /// # Errors
    /// The folder of the pins cannot be read.
    pub fn read(&mut self) -> Result<()> {
        let mut names = self.pins.interfaces()?;
        names.retain(|name| self.only.is_empty() || self.only.contains(name));
        self.watched.retain(|name, _| names.contains(name));
        let mut readings = Vec::new();
        self.unreadable.clear();
        for name in names {
            match Reading::of(&self.pins, &name) {
                Ok(reading) => readings.push(reading),
                Err(error) => {
                    self.watched.remove(&name);
                    // Otherwise it was detached in between.
                    if self.pins.has(&name) {
                        self.unreadable.push(Unreadable::new(&name, &error));
                    }
                }
            }
        }
        self.sights.judge(&mut readings);
        for reading in readings {
            let now_ns = monotonic_ns();
            let name = reading.interface.clone();
            let rings = || Rings::open_samples(&self.pins.open(&name).ok()?).ok();
            let inode = self.pins.inode(&name);
            let is_same = |watched: &&mut Watched| watched.inode == inode;
            match self.watched.get_mut(&name).filter(is_same) {
                Some(watched) => {
                    let peak = watched.rings.as_ref().and_then(peak);
                    watched.history.push(now_ns, reading, peak);
                    // The other process may have ended.
                    watched.rings = watched.rings.take().or_else(rings);
                }
                // New, or attached again.
                None => {
                    self.watched.remove(&name);
                    let rings = rings();
                    let watched = Watched {
                        inode,
                        history: History::new(now_ns, reading),
                        rings,
                    };
                    self.watched.insert(name, watched);
                }
            }
        }
        Ok(())
    }

    /// The ports that could not be read.
    pub fn unreadable(&self) -> &[Unreadable] {
        &self.unreadable
    }

    /// The views to show.
    pub fn views(&self) -> Vec<View> {
        self.watched
            .values()
            .map(|watched| View::of(&watched.history))
            .collect()
    }
}

/// The longest queue recorded since the last call.
fn peak(rings: &Rings) -> Option<u32> {
    let records = rings.take().ok()?;
    Some(
        records
            .samples
            .iter()
            .map(|sample| sample.queue_max)
            .max()
            .unwrap_or(0),
    )
}
