// SPDX-License-Identifier: Apache-2.0
//! Traffic that cannot be sent.

use super::Checker;
use crate::count::Transfers;
use crate::units::Time;
use crate::{
    Bulk, Delay, Drawn, Fabric, Incast, LoadOf, Mode, Pairs, Poisson, Quantity, Scenario, Selector,
    Trace, Traffic, Udp,
};

/// More flows than a run could hold.
pub(super) const MOST_FLOWS: u64 = Transfers::MOST as u64;

/// The shortest burst, and silence between two.
const LEAST_BURST: Time = Time::from_micros(1);

impl Checker<'_> {
    pub(super) fn traffic(&mut self, traffic: &Traffic, scenario: &Scenario, key: &str) {
        let at = |name: &str| format!("{key}.{name}");
        self.require(traffic.start() < scenario.duration, &at("start"), || {
            format!("is not before the end of the run, {}", scenario.duration)
        });
        if let Some(own) = traffic.tcp() {
            self.tcp(&scenario.tcp, own, &at("tcp"));
        }
        match traffic {
            Traffic::Bulk(bulk) => self.bulk(bulk, &scenario.fabric, key),
            Traffic::Incast(incast) => self.incast(incast, scenario, key),
            Traffic::Poisson(poisson) => self.poisson(poisson, &scenario.fabric, key),
            Traffic::Udp(udp) => self.udp(udp, &scenario.fabric, key),
            Traffic::Trace(trace) => self.trace(trace, key),
            Traffic::Job(job) => self.job(job, &scenario.fabric, key),
        }
    }

    fn bulk(&mut self, bulk: &Bulk, fabric: &Fabric, key: &str) {
        self.ends(fabric, (&bulk.from, &bulk.to), bulk.pairs, bulk.flows, key);
        self.starts(bulk.start_spread, &bulk.start_gap, key);
        self.drawn(bulk.size.as_ref(), false, &format!("{key}.size"));
        self.stop(bulk.start, bulk.stop, key);
        self.positive(bulk.deadline, &format!("{key}.deadline"));
    }

    fn incast(&mut self, incast: &Incast, scenario: &Scenario, key: &str) {
        let at = |name: &str| format!("{key}.{name}");
        let ends = (&incast.from, &incast.to);
        let flows = self.ends(&scenario.fabric, ends, incast.pairs, incast.flows, key);
        self.machines(incast, &scenario.fabric, &at("machines"));
        self.starts(incast.start_spread, &incast.start_gap, key);
        self.drawn(Some(&incast.think), true, &at("think"));
        self.drawn(Some(&incast.event_loop), true, &at("event_loop"));
        self.drawn(
            incast.event_loop_connect.as_ref(),
            true,
            &at("event_loop_connect"),
        );
        if incast.event_loop_connect.is_some() && incast.event_loop.is_zero() {
            self.refuse(
                &at("event_loop_connect"),
                "is for one program behind all flows; set event_loop, too",
            );
        }
        self.drawn(Some(&incast.request), false, &at("request"));
        self.server_think(&incast.server_think, incast.mode, key);
        self.drawn(incast.size.as_ref(), false, &at("size"));
        match (&incast.size, incast.block) {
            (None, None) => self.refuse(&at("size"), "is missing; allowed: size or block"),
            (Some(_), Some(_)) => {
                self.refuse(&at("block"), "contradicts size; allowed: one of them")
            }
            (None, Some(block)) => self.require(block.0 >= flows, &at("block"), || {
                format!("{block} is less than a byte for each of {flows} flows")
            }),
            (Some(_), None) => {}
        }
        let all = flows.saturating_mul(incast.epochs.into());
        self.require(all <= MOST_FLOWS, &at("epochs"), || {
            format!("make {all} flows; allowed: at most {MOST_FLOWS}")
        });
        if incast.barrier {
            let is_one_loop = incast.requests > 1 && incast.epochs == 1;
            self.require(is_one_loop, &at("barrier"), || {
                "needs requests above 1, in 1 epoch".to_owned()
            });
        }
        self.positive(incast.every, &at("every"));
        self.positive(incast.deadline, &at("deadline"));
        match incast.every {
            None => self.require(incast.epochs <= 1, &at("every"), || {
                format!("is missing; {} epochs need it", incast.epochs)
            }),
            Some(every) => {
                let gaps = u64::from(incast.epochs.saturating_sub(1));
                let last = incast.start.0.saturating_add(every.0.saturating_mul(gaps));
                self.require(last < scenario.duration.0 || gaps == 0, &at("epochs"), || {
                    format!(
                        "the last of {} epochs would start at {}, not before the end of the run, {}",
                        incast.epochs,
                        Time(last),
                        scenario.duration
                    )
                });
            }
        }
    }

    /// Some host has a destination on another machine.
    fn machines(&mut self, incast: &Incast, fabric: &Fabric, key: &str) {
        let Some(machines) = incast.machines else {
            return;
        };
        self.require(incast.pairs == Pairs::All, key, || {
            "is for pairs = \"all\"; remove it, or set pairs".to_owned()
        });
        let hosts = |selector: &Selector| selector.resolve(fabric).unwrap_or_default();
        let (from, to) = (hosts(&incast.from), hosts(&incast.to));
        // With one machine all pairs would be looked at.
        let has_any = machines > 1
            && Pairs::between_machines(&from, &to, machines)
                .next()
                .is_some();
        self.require(has_any, key, || {
            format!("is {machines}: all hosts are on one machine; allowed: another number")
        });
    }

    fn poisson(&mut self, poisson: &Poisson, fabric: &Fabric, key: &str) {
        let ends = (&poisson.from, &poisson.to);
        self.ends(fabric, ends, poisson.pairs, poisson.flows, key);
        self.fraction(poisson.load.0, &format!("{key}.load"));
        self.load_of(poisson.load_of, fabric, key);
        let at = |name: &str| format!("{key}.{name}");
        self.drawn(Some(&poisson.size), false, &at("size"));
        self.drawn(Some(&poisson.request), false, &at("request"));
        self.server_think(&poisson.server_think, poisson.mode, key);
        self.drawn(poisson.gaps.as_ref(), false, &at("gaps"));
        if let Some(bursts) = &poisson.bursts {
            self.drawn(Some(&bursts.on), false, &at("bursts.on"));
            self.drawn(Some(&bursts.off), false, &at("bursts.off"));
            for (name, delay) in [("bursts.on", &bursts.on), ("bursts.off", &bursts.off)] {
                // Shorter ones would need millions of draws for one gap.
                let least = match delay {
                    Delay::Fixed(time) | Delay::Exponential(time) => *time,
                    Delay::Lognormal { median, .. } => *median,
                    Delay::Uniform(_, most) => *most,
                    Delay::Pareto { min, .. } => *min,
                    Delay::Named(_) | Delay::File(_) => LEAST_BURST,
                };
                self.require(least >= LEAST_BURST, &at(name), || {
                    format!("is {least}; allowed: {LEAST_BURST} and more")
                });
            }
        }
        self.stop(poisson.start, poisson.stop, key);
        self.positive(poisson.deadline, &format!("{key}.deadline"));
    }

    fn udp(&mut self, udp: &Udp, fabric: &Fabric, key: &str) {
        let at = |name: &str| format!("{key}.{name}");
        self.ends(fabric, (&udp.from, &udp.to), udp.pairs, udp.flows, key);
        match (udp.rate, udp.load) {
            (None, None) => self.refuse(&at("rate"), "is missing; allowed: rate or load"),
            (Some(_), Some(_)) => {
                self.refuse(&at("load"), "contradicts rate; allowed: one of them")
            }
            (None, Some(load)) => self.fraction(load.0, &at("load")),
            (Some(_), None) => {}
        }
        self.load_of(udp.load_of, fabric, key);
        // IPv4 and UDP headers take 28 bytes (RFC 791, RFC 768).
        self.require((29..=9000).contains(&udp.packet.0), &at("packet"), || {
            format!("is {}; allowed: 29 B to 9000 B", udp.packet)
        });
        let of_links = fabric.links().into_iter().map(|(_, link)| link.mtu);
        let of_ports = fabric.port_at().values().map(|change| change.mtu);
        let least = of_links.chain(of_ports).flatten().min();
        self.require(
            least.is_none_or(|mtu| udp.packet <= mtu),
            &at("packet"),
            || {
                let mtu = least.unwrap_or_default();
                format!(
                    "is {}, but a link has an mtu of {mtu}; allowed: at most that",
                    udp.packet
                )
            },
        );
        self.stop(udp.start, udp.stop, key);
    }

    fn trace(&mut self, trace: &Trace, key: &str) {
        self.positive(trace.deadline, &format!("{key}.deadline"));
        let file = format!("{key}.file");
        let ending = trace.file.extension().and_then(|ending| ending.to_str());
        self.require(matches!(ending, Some("csv" | "parquet")), &file, || {
            format!(
                "\"{}\" is of an unknown type; allowed: .csv, .parquet",
                trace.file.display()
            )
        });
        self.exists(&trace.file, &file);
    }

    /// Checks who sends to whom; the number of flows.
    fn ends(
        &mut self,
        fabric: &Fabric,
        (from, to): (&Selector, &Selector),
        pairs: Pairs,
        flows: Option<u32>,
        key: &str,
    ) -> u64 {
        let mut resolve = |selector: &Selector, name: &str| {
            selector
                .resolve(fabric)
                .map_err(|what| self.refuse(&format!("{key}.{name}"), what))
                .unwrap_or_default()
        };
        let (from, to) = (resolve(from, "from"), resolve(to, "to"));
        let count = match (flows, pairs) {
            (Some(flows), _) => u64::from(flows),
            (None, Pairs::All) => from.len() as u64 * to.len() as u64,
            (None, _) => from.len() as u64,
        };
        self.require(count <= MOST_FLOWS, &format!("{key}.flows"), || {
            format!("is {count}; allowed: at most {MOST_FLOWS}")
        });
        if from.is_empty() || to.is_empty() {
            return count;
        }
        let is_one_host = from.iter().chain(&to).all(|host| *host == from[0]);
        let to_itself = match pairs {
            Pairs::Cyclic => {
                let pairs = from.iter().cycle().zip(to.iter().cycle());
                let mut flows = pairs.take(count.min(MOST_FLOWS) as usize);
                flows.find(|(source, destination)| source == destination)
            }
            Pairs::Random | Pairs::All => is_one_host.then_some((&from[0], &to[0])),
        };
        if let Some((host, _)) = to_itself {
            let host = fabric.host_name(*host);
            let what = format!("{host} would send to itself; allowed: other hosts than in from");
            self.refuse(&format!("{key}.to"), what);
        }
        count
    }

    fn starts(&mut self, spread: Time, gap: &Delay, key: &str) {
        self.drawn(Some(gap), true, &format!("{key}.start_gap"));
        let contradict = spread > Time::ZERO && !gap.is_zero();
        self.require(!contradict, &format!("{key}.start_gap"), || {
            "contradicts start_spread; allowed: one of them".to_owned()
        });
    }

    /// Only a request has a server that thinks.
    pub(super) fn server_think(&mut self, think: &Delay, mode: Mode, key: &str) {
        let at = format!("{key}.server_think");
        self.drawn(Some(think), true, &at);
        self.require(mode == Mode::Pull || think.is_zero(), &at, || {
            "is for mode = \"pull\"; remove it, or set mode".to_owned()
        });
    }

    fn stop(&mut self, start: Time, stop: Option<Time>, key: &str) {
        self.require(
            stop.is_none_or(|stop| stop > start),
            &format!("{key}.stop"),
            || format!("is not after start, {start}"),
        );
    }

    /// A size or a time, at `key`.
    pub(super) fn drawn<Q: Quantity>(
        &mut self,
        drawn: Option<&Drawn<Q>>,
        may_be_zero: bool,
        key: &str,
    ) {
        let Some(drawn) = drawn else { return };
        if let Some((below, what)) = drawn.problem(may_be_zero) {
            self.refuse(&format!("{key}{below}"), what);
        }
        if let Some(path) = drawn.file() {
            self.exists(path, key);
        }
    }

    fn exists(&mut self, path: &std::path::Path, key: &str) {
        self.require(path.is_file(), key, || {
            format!("there is no file \"{}\"", path.display())
        });
    }

    fn load_of(&mut self, of: Option<LoadOf>, fabric: &Fabric, key: &str) {
        let has_one = of != Some(LoadOf::Bottleneck) || matches!(fabric, Fabric::Dumbbell(_));
        self.require(has_one, &format!("{key}.load_of"), || {
            "only a dumbbell has a bottleneck; allowed: sources, destinations".to_owned()
        });
    }
}
