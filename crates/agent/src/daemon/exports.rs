// SPDX-License-Identifier: Apache-2.0
//! The daemon's metrics: served on a thread, or written every 15 s.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Result;

use super::config::Config;
use crate::metrics;
use crate::port::PinsArg;

/// How often the file is written: node_exporter is commonly asked so often.
const EVERY: Duration = Duration::from_secs(15);

/// Where metrics go beside the thread that serves them.
pub struct Exports {
    pins: PinsArg,
    textfile: Option<PathBuf>,
    written: Option<Instant>,
    /// Whether a failure was told, which is told once.
    is_refused: bool,
}

impl Exports {
    /// Begins to serve, if the configuration says so.
    ///
    /// # Errors
    /// The address cannot be had.
    pub fn begin(config: &Config) -> Result<Exports> {
        let pins = PinsArg {
            dir: config.agent.pins.clone(),
        };
        if let Some(address) = config.metrics.listen {
            let (listener, pins) = (metrics::bind(address)?, pins.clone());
            std::thread::spawn(move || metrics::serve(&listener, &pins));
        }
        Ok(Exports {
            pins,
            textfile: config.metrics.textfile.clone(),
            written: None,
            is_refused: false,
        })
    }

    /// Writes the file when it is time.
    pub fn write(&mut self) {
        let Some(file) = &self.textfile else { return };
        if self
            .written
            .is_some_and(|written| written.elapsed() < EVERY)
        {
            return;
        }
        self.written = Some(Instant::now());
        let written = metrics::write(file, &self.pins);
        if let Err(error) = &written
            && !self.is_refused
        {
            eprintln!("metrics.textfile: {error:#}");
        }
        self.is_refused = written.is_err();
    }
}
