// SPDX-License-Identifier: Apache-2.0
//! The daemon's metrics: served by a thread, or written to a file every 15 s.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Result;
use penstock_linux::note;

use super::config::Config;
use crate::metrics;
use crate::port::PinsArg;
use crate::status::sight::Sights;

/// Interval between writes of the file, the usual scrape interval of node_exporter.
const EVERY: Duration = Duration::from_secs(15);

/// The file that metrics are written to, if any.
pub struct Exports {
    pins: PinsArg,
    textfile: Option<PathBuf>,
    written: Option<Instant>,
    sights: Sights,
    /// Whether the last write failed: an error is logged once.
    has_failed: bool,
}

impl Exports {
    /// Starts the thread that serves metrics, if configured.
    ///
    /// # Errors
    /// The address cannot be bound.
    pub fn begin(config: &Config) -> Result<Exports> {
        let pins = config.agent.pins();
        if let Some(address) = config.metrics.listen {
            let (listener, pins) = (
                metrics::bind(address, config.metrics.allow_remote)?,
                pins.clone(),
            );
            std::thread::spawn(move || metrics::serve(&listener, &pins));
        }
        Ok(Exports {
            pins,
            textfile: config.metrics.textfile.clone(),
            written: None,
            sights: Sights::default(),
            has_failed: false,
        })
    }

    /// Writes the file if it is due.
    pub fn write(&mut self) {
        let Some(file) = &self.textfile else { return };
        if self
            .written
            .is_some_and(|written| written.elapsed() < EVERY)
        {
            return;
        }
        self.written = Some(Instant::now());
        let written = metrics::write(file, &self.pins, &self.sights);
        if let Err(error) = &written
            && !self.has_failed
        {
            note!("metrics.textfile: {error:#}");
        }
        self.has_failed = written.is_err();
    }
}
