// SPDX-License-Identifier: Apache-2.0
//! The scenario's jobs as graphs of transfers and gates.
//!
//! A step begins at gates: one for all hosts (a barrier), or one for each host, which opens once the host
//! has received what the steps before send to it. Both kinds may follow each other.

use crate::distribution::{Draws, FlowSize};
use crate::rng::Rng;
use crate::simulation::{Gate, JobGraph, JobSource, JobTransfer, Transfer};
use penstock_scenario::units::Time;
use penstock_scenario::{After, CLIENT, Fabric, Job, Pattern, Selector};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// What a job's row needs to make its jobs.
#[derive(Clone)]
pub(super) struct Plan {
    pub fabric: Arc<Fabric>,
    pub client: Option<usize>,
    pub picks: Vec<(String, Vec<usize>, usize)>,
    pub stages: Vec<StagePlan>,
    /// Independent of all other rows.
    pub seed: u64,
}

/// A stage, its distributions read and its ends resolved where they are the same for all jobs.
#[derive(Clone)]
pub(super) struct StagePlan {
    /// Index of the profile of its transfers.
    pub profile: u32,
    pub from: Ends,
    pub to: Ends,
    pub pattern: Pattern,
    pub flows: Option<u32>,
    pub steps: Option<u32>,
    pub after: After,
    pub enough: Option<u32>,
    /// Length of each transfer, or of all of a step together.
    pub length: Length,
    pub think: Draws,
}

#[derive(Clone)]
pub(super) enum Ends {
    Fixed(Vec<usize>),
    Drawn(Selector),
}

#[derive(Clone)]
pub(super) enum Length {
    Each(FlowSize),
    Shared(u64),
}

impl Ends {
    pub fn new(selector: &Selector, fabric: &Fabric) -> Ends {
        match selector.resolve(fabric) {
            Ok(hosts) => Ends::Fixed(hosts),
            Err(_) => Ends::Drawn(selector.clone()),
        }
    }

    fn of(&self, fabric: &Fabric, sets: &HashMap<String, Vec<usize>>) -> Vec<usize> {
        match self {
            Ends::Fixed(hosts) => hosts.clone(),
            Ends::Drawn(selector) => Job::hosts(selector, fabric, sets).unwrap_or_default(),
        }
    }
}

impl Plan {
    /// The client and the sets that are drawn for this job.
    fn sets(&self, rng: &mut Rng) -> HashMap<String, Vec<usize>> {
        let mut sets = HashMap::new();
        if let Some(client) = self.client {
            sets.insert(CLIENT.to_owned(), vec![client]);
        }
        for (name, of, count) in &self.picks {
            let mut hosts: Vec<usize> = of.clone();
            hosts.retain(|host| Some(*host) != self.client);
            let count = (*count).min(hosts.len());
            for place in 0..count {
                let other = place + rng.below((hosts.len() - place) as u64) as usize;
                hosts.swap(place, other);
            }
            hosts.truncate(count);
            sets.insert(name.clone(), hosts);
        }
        sets
    }
}

impl JobSource for Plan {
    fn job(&mut self, number: u32) -> JobGraph {
        let mut rng = Rng::new(self.seed, number.into());
        let sets = self.sets(&mut rng);
        let mut graph = Builder::new(number);
        for (stage, index) in self.stages.iter().zip(0..) {
            let from = stage.from.of(&self.fabric, &sets);
            let to = stage.to.of(&self.fabric, &sets);
            let steps = stage.steps.unwrap_or(stage.pattern.steps(from.len()));
            for step in 0..steps {
                let draw = |bound: usize| rng.below(bound as u64) as usize;
                let ends = (from.as_slice(), to.as_slice());
                let pairs = stage.pattern.choose(ends, stage.flows, (step, steps), draw);
                let transfers = pairs.iter().map(|(source, destination)| Transfer {
                    source: *source as u32,
                    destination: *destination as u32,
                    bytes: match &stage.length {
                        Length::Each(size) => size.sample(&mut rng),
                        Length::Shared(bytes) => (bytes / pairs.len() as u64).max(1),
                    },
                });
                let transfers: Vec<Transfer> = transfers.collect();
                graph.step(stage, index, &transfers);
            }
        }
        graph.finish()
    }
}

/// What is behind the last step so far.
enum Front {
    /// All hosts wait here.
    All(u32),
    /// Each host waits at its own gate; those without one at the first.
    Hosts(u32, BTreeMap<u32, u32>),
}

/// The transfers of a step by their destination, to arrive once it is known where.
struct Step {
    transfers: Vec<(u32, u32)>,
    enough: Option<u32>,
}

struct Builder {
    number: u32,
    graph: JobGraph,
    front: Front,
    last: Step,
}

impl Builder {
    fn new(number: u32) -> Builder {
        let mut builder = Builder {
            number,
            graph: JobGraph::default(),
            front: Front::All(0),
            last: Step {
                transfers: Vec::new(),
                enough: None,
            },
        };
        builder.gate(1);
        builder
    }

    fn gate(&mut self, waits: u32) -> u32 {
        self.graph.gates.push(Gate {
            waits,
            ..Gate::default()
        });
        self.graph.gates.len() as u32 - 1
    }

    fn chain(&mut self, first: u32, then: u32) {
        self.graph.gates[first as usize].opens.push(then);
    }

    /// A gate that opens once `arriving` transfers of the last step, or what is enough, have arrived and
    /// `before` have opened.
    fn meeting(&mut self, arriving: &[u32], before: &[u32]) -> u32 {
        let count = arriving.len() as u32;
        let enough = self.last.enough.map_or(count, |enough| enough.min(count));
        // Arrivals beyond those that are enough must not count for the gates before.
        let gate = match enough == count {
            true => self.gate(count + before.len() as u32),
            false => self.gate(1 + before.len() as u32),
        };
        let at = match enough == count {
            true => gate,
            false => {
                let arrivals = self.gate(enough);
                self.chain(arrivals, gate);
                arrivals
            }
        };
        for transfer in arriving {
            self.graph.transfers[*transfer as usize].then = at;
        }
        for first in before {
            self.chain(*first, gate);
        }
        gate
    }

    /// All wait for all of the last step.
    fn meet_all(&mut self) -> u32 {
        let arriving: Vec<u32> = self.last.transfers.iter().map(|(_, t)| *t).collect();
        let before: Vec<u32> = match &self.front {
            Front::All(gate) => vec![*gate],
            Front::Hosts(first, hosts) => hosts.values().copied().chain([*first]).collect(),
        };
        let gate = self.meeting(&arriving, &before);
        self.last.transfers.clear();
        gate
    }

    /// Each host waits for what the last step sends to it, and what it has waited for before.
    fn meet_each(&mut self) {
        let mut to: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for (host, transfer) in std::mem::take(&mut self.last.transfers) {
            to.entry(host).or_default().push(transfer);
        }
        let (first, mut hosts) = match &self.front {
            Front::All(gate) => (*gate, BTreeMap::new()),
            Front::Hosts(first, hosts) => (*first, hosts.clone()),
        };
        for (host, arriving) in to {
            let before = hosts.get(&host).copied().unwrap_or(first);
            let gate = self.meeting(&arriving, &[before]);
            hosts.insert(host, gate);
        }
        self.front = Front::Hosts(first, hosts);
    }

    /// A step of a stage; `index`: the stage's.
    fn step(&mut self, stage: &StagePlan, index: u32, transfers: &[Transfer]) {
        if transfers.is_empty() {
            return;
        }
        if !self.graph.transfers.is_empty() {
            match stage.after {
                After::All => self.front = Front::All(self.meet_all()),
                After::Received => self.meet_each(),
            }
        }
        let mut pauses: BTreeMap<u32, u32> = BTreeMap::new();
        let mut made = Vec::new();
        for transfer in transfers {
            let number = self.graph.transfers.len() as u32;
            self.graph.transfers.push(JobTransfer {
                profile: stage.profile,
                transfer: *transfer,
                then: 0,
            });
            let at = match &self.front {
                Front::All(gate) => *gate,
                Front::Hosts(first, hosts) => *hosts.get(&transfer.source).unwrap_or(first),
            };
            let at = match stage.think.is_zero() {
                true => at,
                false => *pauses.entry(transfer.source).or_insert_with(|| {
                    // Each host thinks by itself.
                    let pause = stage.think.draw(self.number, index << 20 ^ number);
                    self.graph.gates.push(Gate {
                        waits: 1,
                        pause: Time(pause),
                        ..Gate::default()
                    });
                    let gate = self.graph.gates.len() as u32 - 1;
                    self.graph.gates[at as usize].opens.push(gate);
                    gate
                }),
            };
            self.graph.gates[at as usize].begins.push(number);
            made.push((transfer.destination, number));
        }
        self.last = Step {
            transfers: made,
            enough: stage.enough,
        };
    }

    fn finish(mut self) -> JobGraph {
        let over = self.meet_all();
        let last = self.gate(1);
        self.chain(over, last);
        self.graph
    }
}
