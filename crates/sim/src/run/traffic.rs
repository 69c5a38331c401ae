// SPDX-License-Identifier: Apache-2.0
//! The scenario's traffic as clients, generators and datagram sources, scheduled on a
//! [`TrafficSink`]: the simulation, or anything else that can make them, such as a kernel's sockets.

use super::{Inputs, tcp};
use crate::distribution::{FlowSize, Poisson};
use crate::rng::Rng;
use crate::simulation::{
    Action, ClientProfile, Datagrams, ENDLESS, Gaps, Generator, TrafficSink, Transfer, WindowPlan,
};
use crate::tcp::Config;
use penstock_scenario::units::{Rate, Time};
use penstock_scenario::{
    self, Arrivals, Bulk, Connection, Incast, LoadOf, Mode, Pairs, Scenario, Scheme, Selector,
    Trace, Traffic, Udp,
};

/// One profile and one TCP configuration for each traffic.
#[derive(Default)]
pub struct ClientProfiles {
    /// By traffic.
    pub profiles: Vec<ClientProfile>,
    /// By traffic.
    pub configs: Vec<Config>,
}

impl ClientProfiles {
    /// The profiles of the scenario's traffic, its TCP as `scheme` wants it.
    pub fn of(scenario: &Scenario, scheme: &Scheme) -> ClientProfiles {
        let traffic = scenario.traffic.values();
        ClientProfiles {
            profiles: (0..).zip(traffic.clone()).map(profile).collect(),
            configs: traffic
                .map(|traffic| tcp::config(&scenario.tcp_of(scheme, traffic)))
                .collect(),
        }
    }
}

fn profile((index, traffic): (u32, &Traffic)) -> ClientProfile {
    let open = ClientProfile {
        traffic: index,
        config: index,
        request_bytes: None,
        reconnects: true,
        think: Time::ZERO,
        barrier: None,
    };
    match traffic {
        Traffic::Incast(t) => ClientProfile {
            request_bytes: (t.mode == Mode::Pull).then_some(t.request.0),
            reconnects: t.connection == Connection::New,
            think: t.think,
            barrier: t.barrier.then_some(t.start_gap),
            ..open
        },
        Traffic::Poisson(t) => ClientProfile {
            request_bytes: (t.mode == Mode::Pull).then_some(t.request.0),
            ..open
        },
        _ => open,
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
        }
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
    fn starts(&mut self, count: usize, start: Time, spread: Time, gap: Time) -> Vec<Time> {
        let process = (gap > Time::ZERO).then(|| Poisson::new(1.0 / gap.as_secs_f64()));
        let mut at = start;
        (0..count)
            .map(|_| {
                if let Some(process) = &process {
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
        let starts = self.starts(pairs.len(), spec.start, spec.start_spread, spec.start_gap);
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
        let pairs = match spec.machines {
            None => self.pairs(spec.pairs, &spec.from, &spec.to, spec.flows),
            Some(machines) => {
                let (from, to) = (self.hosts(&spec.from), self.hosts(&spec.to));
                Pairs::between_machines(&from, &to, machines, spec.flows)
            }
        };
        let sizes = match (&spec.size, spec.block) {
            (Some(size), _) => self.inputs.distribution(size),
            (None, block) => {
                FlowSize::Fixed(block.map_or(1, |block| block.0 / pairs.len().max(1) as u64))
            }
        };
        for epoch in 0..u64::from(spec.epochs) {
            let start = spec.start + Time(epoch * spec.every.unwrap_or(Time::ZERO).0);
            let starts = self.starts(pairs.len(), start, spec.start_spread, spec.start_gap);
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
            process: Poisson::new(per_second),
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
                Arrivals::Constant => Gaps::Constant(Time((1e12 / per_second) as u64)),
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
        let fabric = &self.scenario.fabric;
        let host_rate = fabric.host_link().rate.0;
        match (load_of, fabric.bottleneck_rate()) {
            (None | Some(LoadOf::Bottleneck), Some(rate)) => rate,
            (Some(LoadOf::Destinations), _) => Rate(host_rate * self.hosts(to).len() as u64),
            _ => Rate(host_rate * self.hosts(from).len() as u64),
        }
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

struct PoissonTransfers {
    process: Poisson,
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
