// SPDX-License-Identifier: Apache-2.0
//! What the hosts send.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::count::{Machines, Many, Transfers};
use super::drawn::{Delay, Size};
use super::job::{Job, request};
use super::kinds::kinds;
use super::quantities::{Bytes, Share};
use super::selector::Selector;
use super::tcp::Tcp;
use crate::units::{Rate, Time};

/// One traffic. Its name groups its flows in every table.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Traffic {
    /// Long transfers: elephants.
    Bulk(Bulk),
    /// Many hosts send at once, in epochs or as answers in a closed loop.
    Incast(Incast),
    /// Transfers that arrive as a Poisson process.
    Poisson(Poisson),
    /// Datagrams that obey no congestion control.
    Udp(Udp),
    /// Transfers as recorded.
    Trace(Trace),
    /// Transfers that wait for others: queries, striped reads, coflows, collectives.
    Job(Job),
}

kinds!(Traffic {
    "bulk" => Bulk,
    "incast" => Incast,
    "poisson" => Poisson,
    "udp" => Udp,
    "trace" => Trace,
    "job" => Job,
});

/// Which source sends to which destination.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Pairs {
    /// Flow i goes from source i to destination i, each list repeated as often as needed.
    #[default]
    Cyclic,
    /// Both ends are drawn for each flow, never the same host.
    Random,
    /// Each source to each destination but itself: one-to-all, all-to-all.
    All,
}

/// Who opens the connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// The source of the data opens and sends.
    #[default]
    Push,
    /// The destination opens and asks with `request` bytes; the source answers.
    Pull,
}

/// What the requests of a closed loop use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Connection {
    /// A new connection for each request.
    #[default]
    New,
    /// One connection for all requests of a flow.
    Persistent,
}

/// When datagrams leave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Arrivals {
    /// As a Poisson process.
    #[default]
    Poisson,
    /// Evenly spaced.
    Constant,
}

/// What a load of 1 is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LoadOf {
    /// The bottleneck's rate; a dumbbell has one.
    Bottleneck,
    /// The sum of the rates of the sources' links.
    Sources,
    /// The sum of the rates of the destinations' links.
    Destinations,
}

fn no_time() -> Time {
    Time::ZERO
}

fn no_delay() -> Delay {
    Delay::Fixed(Time::ZERO)
}

fn is_false(flag: &bool) -> bool {
    !flag
}

fn is_zero(time: &Time) -> bool {
    *time == Time::ZERO
}

/// Long transfers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Bulk {
    /// How many. Default: one per source; with `pairs = "all"` one per pair.
    #[serde(with = "Transfers", default, skip_serializing_if = "Option::is_none")]
    pub flows: Option<u32>,
    /// Sources of the data.
    pub from: Selector,
    /// Destinations of the data.
    pub to: Selector,
    /// Which source sends to which destination. Default: cyclic.
    #[serde(default)]
    pub pairs: Pairs,
    /// Length of each transfer. Default: endless.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<Size>,
    /// When the first starts. Default: 0 s.
    #[serde(default = "no_time")]
    pub start: Time,
    /// Starts are uniform within this span from `start` on. Default: 0 s.
    #[serde(default = "no_time", skip_serializing_if = "is_zero")]
    pub start_spread: Time,
    /// Starts follow each other as a Poisson process with this mean gap, or with gaps of this
    /// distribution. Default: 0 s, all at once.
    #[serde(default = "no_delay", skip_serializing_if = "Delay::is_zero")]
    pub start_gap: Delay,
    /// The sources stop sending. Default: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<Time>,
    /// A flow that takes longer has missed its deadline. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Time>,
    /// TCP parameters of these flows, over those of scenario and scheme.
    #[serde(default, skip_serializing_if = "Tcp::is_empty")]
    pub tcp: Tcp,
}

const fn one() -> u32 {
    1
}

/// Synchronized transfers: open epochs (`every`, `epochs`), where unfinished ones go on next to
/// the new, or a closed loop (`requests`), where each flow asks again once it was answered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Incast {
    /// How many at once. Default: one per source; with `pairs = "all"` one per pair.
    #[serde(with = "Transfers", default, skip_serializing_if = "Option::is_none")]
    pub flows: Option<u32>,
    /// Length of each transfer; or give `block`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<Size>,
    /// Length of all transfers of an epoch together: each is `block / flows` long, rounded down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block: Option<Bytes>,
    /// Sources of the data.
    pub from: Selector,
    /// Destinations of the data.
    pub to: Selector,
    /// Which source sends to which destination. Default: cyclic.
    #[serde(default)]
    pub pairs: Pairs,
    /// With `pairs = "all"`: the hosts are network cards of so many machines, and no source sends
    /// to a destination on its own machine. Host i of `from`, and host i of `to`, is on machine i
    /// modulo this number. Default: each host is a machine.
    #[serde(with = "Machines", default, skip_serializing_if = "Option::is_none")]
    pub machines: Option<u32>,
    /// When the first epoch starts. Default: 0 s.
    #[serde(default = "no_time")]
    pub start: Time,
    /// Starts are uniform within this span of an epoch's start. Default: 0 s.
    #[serde(default = "no_time", skip_serializing_if = "is_zero")]
    pub start_spread: Time,
    /// Starts within an epoch follow each other as a Poisson process with this mean gap, or with
    /// gaps of this distribution. Default: 0 s, all at once.
    #[serde(default = "no_delay", skip_serializing_if = "Delay::is_zero")]
    pub start_gap: Delay,
    /// Epochs. Default: 1.
    #[serde(with = "Transfers", default = "one")]
    pub epochs: u32,
    /// From one epoch's start to the next; needed for more than one epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<Time>,
    /// Closed loop: transfers of each flow in an epoch, one after the other. Default: 1.
    #[serde(with = "Many", default = "one")]
    pub requests: u32,
    /// Closed loop: the connections of a flow's transfers. Default: new.
    #[serde(default)]
    pub connection: Connection,
    /// Closed loop: pause between an answer and the next request. Default: 0 s.
    #[serde(default = "no_delay", skip_serializing_if = "Delay::is_zero")]
    pub think: Delay,
    /// Closed loop: the next transfers begin when those of all flows have arrived, as a client reads
    /// blocks that are striped over servers; one after another, `start_gap` apart. Default: false.
    #[serde(default, skip_serializing_if = "is_false")]
    pub barrier: bool,
    /// One program, which does one thing after another, is behind all clients and their servers: how long
    /// opening a connection takes it, or sending a request or an answer. Default: 0 s, each is a program
    /// of its own.
    #[serde(default = "no_delay", skip_serializing_if = "Delay::is_zero")]
    pub event_loop: Delay,
    /// How long opening a connection takes the one program, if not as long as the rest. Default: `event_loop`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_loop_connect: Option<Delay>,
    /// Who opens the connection. Default: push.
    #[serde(default)]
    pub mode: Mode,
    /// Bytes with which the destination asks, in mode pull. Default: 100 B.
    #[serde(default = "request")]
    pub request: Size,
    /// Pause of the source between a request and its answer, in mode pull. Default: 0 s.
    #[serde(default = "no_delay", skip_serializing_if = "Delay::is_zero")]
    pub server_think: Delay,
    /// A transfer that takes longer has missed its deadline. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Time>,
    /// TCP parameters of these flows, over those of scenario and scheme.
    #[serde(default, skip_serializing_if = "Tcp::is_empty")]
    pub tcp: Tcp,
}

/// When arrivals come, and when not.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Bursts {
    /// How long a burst lasts.
    pub on: Delay,
    /// How long it is quiet after it.
    pub off: Delay,
}

fn random() -> Pairs {
    Pairs::Random
}

/// Transfers that arrive as a Poisson process, each on a connection of its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Poisson {
    /// Payload offered per second, as a share of what `load_of` names.
    pub load: Share,
    /// What a load of 1 is. Default: bottleneck in a dumbbell, else sources.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load_of: Option<LoadOf>,
    /// How long the transfers are.
    pub size: Size,
    /// Sources of the data.
    pub from: Selector,
    /// Destinations of the data.
    pub to: Selector,
    /// Which source sends to which destination; `all` walks through the pairs. Default: random.
    #[serde(default = "random")]
    pub pairs: Pairs,
    /// How the gaps between arrivals are distributed; only the shape counts, as they are scaled to the
    /// load: `{ lognormal = "1 ms", sigma = 2 }`, `"gaps.cdf"`. Default: exponential, a Poisson process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gaps: Option<Delay>,
    /// Arrivals come in bursts: for how long they come, and for how long not, in turn, with the load
    /// as the mean over both: `{ on = "1 ms", off = { exponential = "9 ms" } }`. Default: always.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bursts: Option<Bursts>,
    /// At most so many. Default: as many as arrive.
    #[serde(with = "Transfers", default, skip_serializing_if = "Option::is_none")]
    pub flows: Option<u32>,
    /// When arrivals begin. Default: 0 s.
    #[serde(default = "no_time")]
    pub start: Time,
    /// When arrivals end. Default: at the end of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<Time>,
    /// Who opens the connection. Default: push.
    #[serde(default)]
    pub mode: Mode,
    /// Bytes with which the destination asks, in mode pull. Default: 100 B.
    #[serde(default = "request")]
    pub request: Size,
    /// Pause of the source between a request and its answer, in mode pull. Default: 0 s.
    #[serde(default = "no_delay", skip_serializing_if = "Delay::is_zero")]
    pub server_think: Delay,
    /// A transfer that takes longer has missed its deadline. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Time>,
    /// TCP parameters of these flows, over those of scenario and scheme.
    #[serde(default, skip_serializing_if = "Tcp::is_empty")]
    pub tcp: Tcp,
}

const fn packet() -> Bytes {
    Bytes(1500)
}

/// Datagrams that obey no congestion control. Give `rate` or `load`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Udp {
    /// How many streams. Default: one per source; with `pairs = "all"` one per pair.
    #[serde(with = "Transfers", default, skip_serializing_if = "Option::is_none")]
    pub flows: Option<u32>,
    /// Rate of all streams together, on the wire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// The same as a share of what `load_of` names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<Share>,
    /// What a load of 1 is. Default: bottleneck in a dumbbell, else sources.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load_of: Option<LoadOf>,
    /// A packet's size on the wire, headers counted. Default: 1500 B.
    #[serde(default = "packet")]
    pub packet: Bytes,
    /// When packets leave. Default: poisson.
    #[serde(default)]
    pub arrivals: Arrivals,
    /// Sources.
    pub from: Selector,
    /// Destinations.
    pub to: Selector,
    /// Which source sends to which destination. Default: cyclic.
    #[serde(default)]
    pub pairs: Pairs,
    /// When it starts. Default: 0 s.
    #[serde(default = "no_time")]
    pub start: Time,
    /// When it ends. Default: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<Time>,
}

/// Transfers as recorded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Trace {
    /// A .csv or .parquet file with columns start_s, source, destination (names of hosts) and
    /// bytes; relative to the scenario's folder.
    pub file: PathBuf,
    /// The trace's 0 s. Default: 0 s.
    #[serde(default = "no_time")]
    pub start: Time,
    /// A transfer that takes longer has missed its deadline. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Time>,
    /// TCP parameters of these flows, over those of scenario and scheme.
    #[serde(default, skip_serializing_if = "Tcp::is_empty")]
    pub tcp: Tcp,
}

impl Traffic {
    /// Sources and destinations, where they are not in a file.
    pub const fn ends(&self) -> Option<(&Selector, &Selector)> {
        match self {
            Traffic::Bulk(t) => Some((&t.from, &t.to)),
            Traffic::Incast(t) => Some((&t.from, &t.to)),
            Traffic::Poisson(t) => Some((&t.from, &t.to)),
            Traffic::Udp(t) => Some((&t.from, &t.to)),
            Traffic::Trace(_) | Traffic::Job(_) => None,
        }
    }

    /// Whether its transfers may differ in length.
    pub const fn varies(&self) -> bool {
        let size = match self {
            Traffic::Bulk(t) => t.size.as_ref(),
            Traffic::Incast(t) => t.size.as_ref(),
            Traffic::Poisson(t) => Some(&t.size),
            Traffic::Trace(_) | Traffic::Job(_) => return true,
            Traffic::Udp(_) => None,
        };
        !matches!(size, None | Some(Size::Fixed(_)))
    }

    /// Whether its transfers and their number have an end.
    pub const fn has_end(&self) -> bool {
        match self {
            Traffic::Bulk(t) => t.size.is_some(),
            Traffic::Poisson(t) => t.flows.is_some(),
            Traffic::Incast(_) | Traffic::Trace(_) | Traffic::Job(_) => true,
            Traffic::Udp(_) => false,
        }
    }

    /// TCP parameters of its own; `None` for datagrams.
    pub const fn tcp(&self) -> Option<&Tcp> {
        match self {
            Traffic::Bulk(t) => Some(&t.tcp),
            Traffic::Incast(t) => Some(&t.tcp),
            Traffic::Poisson(t) => Some(&t.tcp),
            Traffic::Trace(t) => Some(&t.tcp),
            Traffic::Job(t) => Some(&t.tcp),
            Traffic::Udp(_) => None,
        }
    }

    /// The distributions that are read from files: of sizes, of times.
    pub fn drawn(&self) -> (Vec<&Size>, Vec<&Delay>) {
        match self {
            Traffic::Bulk(t) => (t.size.iter().collect(), vec![&t.start_gap]),
            Traffic::Incast(t) => (
                t.size.iter().chain([&t.request]).collect(),
                [&t.think, &t.start_gap, &t.server_think, &t.event_loop]
                    .into_iter()
                    .chain(&t.event_loop_connect)
                    .collect(),
            ),
            Traffic::Poisson(t) => {
                let bursts = t.bursts.iter().flat_map(|bursts| [&bursts.on, &bursts.off]);
                let delays = t.gaps.iter().chain(bursts).chain([&t.server_think]);
                let delays = delays.collect();
                (vec![&t.size, &t.request], delays)
            }
            Traffic::Job(t) => {
                let stages = t.stages.iter();
                let sizes = stages
                    .clone()
                    .flat_map(|s| s.size.iter().chain([&s.request]));
                let times = stages.flat_map(|stage| [&stage.think, &stage.server_think]);
                let times = times.chain([&t.think]).chain(&t.every);
                (sizes.collect(), times.collect())
            }
            Traffic::Udp(_) | Traffic::Trace(_) => (Vec::new(), Vec::new()),
        }
    }

    /// The files of its distributions, to be completed.
    pub(super) fn files_mut(&mut self) -> Vec<&mut PathBuf> {
        let (sizes, delays): (Vec<&mut Size>, Vec<&mut Delay>) = match self {
            Traffic::Bulk(t) => (t.size.iter_mut().collect(), vec![&mut t.start_gap]),
            Traffic::Incast(t) => (
                t.size.iter_mut().chain([&mut t.request]).collect(),
                [
                    &mut t.think,
                    &mut t.start_gap,
                    &mut t.server_think,
                    &mut t.event_loop,
                ]
                .into_iter()
                .chain(&mut t.event_loop_connect)
                .collect(),
            ),
            Traffic::Poisson(t) => {
                let bursts = t.bursts.iter_mut();
                let bursts = bursts.flat_map(|bursts| [&mut bursts.on, &mut bursts.off]);
                let delays = t.gaps.iter_mut().chain(bursts);
                let delays = delays.chain([&mut t.server_think]).collect();
                (vec![&mut t.size, &mut t.request], delays)
            }
            Traffic::Job(t) => {
                let mut sizes = Vec::new();
                let mut delays = vec![&mut t.think];
                delays.extend(&mut t.every);
                for stage in &mut t.stages {
                    sizes.extend(&mut stage.size);
                    sizes.push(&mut stage.request);
                    delays.extend([&mut stage.think, &mut stage.server_think]);
                }
                (sizes, delays)
            }
            Traffic::Udp(_) | Traffic::Trace(_) => (Vec::new(), Vec::new()),
        };
        let sizes = sizes.into_iter().filter_map(Size::file_mut);
        let delays = delays.into_iter().filter_map(Delay::file_mut);
        sizes.chain(delays).collect()
    }

    /// When its first flow may start.
    pub const fn start(&self) -> Time {
        match self {
            Traffic::Bulk(t) => t.start,
            Traffic::Incast(t) => t.start,
            Traffic::Poisson(t) => t.start,
            Traffic::Udp(t) => t.start,
            Traffic::Trace(t) => t.start,
            Traffic::Job(t) => t.start,
        }
    }
}

impl Pairs {
    /// Each source to each destination that is on another machine. Host i of each list is on
    /// machine i modulo `machines`.
    pub fn between_machines(
        from: &[usize],
        to: &[usize],
        machines: u32,
    ) -> impl Iterator<Item = (usize, usize)> + Clone {
        let machine = move |index: usize| index % machines.max(1) as usize;
        (0..from.len())
            .flat_map(|source| (0..to.len()).map(move |destination| (source, destination)))
            .filter(move |(source, destination)| machine(*source) != machine(*destination))
            .map(|(source, destination)| (from[source], to[destination]))
    }

    /// The pairs (source, destination) of `flows` flows, `None` for the number that is meant
    /// where none is given. `draw(n)` is a random number below n.
    pub fn choose(
        self,
        from: &[usize],
        to: &[usize],
        flows: Option<u32>,
        mut draw: impl FnMut(usize) -> usize,
    ) -> Vec<(usize, usize)> {
        let all = || {
            from.iter()
                .flat_map(|source| to.iter().map(move |destination| (*source, *destination)))
                .filter(|(source, destination)| source != destination)
        };
        let count = flows.map_or(from.len(), |flows| flows as usize);
        match self {
            Pairs::All if flows.is_none() => all().collect(),
            Pairs::All if all().next().is_none() => Vec::new(),
            Pairs::All => all().cycle().take(count).collect(),
            Pairs::Cyclic => {
                let to = to.iter().cycle();
                from.iter()
                    .copied()
                    .cycle()
                    .zip(to.copied())
                    .take(count)
                    .collect()
            }
            Pairs::Random if all().next().is_none() => Vec::new(),
            Pairs::Random => (0..count)
                .map(|_| {
                    loop {
                        let pair = (from[draw(from.len())], to[draw(to.len())]);
                        if pair.0 != pair.1 {
                            return pair;
                        }
                    }
                })
                .collect(),
        }
    }
}
