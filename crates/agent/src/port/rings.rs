// SPDX-License-Identifier: Apache-2.0
//! The reader of a port's ring buffers.

use std::cell::RefCell;
use std::fs::{File, TryLockError};
use std::rc::Rc;

use anyhow::{Context, Result, bail};
use libbpf_rs::{MapCore, MapHandle, MapType, RingBuffer, RingBufferBuilder};

use super::Port;
use super::maps::{create, put};
use super::records::{FlowEvent, Sample, read_sample};

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

/// The ring buffers of one port, which exist while they are read. Each record goes to one reader only, so there is only one: it
/// holds a lock on the folder of the port's pins, which ends with the process.
pub struct Rings {
    ring: RingBuffer<'static>,
    records: Rc<RefCell<Records>>,
    _removed: RemovedRings,
    _lock: File,
}

/// Takes the ring buffers away from the programs when it is dropped.
struct RemovedRings {
    maps: [MapHandle; 2],
    slot: u32,
}

impl RemovedRings {
    fn of(port: &Port) -> Result<RemovedRings> {
        Ok(RemovedRings {
            maps: [port.map("samples")?, port.map("events")?],
            slot: port.slot(),
        })
    }
}

impl Drop for RemovedRings {
    fn drop(&mut self) {
        for map in &self.maps {
            // They may be gone with the port.
            let _ = map.delete(&self.slot.to_ne_bytes());
        }
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
        let path = || port.folder.display().to_string();
        let lock = File::open(&port.folder).with_context(path)?;
        match lock.try_lock() {
            Ok(()) => (),
            Err(TryLockError::WouldBlock) => bail!(
                "{}: another penstockd observe or watch reads the records of this port; end it first",
                port.interface
            ),
            Err(TryLockError::Error(error)) => return Err(error).with_context(path),
        }
        let records = Rc::new(RefCell::new(Records::default()));
        let samples = ring(port, "samples", SAMPLES_BYTES)?;
        let events = ring(port, "events", EVENTS_BYTES)?;
        let removed = RemovedRings::of(port)?;
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
        builder.add(&events, move |record| {
            let records = &mut *into.borrow_mut();
            match FlowEvent::read(record) {
                Some(event) => records.events.push(event),
                None => records.unreadable += 1,
            }
            0
        })?;
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
