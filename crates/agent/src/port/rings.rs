// SPDX-License-Identifier: Apache-2.0
//! The reader of a port's ring buffers.

use std::cell::RefCell;
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use anyhow::{Context, Result, bail, ensure};
use libbpf_rs::{MapCore, MapHandle, MapType, RingBuffer, RingBufferBuilder};

use super::Port;
use super::config::FLOW_EVENTS;
use super::maps::{create, element, put};
use super::pins::PinsLock;
use super::records::{FlowEvent, Sample, read_sample};
use super::slots::slot_of;
use crate::skel::port::types::port_state;

/// What the ring buffers held.
#[derive(Debug, Default)]
pub struct Records {
    /// As written: one for each CPU and millisecond, not strictly in order.
    pub samples: Vec<Sample>,
    /// As written.
    pub events: Vec<FlowEvent>,
    /// Records too short or of an unknown kind, which are skipped.
    pub unreadable: u64,
}

/// Sizes of the ring buffers: some seconds of a busy port.
const SAMPLES_BYTES: u32 = 1 << 20;
const EVENTS_BYTES: u32 = 1 << 22;

/// Of samples that are read ten times a second.
const RECENT_BYTES: u32 = 1 << 18;

/// A folder among a port's pins while its ring buffers exist.
const MARK: &str = "has_reader";

/// The ring buffers of one port, which exist while they are read. Each record goes to one reader only, so there is only one: it
/// holds a lock on the folder of the port's pins, which ends with the process. What one that was killed
/// leaves is [`Abandoned`].
pub struct Rings {
    ring: RingBuffer<'static>,
    records: Rc<RefCell<Records>>,
    _removed: RemovedRings,
    _lock: File,
}

/// Takes the ring buffers away from the programs when it is dropped.
struct RemovedRings {
    maps: [MapHandle; 2],
    state: MapHandle,
    /// The port's number.
    id: u32,
    mark: PathBuf,
}

impl RemovedRings {
    fn of(port: &Port) -> Result<RemovedRings> {
        Ok(RemovedRings {
            maps: [port.map("samples")?, port.map("events")?],
            state: port.map("port")?,
            id: port.id,
            mark: port.folder.join(MARK),
        })
    }
}

impl Drop for RemovedRings {
    fn drop(&mut self) {
        // They may be gone with the port, whose slot and name may be another's.
        let slot = slot_of(self.id);
        let state = element::<port_state>(&self.state, slot);
        if state.is_ok_and(|state| state.id == self.id) {
            for map in &self.maps {
                let _ = map.delete(&slot.to_ne_bytes());
            }
            let _ = std::fs::remove_dir(&self.mark);
        }
    }
}

/// Turns the programs' flow events on or off, under the lock, as an attach in between would be undone.
///
/// # Errors
/// The port was detached, or the kernel refuses.
pub fn set_flow_events(_: &PinsLock, port: &Port, enabled: bool) -> Result<()> {
    ensure!(
        port.state()?.id == port.id,
        "{}: another process detached it",
        port.interface
    );
    let mut config = port.config()?;
    config.flags = match enabled {
        true => config.flags | FLOW_EVENTS,
        false => config.flags & !FLOW_EVENTS,
    };
    port.set_config(&config)
}

/// What a reader left that was killed. No other reader comes while this exists.
pub struct Abandoned(File);

impl Abandoned {
    /// Finds it at the port whose pins are in `folder`.
    pub fn find(folder: &Path) -> Option<Abandoned> {
        let mark = folder.join(MARK);
        if !mark.exists() {
            return None;
        }
        let lock = File::open(folder).ok()?;
        // The reader may have ended since.
        (lock.try_lock().is_ok() && mark.exists()).then_some(Abandoned(lock))
    }

    /// Removes it from its port.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn remove(self, lock: &PinsLock, port: &Port) -> Result<()> {
        set_flow_events(lock, port, false)?;
        drop(RemovedRings::of(port)?);
        drop(self.0);
        Ok(())
    }
}

/// Gives the programs of `port` a new ring buffer in the map `name`.
fn ring(port: &Port, name: &str, bytes: u32) -> Result<MapHandle> {
    let ring = create(MapType::RingBuf, name, (0, 0), bytes)?;
    put(&port.map(name)?, port.slot(), &ring)?;
    Ok(ring)
}

impl Rings {
    /// Becomes the reader and discards earlier records.
    ///
    /// # Errors
    /// Another process is the reader, or the maps cannot be opened.
    pub fn open(port: &Port) -> Result<Rings> {
        Rings::with(port, SAMPLES_BYTES, Some(EVENTS_BYTES))
    }

    /// The same without events, for one that takes the samples several times a second.
    ///
    /// # Errors
    /// As [`Rings::open`].
    pub fn open_samples(port: &Port) -> Result<Rings> {
        Rings::with(port, RECENT_BYTES, None)
    }

    fn with(port: &Port, samples_bytes: u32, events_bytes: Option<u32>) -> Result<Rings> {
        let path = || port.folder.display().to_string();
        let lock = File::open(&port.folder).with_context(path)?;
        match lock.try_lock() {
            Ok(()) => (),
            Err(TryLockError::WouldBlock) => bail!(
                "{}: another penstockd observe or watch reads the records of this port; end it first (watch reads all ports, unless it is given the names of some)",
                port.interface
            ),
            Err(TryLockError::Error(error)) => return Err(error).with_context(path),
        }
        let removed = RemovedRings::of(port)?;
        std::fs::create_dir_all(&removed.mark).with_context(path)?;
        let records = Rc::new(RefCell::new(Records::default()));
        let samples = ring(port, "samples", samples_bytes)?;
        let events = events_bytes.map(|bytes| ring(port, "events", bytes));
        let events = events.transpose()?;
        let mut builder = RingBufferBuilder::new();
        let into = Rc::clone(&records);
        builder.add(&samples, move |record| {
            let records = &mut *into.borrow_mut();
            match read_sample(record) {
                Some(sample) => records.samples.push(sample),
                None => records.unreadable += 1,
            }
            0
        })?;
        let into = Rc::clone(&records);
        if let Some(events) = &events {
            builder.add(events, move |record| {
                let records = &mut *into.borrow_mut();
                match FlowEvent::read(record) {
                    Some(event) => records.events.push(event),
                    None => records.unreadable += 1,
                }
                0
            })?;
        }
        let rings = Rings {
            ring: builder.build()?,
            records,
            _removed: removed,
            _lock: lock,
        };
        rings.take()?;
        Ok(rings)
    }

    /// All records written since the last call.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn take(&self) -> Result<Records> {
        self.ring.consume()?;
        Ok(std::mem::take(&mut *self.records.borrow_mut()))
    }
}
