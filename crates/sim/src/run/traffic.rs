// SPDX-License-Identifier: Apache-2.0
//! The scenario's traffic as clients, generators and datagram sources, scheduled on a
//! [`TrafficSink`]: the simulation, or anything else that can make them, such as a kernel's sockets.

use super::jobs::{Ends, Length, Plan, StagePlan};
use super::{Inputs, tcp};
use crate::distribution::{Draws, FlowSize, Poisson};
use crate::rng::Rng;
use crate::simulation::{
    Action, ClientProfile, Datagrams, ENDLESS, Gaps, Generator, JobRow, LoopTimes, TrafficSink,
    Transfer, WindowPlan,
};
use crate::tcp::Config;
use penstock_scenario::units::{Rate, Time};
use penstock_scenario::{
    self, Arrivals, Bulk, Bursts, Connection, Delay, Incast, Job, LoadOf, Mode, Pairs, Scenario,
    Scheme, Selector, Size, Stage, Trace, Traffic, Udp,
};
use std::sync::Arc;

/// One profile and one TCP configuration for each traffic, then a profile for each stage of jobs.
#[derive(Default)]
pub struct ClientProfiles {
    /// By traffic; then those of stages, by traffic and stage.
    pub profiles: Vec<ClientProfile>,
    /// By traffic.
    pub configs: Vec<Config>,
}

impl ClientProfiles {
    /// The profiles of the scenario's traffic, its TCP as `scheme` wants it.
    pub fn of(scenario: &Scenario, scheme: &Scheme, inputs: &Inputs, seed: u64) -> ClientProfiles {
        let traffic = (0..).zip(scenario.traffic.values());
        let of_traffic = |(index, traffic)| profile(index, traffic, inputs, seed);
        let stages = traffic.clone().flat_map(|(index, traffic)| match traffic {
            Traffic::Job(job) => (0..)
                .zip(&job.stages)
                .map(|(number, stage)| of_stage(index, job, (number, stage), inputs, seed))
                .collect(),
            _ => Vec::new(),
        });
        ClientProfiles {
            profiles: traffic.clone().map(of_traffic).chain(stages).collect(),
            configs: traffic
                .map(|(_, traffic)| Config {
                    seed,
                    ..tcp::config(&scenario.tcp_of(scheme, traffic))
                })
                .collect(),
        }
    }
}

/// Stream of the seeds of one traffic's profile; what is drawn there shifts no other draw.
fn draws(of: FlowSize, seed: u64, traffic: u32, number: u64) -> Draws {
    let stream = 1 << 40 | u64::from(traffic) << 8 | number;
    Draws::new(of, Rng::new(seed, stream).bits())
}

/// Number of the draws of servers' pauses; clients, which differ between stages, draw apart.
const SERVER_THINK: u64 = 4;
/// Number of the draws of what a program takes for each thing that it does.
const EVENT_LOOP: u64 = 5;

fn open(traffic: u32) -> ClientProfile {
    ClientProfile {
        traffic,
        config: traffic,
        request: None,
        server_think: Draws::new(FlowSize::Fixed(0), 0),
        reconnects: true,
        sizes: None,
        think: Draws::new(FlowSize::Fixed(0), 0),
        barrier: None,
        event_loop: None,
    }
}

fn profile(index: u32, traffic: &Traffic, inputs: &Inputs, seed: u64) -> ClientProfile {
    let open = open(index);
    let draws = |of: FlowSize, number| draws(of, seed, index, number);
    let request =
        |mode: Mode, size: &Size| (mode == Mode::Pull).then(|| draws(inputs.distribution(size), 0));
    match traffic {
        Traffic::Incast(t) => ClientProfile {
            request: request(t.mode, &t.request),
            server_think: draws(inputs.delay(&t.server_think), SERVER_THINK),
            reconnects: t.connection == Connection::New,
            sizes: match &t.size {
                Some(size) if t.requests > 1 && !size.is_fixed() => {
                    Some(draws(inputs.distribution(size), 1))
                }
                _ => None,
            },
            think: draws(inputs.delay(&t.think), 2),
            barrier: t.barrier.then(|| draws(inputs.delay(&t.start_gap), 3)),
            event_loop: (!t.event_loop.is_zero()).then(|| {
                let connect = t.event_loop_connect.as_ref().unwrap_or(&t.event_loop);
                LoopTimes {
                    connect: draws(inputs.delay(connect), EVENT_LOOP),
                    other: draws(inputs.delay(&t.event_loop), EVENT_LOOP),
                }
            }),
            ..open
        },
        Traffic::Poisson(t) => ClientProfile {
            request: request(t.mode, &t.request),
            server_think: draws(inputs.delay(&t.server_think), SERVER_THINK),
            ..open
        },
        _ => open,
    }
}

fn of_stage(
    index: u32,
    job: &Job,
    (number, stage): (u64, &Stage),
    inputs: &Inputs,
    seed: u64,
) -> ClientProfile {
    let request = || {
        draws(
            inputs.distribution(&stage.request),
            seed,
            index,
            16 + number,
        )
    };
    ClientProfile {
        request: (stage.mode == Mode::Pull).then(request),
        server_think: draws(inputs.delay(&stage.server_think), seed, index, SERVER_THINK),
        reconnects: job.connection == Connection::New,
        ..open(index)
    }
}

/// Which windows the scenario has sampled.
pub fn window_plan(scenario: &Scenario) -> Option<WindowPlan> {
    let windows = scenario.measure.windows.as_ref()?;
    let traffic = scenario.traffic.get_index_of(&windows.traffic)?;
    Some(WindowPlan {
        traffic: traffic as u32,
        flows: windows.flows,
        every: windows.every,
    })
}

/// Schedules all the traffic of the scenario on `sink`. The same scenario and seed give the same
/// pairs, starts and sizes for every sink.
pub fn schedule_traffic(
    sink: &mut dyn TrafficSink,
    scenario: &Scenario,
    inputs: &Inputs,
    seed: u64,
) {
    let mut stages = scenario.traffic.len() as u32;
    for (index, traffic) in (0..).zip(scenario.traffic.values()) {
        let mut expansion = Expansion {
            sink,
            scenario,
            inputs,
            profile: index,
            rng: Rng::new(seed, 16 + u64::from(index)),
        };
        match traffic {
            Traffic::Bulk(spec) => expansion.bulk(spec),
            Traffic::Incast(spec) => expansion.incast(spec),
            Traffic::Poisson(spec) => expansion.poisson(spec),
            Traffic::Udp(spec) => expansion.udp(spec),
            Traffic::Trace(spec) => expansion.trace(spec),
            Traffic::Job(spec) => {
                expansion.job(spec, stages);
                stages += spec.stages.len() as u32;
            }
        }
    }
}

/// The ends of each client of an epoch.
pub fn incast_pairs(
    spec: &Incast,
    fabric: &penstock_scenario::Fabric,
    rng: &mut Rng,
) -> Vec<(usize, usize)> {
    let [from, to] =
        [&spec.from, &spec.to].map(|selector| selector.resolve(fabric).unwrap_or_default());
    let Some(machines) = spec.machines else {
        let draw = |bound| rng.below(bound as u64) as usize;
        return spec.pairs.choose(&from, &to, spec.flows, draw);
    };
    let pairs = Pairs::between_machines(&from, &to, machines);
    match spec.flows {
        None => pairs.collect(),
        Some(flows) => pairs.cycle().take(flows as usize).collect(),
    }
}

struct Expansion<'a> {
    sink: &'a mut dyn TrafficSink,
    scenario: &'a Scenario,
    inputs: &'a Inputs,
    profile: u32,
    rng: Rng,
}

impl Expansion<'_> {
    fn hosts(&self, selector: &Selector) -> Vec<usize> {
        selector.resolve(&self.scenario.fabric).unwrap_or_default()
    }

    fn pairs(
        &mut self,
        pairs: Pairs,
        from: &Selector,
        to: &Selector,
        flows: Option<u32>,
    ) -> Vec<(usize, usize)> {
        let (from, to) = (self.hosts(from), self.hosts(to));
        pairs.choose(&from, &to, flows, |bound| {
            self.rng.below(bound as u64) as usize
        })
    }

    /// Times of `count` starts from `start` on: uniform within `spread`, and `gap` apart on average.
    fn starts(&mut self, count: usize, start: Time, spread: Time, gap: &Delay) -> Vec<Time> {
        let gaps = (!gap.is_zero()).then(|| match gap {
            Delay::Fixed(mean) => Process::Poisson(Poisson::new(1.0 / mean.as_secs_f64())),
            drawn => Process::Drawn(self.inputs.delay(drawn)),
        });
        let mut at = start;
        (0..count)
            .map(|_| {
                if let Some(process) = &gaps {
                    at = at.saturating_add(process.gap(&mut self.rng));
                }
                at.saturating_add(Time(self.rng.below(spread.0.max(1))))
            })
            .collect()
    }

    fn bulk(&mut self, spec: &Bulk) {
        let sizes = spec.size.as_ref().map_or(FlowSize::Fixed(ENDLESS), |size| {
            self.inputs.distribution(size)
        });
        let pairs = self.pairs(spec.pairs, &spec.from, &spec.to, spec.flows);
        let starts = self.starts(pairs.len(), spec.start, spec.start_spread, &spec.start_gap);
        for (number, (pair, start)) in pairs.into_iter().zip(starts).enumerate() {
            let transfer = transfer(pair, sizes.sample(&mut self.rng));
            let client = self
                .sink
                .add_client(self.profile, number as u32, transfer, 1);
            self.sink.at(start, Action::Begin(client));
            if let Some(stop) = spec.stop {
                self.sink.at(stop, Action::Stop(client));
            }
        }
    }

    fn incast(&mut self, spec: &Incast) {
        let pairs = incast_pairs(spec, &self.scenario.fabric, &mut self.rng);
        let sizes = match (&spec.size, spec.block) {
            (Some(size), _) => self.inputs.distribution(size),
            (None, block) => {
                FlowSize::Fixed(block.map_or(1, |block| block.0 / pairs.len().max(1) as u64))
            }
        };
        for epoch in 0..u64::from(spec.epochs) {
            let start = spec.start + Time(epoch * spec.every.unwrap_or(Time::ZERO).0);
            let starts = self.starts(pairs.len(), start, spec.start_spread, &spec.start_gap);
            for (number, (pair, start)) in pairs.iter().zip(starts).enumerate() {
                let transfer = transfer(*pair, sizes.sample(&mut self.rng));
                let client =
                    self.sink
                        .add_client(self.profile, number as u32, transfer, spec.requests);
                self.sink.at(start, Action::Begin(client));
            }
        }
    }

    fn poisson(&mut self, spec: &penstock_scenario::Poisson) {
        let (from, to) = (self.hosts(&spec.from), self.hosts(&spec.to));
        let full = self.full_load(spec.load_of, &spec.from, &spec.to);
        let sizes = self.inputs.distribution(&spec.size);
        let per_second = spec.load.0 * full.0 as f64 / (8.0 * sizes.mean());
        let all = Pairs::All.choose(&from, &to, None, |_| 0);
        let arrivals = PoissonTransfers {
            process: self.arrivals(spec, per_second),
            pairs: match spec.pairs {
                Pairs::Random => Drawn::Random(from, to),
                Pairs::All => Drawn::Walk(all),
                Pairs::Cyclic => Drawn::Walk(Pairs::Cyclic.choose(&from, &to, None, |_| 0)),
            },
            sizes,
            at: spec.start,
            made: 0,
            most: spec.flows.map_or(u64::MAX, u64::from),
            stop: spec.stop.unwrap_or(self.scenario.duration),
            rng: self.rng.clone(),
        };
        self.sink.add_generator(self.profile, Box::new(arrivals));
    }

    /// The times between arrivals, of which so many come in a second.
    fn arrivals(&self, spec: &penstock_scenario::Poisson, per_second: f64) -> Arriving {
        let bursts = spec.bursts.as_ref().map(|Bursts { on, off }| {
            let [on, off] = [on, off].map(|delay| self.inputs.delay(delay));
            let share = on.mean() / (on.mean() + off.mean());
            (share, On { on, off, left: 0 })
        });
        let per_second = bursts
            .as_ref()
            .map_or(per_second, |(share, _)| per_second / share);
        let process = match &spec.gaps {
            None => Process::Poisson(Poisson::new(per_second)),
            Some(gaps) => {
                let gaps = self.inputs.delay(gaps);
                let factor = 1e12 / per_second / gaps.mean();
                Process::Drawn(gaps.scaled(factor))
            }
        };
        Arriving {
            process,
            bursts: bursts.map(|(_, bursts)| bursts),
        }
    }

    /// `first_profile`: that of its first stage.
    fn job(&mut self, spec: &Job, first_profile: u32) {
        let fabric = Arc::new(self.scenario.fabric.clone());
        let stages = (first_profile..)
            .zip(&spec.stages)
            .map(|(profile, stage)| StagePlan {
                profile,
                from: Ends::new(&stage.from, &fabric),
                to: Ends::new(&stage.to, &fabric),
                pattern: stage.pairs,
                flows: stage.flows,
                steps: stage.steps,
                after: stage.after,
                enough: stage.enough,
                length: match (&stage.size, stage.block) {
                    (Some(size), _) => Length::Each(self.inputs.distribution(size)),
                    (None, block) => Length::Shared(block.map_or(1, |block| block.0)),
                },
                think: Draws::new(self.inputs.delay(&stage.think), self.rng.bits()),
            });
        let stages: Vec<StagePlan> = stages.collect();
        let picks = spec.pick.iter().map(|(name, pick)| {
            let hosts = pick.of.resolve(&fabric).unwrap_or_default();
            (name.clone(), hosts, pick.count as usize)
        });
        let picks: Vec<_> = picks.collect();
        let clients: Vec<Option<usize>> = match &spec.clients {
            Some(clients) => self.hosts(clients).into_iter().map(Some).collect(),
            None => vec![None],
        };
        let none = Delay::Fixed(Time::ZERO);
        let starts = self.starts(clients.len(), spec.start, spec.start_spread, &none);
        for (client, start) in clients.into_iter().zip(starts) {
            let delay = |delay: &Delay, seed| Draws::new(self.inputs.delay(delay), seed);
            let [plan_seed, think_seed, every_seed] = [(); 3].map(|()| self.rng.bits());
            let row = JobRow {
                traffic: self.profile,
                client: client.map(|host| host as u32),
                start,
                jobs: spec.jobs,
                think: delay(&spec.think, think_seed),
                every: spec.every.as_ref().map(|every| delay(every, every_seed)),
                is_persistent: spec.connection == Connection::Persistent,
                source: Box::new(Plan {
                    fabric: fabric.clone(),
                    client,
                    picks: picks.clone(),
                    stages: stages.clone(),
                    seed: plan_seed,
                }),
            };
            self.sink.add_jobs(row);
        }
    }

    fn udp(&mut self, spec: &Udp) {
        let pairs = self.pairs(spec.pairs, &spec.from, &spec.to, spec.flows);
        let full = self.full_load(spec.load_of, &spec.from, &spec.to);
        let rate = spec.rate.map_or_else(
            || spec.load.map_or(0.0, |load| load.0 * full.0 as f64),
            |rate| rate.0 as f64,
        );
        let per_second = rate / (8.0 * spec.packet.0 as f64 * pairs.len().max(1) as f64);
        for (source, destination) in pairs {
            let rng = Rng::new(self.rng.bits(), 0);
            let gaps = match spec.arrivals {
                Arrivals::Poisson => Gaps::Poisson(Poisson::new(per_second)),
                Arrivals::Constant => Gaps::Constant(Time((1e12 / per_second).max(1.0) as u64)),
            };
            let datagrams = Datagrams {
                size: spec.packet.0.try_into().unwrap_or(u16::MAX),
                gaps,
                stop: spec.stop.unwrap_or(Time::NEVER),
                rng,
            };
            let (source, destination) = (source as u32, destination as u32);
            self.sink
                .add_datagrams(source, destination, spec.start, datagrams);
        }
    }

    fn trace(&mut self, spec: &Trace) {
        let rows = self.inputs.trace(&spec.file).iter();
        let shifted: Vec<_> = rows
            .map(|(time, transfer)| (*time + spec.start, *transfer))
            .collect();
        self.sink
            .add_generator(self.profile, Box::new(Recorded(shifted.into_iter())));
    }

    /// The rate that a load of 1 stands for.
    fn full_load(&self, load_of: Option<LoadOf>, from: &Selector, to: &Selector) -> Rate {
        let (from, to) = (self.hosts(from), self.hosts(to));
        self.scenario.fabric.full_load(load_of, &from, &to)
    }
}

fn transfer((source, destination): (usize, usize), bytes: u64) -> Transfer {
    Transfer {
        source: source as u32,
        destination: destination as u32,
        bytes,
    }
}

struct Recorded(std::vec::IntoIter<(Time, Transfer)>);

impl Generator for Recorded {
    fn next(&mut self) -> Option<(Time, Transfer)> {
        self.0.next()
    }
}

/// How the ends of arriving transfers are found.
enum Drawn {
    Random(Vec<usize>, Vec<usize>),
    Walk(Vec<(usize, usize)>),
}

/// Gaps between starts.
enum Process {
    Poisson(Poisson),
    Drawn(FlowSize),
}

impl Process {
    fn gap(&self, rng: &mut Rng) -> Time {
        match self {
            Process::Poisson(process) => process.gap(rng),
            Process::Drawn(gaps) => Time(gaps.sample(rng)),
        }
    }
}

/// Bursts and the silence between them.
struct On {
    on: FlowSize,
    off: FlowSize,
    /// What is left of the burst, picoseconds.
    left: u64,
}

/// Gaps between arrivals, which may come in bursts.
struct Arriving {
    process: Process,
    bursts: Option<On>,
}

impl Arriving {
    fn gap(&mut self, rng: &mut Rng) -> Time {
        let gap = self.process.gap(rng);
        let Some(On { on, off, left }) = &mut self.bursts else {
            return gap;
        };
        // The gap passes while a burst lasts only.
        let mut all = gap;
        let mut wanted = gap.0;
        while wanted > *left {
            wanted -= *left;
            all = all.saturating_add(Time(off.sample(rng)));
            *left = on.sample(rng);
            if all == Time::NEVER {
                return all;
            }
        }
        *left -= wanted;
        all
    }
}

struct PoissonTransfers {
    process: Arriving,
    pairs: Drawn,
    sizes: FlowSize,
    at: Time,
    made: u64,
    most: u64,
    stop: Time,
    rng: Rng,
}

impl Generator for PoissonTransfers {
    fn next(&mut self) -> Option<(Time, Transfer)> {
        self.at = self.at.saturating_add(self.process.gap(&mut self.rng));
        if self.made == self.most || self.at >= self.stop {
            return None;
        }
        let pair = match &self.pairs {
            Drawn::Random(from, to) => *Pairs::Random
                .choose(from, to, Some(1), |bound| {
                    self.rng.below(bound as u64) as usize
                })
                .first()?,
            Drawn::Walk(pairs) => *pairs.get(self.made as usize % pairs.len().max(1))?,
        };
        self.made += 1;
        Some((self.at, transfer(pair, self.sizes.sample(&mut self.rng))))
    }
}
