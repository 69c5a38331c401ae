// SPDX-License-Identifier: Apache-2.0
//! Jobs: transfers that wait for others. One mechanism for queries, striped reads, coflows and
//! collectives: a job has stages, a stage has steps, and a step begins when the one before is over.

use std::collections::HashMap;

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::count::{Hosts, Transfers};
use super::drawn::{Delay, Size};
use super::fabric::Fabric;
use super::quantities::Bytes;
use super::selector::Selector;
use super::tcp::Tcp;
use super::traffic::{Connection, Mode, Pairs};
use crate::units::Time;

/// The name by which stages refer to the host that runs the job.
pub const CLIENT: &str = "client";

/// Jobs: each is a number of stages of transfers, of which one begins when that before it is over.
/// What counts is when a whole job is done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// Hosts that each run a row of jobs of their own; the stages call this host "client". Default:
    /// one row of jobs, without a client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clients: Option<Selector>,
    /// Jobs in each row. Default: 1.
    #[serde(with = "Transfers", default = "one")]
    pub jobs: u32,
    /// Pause between the end of a job and the next of its row. Default: 0 s.
    #[serde(default = "no_delay", skip_serializing_if = "Delay::is_zero")]
    pub think: Delay,
    /// From one job's start to the next of its row, whether or not it is over. Default: a job begins
    /// when the one before it is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<Delay>,
    /// When the first jobs start. Default: 0 s.
    #[serde(default = "no_time")]
    pub start: Time,
    /// The rows start at random times within this span from `start` on. Default: 0 s.
    #[serde(default = "no_time", skip_serializing_if = "is_zero")]
    pub start_spread: Time,
    /// Sets of hosts that are drawn for each job, by a name that its stages may use, without the
    /// client: `{ servers = { of = "rack2", count = 10 } }`. Default: none.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub pick: IndexMap<String, Pick>,
    /// The stages, one after the other.
    pub stages: Vec<Stage>,
    /// Whether each transfer has a connection of its own, or those of a row with the same stage and
    /// ends share one. Default: new.
    #[serde(default)]
    pub connection: Connection,
    /// A job that takes longer has missed its deadline. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Time>,
    /// TCP parameters of these flows, over those of scenario and scheme.
    #[serde(default, skip_serializing_if = "Tcp::is_empty")]
    pub tcp: Tcp,
}

/// Hosts drawn for each job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Pick {
    /// Hosts to draw from.
    pub of: Selector,
    /// How many, each once.
    #[serde(with = "Hosts")]
    pub count: u32,
}

/// One stage of a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Stage {
    /// Sources of the data: hosts, "client", or a set of `pick`.
    pub from: Selector,
    /// Destinations of the data, likewise.
    pub to: Selector,
    /// Who sends to whom. Default: cyclic.
    #[serde(default)]
    pub pairs: Pattern,
    /// Transfers of a step, for pairs cyclic, random and all. Default: one per source, or per
    /// destination if those are more; with `pairs = "all"` one per pair.
    #[serde(with = "Transfers", default, skip_serializing_if = "Option::is_none")]
    pub flows: Option<u32>,
    /// Length of each transfer; or give `block`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<Size>,
    /// Length of all transfers of a step together: each is `block / transfers` long, rounded down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block: Option<Bytes>,
    /// Steps, one after the other. Default: as many as `pairs` needs, which is 1 for cyclic, random
    /// and all.
    #[serde(with = "Transfers", default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<u32>,
    /// What its steps wait for. Default: all.
    #[serde(default)]
    pub after: After,
    /// How many transfers of a step are enough for what waits for it, as where the first k of n
    /// pieces suffice: of all, or, where a host waits for what is sent to it, of these. Default: all.
    #[serde(with = "Transfers", default, skip_serializing_if = "Option::is_none")]
    pub enough: Option<u32>,
    /// What a host computes before it sends. Default: 0 s.
    #[serde(default = "no_delay", skip_serializing_if = "Delay::is_zero")]
    pub think: Delay,
    /// Who opens the connection. Default: push.
    #[serde(default)]
    pub mode: Mode,
    /// Bytes with which the destination asks, in mode pull. Default: 100 B.
    #[serde(default = "request", skip_serializing_if = "is_default_request")]
    pub request: Size,
    /// Pause of a source between a request and its answer, in mode pull. Default: 0 s.
    #[serde(default = "no_delay", skip_serializing_if = "Delay::is_zero")]
    pub server_think: Delay,
}

/// Who sends to whom in a step. But for the first three both ends are the same list of n hosts, numbered from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Pattern {
    /// Flow i goes from source i to destination i, each list repeated as often as needed.
    #[default]
    Cyclic,
    /// Both ends are drawn for each flow, never the same host.
    Random,
    /// Each source to each destination but itself.
    All,
    /// Host i to host i + 1, the last to the first: 2 (n - 1) steps, as in a ring all-reduce.
    Ring,
    /// In step s, from 1, host i to host i + s: n - 1 steps, an all-to-all without two senders to one host.
    Shift,
    /// In step s, from 0, hosts whose numbers differ in bit s exchange: log2 n steps, recursive doubling. n must
    /// be a power of 2.
    Exchange,
    /// A binomial tree towards host 0: in step s, from 0, host i with lowest set bit s to i - 2^s.
    Reduce,
    /// The same tree from host 0, backwards.
    Broadcast,
}

/// What a step waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum After {
    /// The step before is over, for all hosts: a barrier.
    #[default]
    All,
    /// Each host sends once it has received what earlier steps send to it.
    Received,
}

const fn one() -> u32 {
    1
}

fn no_time() -> Time {
    Time::ZERO
}

fn is_zero(time: &Time) -> bool {
    *time == Time::ZERO
}

fn no_delay() -> Delay {
    Delay::Fixed(Time::ZERO)
}

pub(super) fn request() -> Size {
    Size::Fixed(Bytes(100))
}

fn is_default_request(size: &Size) -> bool {
    *size == request()
}

impl Pattern {
    /// Steps that it has of itself, among `hosts` hosts.
    pub const fn steps(self, hosts: usize) -> u32 {
        let hosts = hosts as u32;
        match self {
            Pattern::Cyclic | Pattern::Random | Pattern::All => 1,
            Pattern::Ring => 2 * hosts.saturating_sub(1),
            Pattern::Shift => hosts.saturating_sub(1),
            Pattern::Exchange | Pattern::Reduce | Pattern::Broadcast => {
                u32::BITS - hosts.saturating_sub(1).leading_zeros()
            }
        }
    }

    /// Whether both ends are one list of hosts.
    pub const fn is_among(self) -> bool {
        !matches!(self, Pattern::Cyclic | Pattern::Random | Pattern::All)
    }

    /// The transfers of step number `step` of `steps`: source, destination. No host sends to itself.
    pub fn choose(
        self,
        (from, to): (&[usize], &[usize]),
        flows: Option<u32>,
        (step, steps): (u32, u32),
        draw: impl FnMut(usize) -> usize,
    ) -> Vec<(usize, usize)> {
        let hosts = from.len();
        let by_number = |target: &dyn Fn(usize) -> Option<usize>| {
            let one = |i| target(i).filter(|j| *j < hosts).map(|j| (from[i], from[j]));
            (0..hosts).filter_map(one).collect()
        };
        let bit = |step: u32| 1_usize.checked_shl(step).unwrap_or(0);
        let mut chosen: Vec<(usize, usize)> = match self {
            Pattern::Cyclic => {
                let most = from.len().max(to.len()) as u32;
                Pairs::Cyclic.choose(from, to, Some(flows.unwrap_or(most)), draw)
            }
            Pattern::Random => {
                let most = from.len().max(to.len()) as u32;
                Pairs::Random.choose(from, to, Some(flows.unwrap_or(most)), draw)
            }
            Pattern::All => Pairs::All.choose(from, to, flows, draw),
            Pattern::Ring => by_number(&|i| Some((i + 1) % hosts)),
            Pattern::Shift => by_number(&|i| Some((i + step as usize + 1) % hosts)),
            Pattern::Exchange => by_number(&|i| Some(i ^ bit(step % steps.max(1)))),
            Pattern::Reduce => by_number(&|i| {
                let bit = bit(step);
                (bit > 0 && i % (2 * bit) == bit).then(|| i - bit)
            }),
            Pattern::Broadcast => by_number(&|i| {
                let bit = bit(steps.saturating_sub(step + 1));
                (bit > 0 && i % (2 * bit) == 0).then_some(i + bit)
            }),
        };
        chosen.retain(|(source, destination)| source != destination);
        chosen
    }
}

impl Stage {
    /// Steps, its ends being these.
    pub fn steps(&self, hosts: usize) -> u32 {
        self.steps.unwrap_or(self.pairs.steps(hosts))
    }
}

impl Job {
    /// The hosts that a selector of a stage means, where `sets` has the client and what was drawn.
    ///
    /// # Errors
    /// An unknown name.
    pub fn hosts(
        selector: &Selector,
        fabric: &Fabric,
        sets: &HashMap<String, Vec<usize>>,
    ) -> Result<Vec<usize>, String> {
        let mut hosts = Vec::new();
        for term in &selector.terms {
            match sets.get(term.trim()) {
                Some(set) => hosts.extend(set),
                None => {
                    let one = Selector {
                        terms: vec![term.clone()],
                    };
                    hosts.extend(one.resolve(fabric)?);
                }
            }
        }
        Ok(hosts)
    }

    /// All hosts that its stages may send from, and those that they may send to.
    pub fn ends(&self, fabric: &Fabric) -> (Vec<usize>, Vec<usize>) {
        let resolve = |selector: &Selector| selector.resolve(fabric).unwrap_or_default();
        let picks = self.pick.iter();
        let mut sets: HashMap<String, Vec<usize>> = picks
            .map(|(name, pick)| (name.clone(), resolve(&pick.of)))
            .collect();
        if let Some(clients) = &self.clients {
            sets.insert(CLIENT.to_owned(), resolve(clients));
        }
        let all = |selector: &Selector| Job::hosts(selector, fabric, &sets).unwrap_or_default();
        let from = self.stages.iter().flat_map(|stage| all(&stage.from));
        let to = self.stages.iter().flat_map(|stage| all(&stage.to));
        (from.collect(), to.collect())
    }
}
