// SPDX-License-Identifier: Apache-2.0
//! The files a scenario names: traces and distributions of flow sizes. Read once for all runs.

use super::ports;
use crate::distribution::{Cdf, FlowSize};
use crate::simulation::Transfer;
use penstock_scenario::units::Time;
use penstock_scenario::{Delay, Drawn, Quantity, Scenario, Size, Traffic};
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::path::{Path, PathBuf};

/// What is wrong with an input file; displays as one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputError {
    file: PathBuf,
    line: Option<usize>,
    what: String,
}

impl fmt::Display for InputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.file.display(), self.what),
            None => write!(f, "{}: {}", self.file.display(), self.what),
        }
    }
}

impl std::error::Error for InputError {}

/// The contents of a scenario's files.
#[derive(Clone, Debug, Default)]
pub struct Inputs {
    traces: HashMap<PathBuf, Vec<(Time, Transfer)>>,
    cdfs: HashMap<PathBuf, Cdf>,
}

impl Inputs {
    /// Reads the files that the scenario names, relative to `folder`. `convert` turns a file that is
    /// not CSV (Parquet) into CSV text.
    pub fn read(
        scenario: &Scenario,
        folder: &Path,
        convert: &dyn Fn(&Path) -> Result<String, String>,
    ) -> Result<Inputs, InputError> {
        let mut inputs = Inputs::default();
        for traffic in scenario.traffic.values() {
            if let Traffic::Trace(trace) = traffic {
                let file = folder.join(&trace.file);
                let is_csv = file.extension().is_some_and(|ending| ending == "csv");
                let text = match is_csv {
                    true => std::fs::read_to_string(&file).map_err(|error| error.to_string()),
                    false => convert(&file),
                };
                let text = text.map_err(|what| InputError {
                    file: file.clone(),
                    line: None,
                    what,
                })?;
                let rows = parse_trace(&text, &file, scenario)?;
                if !rows
                    .iter()
                    .any(|(start, _)| *start + trace.start < scenario.duration)
                {
                    let what = match rows.len() {
                        0 => "has no transfers".to_owned(),
                        count => format!(
                            "all {count} transfers start after the end of the run, {}",
                            scenario.duration
                        ),
                    };
                    let line = None;
                    return Err(InputError { file, line, what });
                }
                inputs.traces.insert(trace.file.clone(), rows);
            }
            let (sizes, delays) = traffic.drawn();
            let sizes = sizes.into_iter().filter_map(|size| size.file());
            let delays = delays.into_iter().filter_map(|delay| delay.file());
            for path in sizes.chain(delays) {
                let file = folder.join(path);
                let cdf = Cdf::load(&file).map_err(|error| InputError {
                    file: error.file.into(),
                    line: error.line,
                    what: error.message,
                })?;
                inputs.cdfs.insert(path.clone(), cdf);
            }
        }
        Ok(inputs)
    }

    /// The distribution that a size stands for, in bytes.
    pub fn distribution(&self, size: &Size) -> FlowSize {
        self.drawn(size, |bytes| bytes.0, 1.0)
    }

    /// The distribution that a time stands for, in picoseconds.
    pub fn delay(&self, delay: &Delay) -> FlowSize {
        self.drawn(delay, |time| time.0, 1e12)
    }

    /// `worth`: what 1 in a file stands for.
    fn drawn<Q: Quantity>(&self, drawn: &Drawn<Q>, whole: fn(Q) -> u64, worth: f64) -> FlowSize {
        let number = |value: Q| whole(value) as f64;
        match drawn {
            Drawn::Fixed(value) => FlowSize::Fixed(whole(*value)),
            Drawn::Exponential(mean) => FlowSize::Exponential {
                mean: number(*mean),
            },
            Drawn::Lognormal { median, sigma } => FlowSize::Lognormal {
                median: number(*median),
                sigma: *sigma,
            },
            Drawn::Uniform(min, max) => FlowSize::Uniform {
                min: whole(*min),
                max: whole(*max),
            },
            Drawn::Pareto { min, max, shape } => FlowSize::Pareto {
                shape: *shape,
                min: number(*min),
                max: number(*max),
            },
            Drawn::Named(name) => {
                let known = Cdf::named(name);
                FlowSize::Empirical(known.unwrap_or_else(|| unreachable!("{name}: no such size")))
            }
            Drawn::File(path) => {
                let read = self.cdfs.get(path);
                let cdf = read.unwrap_or_else(|| unreachable!("{}: not read", path.display()));
                FlowSize::Empirical(cdf.clone().scaled(worth))
            }
        }
    }

    /// The transfers of a trace, by time.
    pub fn trace(&self, file: &Path) -> &[(Time, Transfer)] {
        self.traces.get(file).map_or(&[], Vec::as_slice)
    }

    /// Hosts that any traffic sends to.
    pub fn destinations(&self, scenario: &Scenario) -> HashSet<u32> {
        let named = scenario
            .traffic
            .values()
            .flat_map(|t| ports::destinations(t, &scenario.fabric));
        let traced = self
            .traces
            .values()
            .flatten()
            .map(|(_, transfer)| transfer.destination);
        named.chain(traced).collect()
    }
}

const COLUMNS: [&str; 4] = ["start_s", "source", "destination", "bytes"];

/// Reads CSV with the columns `start_s,source,destination,bytes` in any order, others ignored.
fn parse_trace(
    text: &str,
    file: &Path,
    scenario: &Scenario,
) -> Result<Vec<(Time, Transfer)>, InputError> {
    let fail = |line: usize, what: String| InputError {
        file: file.to_owned(),
        line: Some(line),
        what,
    };
    let names = scenario.fabric.hosts();
    let hosts: HashMap<&str, u32> = names
        .iter()
        .enumerate()
        .map(|(index, name)| (name.as_str(), index as u32))
        .collect();
    let mut lines = text
        .lines()
        .enumerate()
        .map(|(index, line)| (index + 1, line));
    let header: Vec<&str> = lines
        .next()
        .map_or("", |(_, line)| line)
        .split(',')
        .map(str::trim)
        .collect();
    let mut at = [0; 4];
    for (place, column) in at.iter_mut().zip(COLUMNS) {
        *place = header
            .iter()
            .position(|name| *name == column)
            .ok_or_else(|| {
                fail(
                    1,
                    format!("has no column {column}; needed: {}", COLUMNS.join(",")),
                )
            })?;
    }
    let mut rows = Vec::new();
    for (number, line) in lines.filter(|(_, line)| !line.trim().is_empty()) {
        let fields: Vec<&str> = line.split(',').map(str::trim).collect();
        let field = |column: usize| {
            let text = fields
                .get(at[column])
                .copied()
                .filter(|text| !text.is_empty());
            text.ok_or_else(|| fail(number, format!("has no {}", COLUMNS[column])))
        };
        let host = |column: usize| {
            let name = field(column)?;
            hosts.get(name).copied().ok_or_else(|| {
                let known = format!("{} to {}", names[0], names[names.len() - 1]);
                fail(
                    number,
                    format!(
                        "{}: no host \"{name}\" in the fabric; it has {known}",
                        COLUMNS[column]
                    ),
                )
            })
        };
        let start: f64 = field(0)?
            .parse()
            .ok()
            .filter(|s| (0.0..=1e6).contains(s))
            .ok_or_else(|| {
                fail(
                    number,
                    "start_s: not a time in seconds from 0 to 1e6".to_owned(),
                )
            })?;
        let bytes: u64 = field(3)?
            .parse()
            .ok()
            .filter(|bytes| (1..=1 << 50).contains(bytes))
            .ok_or_else(|| {
                fail(
                    number,
                    "bytes: not a whole number from 1 to 2^50".to_owned(),
                )
            })?;
        let (source, destination) = (host(1)?, host(2)?);
        if source == destination {
            return Err(fail(
                number,
                format!("source and destination are both {}", field(1)?),
            ));
        }
        rows.push((
            Time((start * 1e12 + 0.5) as u64),
            Transfer {
                source,
                destination,
                bytes,
            },
        ));
    }
    rows.sort_by_key(|(time, _)| *time);
    Ok(rows)
}
