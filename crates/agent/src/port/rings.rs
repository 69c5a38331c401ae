// SPDX-License-Identifier: Apache-2.0
//! The reader of a port's ring buffers.

use std::cell::RefCell;
use std::fs::{File, TryLockError};
use std::rc::Rc;

use anyhow::{Context, Result, bail};
use libbpf_rs::{RingBuffer, RingBufferBuilder};

use super::Port;
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

/// The ring buffers of one port. Each record goes to one reader only, so there is only one: it
/// holds a lock on the folder of the port's pins, which ends with the process.
pub struct Rings {
    ring: RingBuffer<'static>,
    records: Rc<RefCell<Records>>,
    _lock: File,
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
        let (samples, events) = (port.map("samples")?, port.map("events")?);
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
