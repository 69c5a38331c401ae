// SPDX-License-Identifier: Apache-2.0
//! From a scenario to its results: one scheme, one seed, one run. [`run_on`] shows the steps:
//!
//! 1. `fabric` builds nodes and links, `shards` cuts them if the fabric is large;
//! 2. for each shard, `ports` puts the scheme's policies on ports, `tcp` sets up the end points, and
//!    `traffic` schedules what the applications do, with the files read by `inputs`
//!    and jobs made by `jobs`;
//! 3. all shards run ([`parallel::run`]);
//! 4. `collect` turns what they counted into an [`Outcome`], defined in `outcome`.
//!
//! `layout` describes a scenario's fabric to other substrates.

mod collect;
mod fabric;
mod ideal;
mod inputs;
mod jobs;
mod layout;
mod outcome;
mod ports;
mod shards;
mod slow;
mod tcp;
mod traced;
mod traffic;

pub use collect::{flow_records, job_rows, summaries, window_rows};
pub use fabric::build as build_fabric;
pub use ideal::set_ideal_times;
pub use inputs::{InputError, Inputs};
pub use layout::{Ends, Layout, Port};
pub use outcome::{
    ClassShare, FlowRecord, Goodput, GroupSummary, JobRow, JobSummary, LATE, Outcome, Performance,
    PortSummary, QueueSample, QueueSummary, WindowRow,
};
use ports::measured;
pub use slow::SlowFlows;
pub use traced::{EventRow, PacketRow, recorded_port};
pub use traffic::{ClientProfiles, schedule_traffic, window_plan};

use crate::parallel;
use crate::simulation::{Results, Simulation};
use penstock_scenario::units::Time;
use penstock_scenario::{Scenario, Scheme, Until, builtin_schemes};
use std::fmt;
use std::sync::Arc;
use std::time::Instant;

/// Why a run cannot be made.
#[derive(Debug)]
pub enum RunError {
    /// The scenario has no such scheme.
    UnknownScheme(String),
    /// A parameter that only shows to be impossible once the fabric is known: port, field, range.
    Parameter(String),
    /// More links and simulated time than an event's key can hold.
    TooLong {
        /// The scenario's duration.
        duration: Time,
        /// The longest that fits a fabric with so many links.
        longest: Time,
    },
    /// Stopped by the caller.
    Interrupted,
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunError::UnknownScheme(name) => {
                write!(f, "no scheme \"{name}\" in the scenario nor built in")
            }
            RunError::Parameter(what) => f.write_str(what),
            RunError::TooLong { duration, longest } => write!(
                f,
                "duration: {} s is too long for this many links; at most {} s",
                duration.as_secs_f64(),
                longest.as_secs_f64()
            ),
            RunError::Interrupted => f.write_str("interrupted"),
        }
    }
}

impl std::error::Error for RunError {}

/// The scheme of that name, the scenario's own before a built-in one.
///
/// # Errors
/// [`RunError::UnknownScheme`].
pub fn scheme_of<'a>(scenario: &'a Scenario, name: &str) -> Result<&'a Scheme, RunError> {
    let known = scenario
        .scheme
        .get(name)
        .or_else(|| builtin_schemes().get(name));
    known.ok_or_else(|| RunError::UnknownScheme(name.to_owned()))
}

/// Runs `scenario` under the scheme of that name. `progress` gets the share that is done, from 0 to
/// 1, and stops the run by returning false. The same arguments give the same outcome, but for its
/// [`Performance`].
///
/// # Errors
/// As [`run_on`].
pub fn run(
    scenario: &Scenario,
    inputs: &Inputs,
    scheme: &str,
    seed: u64,
    progress: &(dyn Fn(f64) -> bool + Sync),
) -> Result<Outcome, RunError> {
    run_on(Cores::default(), scenario, inputs, scheme, seed, progress)
}

/// What a run may use.
#[derive(Clone, Copy, Debug)]
pub struct Cores {
    /// Threads at most; the outcome does not depend on them.
    pub threads: usize,
    /// Shards that the fabric is simulated in; `None`: two where it is large, else one. The outcome
    /// depends on it as on the seed: simultaneous events take turns in another order.
    pub shards: Option<usize>,
}

impl Default for Cores {
    fn default() -> Cores {
        Cores {
            threads: 1,
            shards: None,
        }
    }
}

/// As [`run`], on several threads where the fabric is large.
///
/// # Errors
/// The scheme is unknown, a parameter does not fit the fabric, the run would be too long, or
/// `progress` stopped it.
pub fn run_on(
    cores: Cores,
    scenario: &Scenario,
    inputs: &Inputs,
    scheme: &str,
    seed: u64,
    progress: &(dyn Fn(f64) -> bool + Sync),
) -> Result<Outcome, RunError> {
    let started = Instant::now();
    let policies = scheme_of(scenario, scheme)?;
    let fabric = fabric::build(&scenario.fabric);
    let partition = shards::partition(scenario, policies, &fabric, cores.shards);
    let partition = Arc::new(partition);
    let measured = measured(scenario, &fabric, inputs);
    let set_up = |shard| {
        let part = (&fabric, &partition, shard as u16);
        shards::set_up(scenario, inputs, policies, seed, part, &measured)
    };
    let shards = (0..partition.shards()).map(set_up);
    let mut shards = shards.collect::<Result<Vec<Simulation>, RunError>>()?;
    let loop_started = Instant::now();
    let end = parallel::End {
        latest: scenario.duration,
        when_done: match scenario.until {
            Until::Duration => Time::NEVER,
            Until::Done => scenario.measure.from + Time(1),
        },
    };
    let lookahead = partition.lookahead();
    let ended = parallel::run(&mut shards, lookahead, end, cores.threads, progress);
    let end = ended.ok_or(RunError::Interrupted)?;
    let loop_s = loop_started.elapsed().as_secs_f64();
    for shard in &mut shards {
        shard.finish(end);
    }
    parallel::exchange(&mut shards, end);
    let mut results = Results::merged(shards.into_iter().map(|shard| shard.into_results(end)));
    set_ideal_times(
        &mut results.records,
        &fabric,
        &ClientProfiles::of(scenario, policies, inputs, seed),
        &scenario.fabric,
    );
    let performance =
        Performance::measure(started.elapsed().as_secs_f64(), loop_s, results.packet_hops);
    let lasted = Scenario {
        duration: end,
        ..scenario.clone()
    };
    let (packets, events) = traced::rows(scenario, &fabric, &mut results);
    let outcome = collect::collect(&lasted, &fabric, results, &measured, performance);
    Ok(Outcome {
        packets,
        events,
        ..outcome
    })
}
