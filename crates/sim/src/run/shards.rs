// SPDX-License-Identifier: Apache-2.0
//! A scenario's fabric as shards: how many, and each of them set up for the run.

use super::{ClientProfiles, Inputs, RunError, ports, schedule_traffic, traced, window_plan};
use crate::fabric::Fabric;
use crate::parallel::Partition;
use crate::simulation::{Action, Simulation, TrafficSink};
use penstock_scenario::units::Time;
use penstock_scenario::{self, Mode, Scenario, Scheme, Traffic};
use std::sync::Arc;

/// A fabric with fewer hosts stays whole, and so does one whose rounds would be shorter: on one core
/// its shards would throw each other out of the cache.
const LEAST_HOSTS: usize = 256;
const LEAST_LOOKAHEAD: Time = Time::from_micros(10);

/// How many shards a large fabric has. More cost more, each of them a copy of what all know.
const SHARDS: usize = 2;

/// The shards of the scenario's fabric: `shards` of them, or as its size suggests. Only one where
/// something acts on the fabric as a whole: a controller, or clients whose next push begins when the
/// other end has received the last, that wait for all others, or that one program acts for, or jobs,
/// or switches that have others pause.
pub fn partition(
    scenario: &Scenario,
    scheme: &Scheme,
    fabric: &Fabric,
    shards: Option<usize>,
) -> Partition {
    let acts_at_both_ends = |traffic: &Traffic| match traffic {
        Traffic::Incast(spec) => {
            spec.barrier
                || spec.mode == Mode::Push && spec.requests > 1
                || !spec.event_loop.is_zero()
        }
        Traffic::Job(_) => true,
        _ => false,
    };
    // The link that a dumbbell's credit policy sees both ends of is where it would be cut.
    let is_dumbbell = matches!(scenario.fabric, penstock_scenario::Fabric::Dumbbell(_));
    let is_global = is_dumbbell && scheme.window.is_behind_port()
        || scheme.controller != penstock_scenario::Controller::None
        || scenario.traffic.values().any(acts_at_both_ends)
        || !scenario.fabric.pfc_at().is_empty();
    if is_global || shards.is_none() && fabric.hosts < LEAST_HOSTS {
        return Partition::whole(fabric);
    }
    // A window policy rewrites what enters next to its port, where recorded packets are noted too, and
    // ports may share a buffer: then a switch stays whole.
    let shares = scheme.window.scheme().is_none()
        && scenario.fabric.shared_at().is_empty()
        && scenario.measure.packets.is_none();
    let partition = Partition::new(fabric, shards.unwrap_or(SHARDS), shares);
    if shards.is_none() && partition.lookahead() < LEAST_LOOKAHEAD {
        return Partition::whole(fabric);
    }
    partition
}

/// Shard number `shard` of the run, at rest. `measured`: the links of all measured ports.
pub fn set_up(
    scenario: &Scenario,
    inputs: &Inputs,
    scheme: &Scheme,
    seed: u64,
    (fabric, partition, shard): (&Fabric, &Arc<Partition>, u16),
    measured: &[u32],
) -> Result<Simulation, RunError> {
    let ClientProfiles { profiles, configs } = ClientProfiles::of(scenario, scheme, inputs, seed);
    let mut simulation = Simulation::new(fabric, partition, shard, configs, profiles, seed);
    ports::set_up(&mut simulation, scenario, scheme, fabric, seed)?;
    let queue_every = scenario.measure.queue_every;
    simulation.start(measured, queue_every, window_plan(scenario));
    if let Some(plan) = traced::plan(scenario, fabric, measured) {
        simulation.trace(plan);
    }
    if scenario.duration > simulation.network.horizon() {
        let (duration, longest) = (scenario.duration, simulation.network.horizon());
        return Err(RunError::TooLong { duration, longest });
    }
    schedule_traffic(&mut simulation, scenario, inputs, seed);
    simulation.at(scenario.measure.from, Action::MeasureStart);
    Ok(simulation)
}
