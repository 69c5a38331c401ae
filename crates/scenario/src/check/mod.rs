// SPDX-License-Identifier: Apache-2.0
//! What the types cannot refuse: values that are well written but cannot be run.

mod fabric;
mod job;
mod scheme;
mod tcp;
mod traffic;

use std::collections::HashSet;

use penstock_core::scheme::WscaleSource;

use super::document::Node;
use super::error::{Problem, unknown};
use super::measure::{BOTTLENECK, Measure, matches};
use super::params::Value;
use super::{
    Controller, Deployment, Fabric, MOST_RULES, Queue, Scenario, Tcp, Traffic, Until, Window,
};
use crate::units::Time;
use scheme::out_of_range;

/// Least time between samples.
const LEAST_EVERY: Time = Time::from_nanos(1000);

/// Gathers what is wrong, with where it was written.
struct Checker<'a> {
    root: &'a Node,
    problems: Vec<Problem>,
}

impl Checker<'_> {
    fn refuse(&mut self, key: &str, what: impl Into<String>) {
        self.problems.push(Problem {
            at: self.root.locate(key),
            key: key.to_owned(),
            what: what.into(),
        });
    }

    /// Refuses `key` unless `holds`.
    fn require(&mut self, holds: bool, key: &str, what: impl FnOnce() -> String) {
        if !holds {
            self.refuse(key, what());
        }
    }

    fn positive(&mut self, time: Option<Time>, key: &str) {
        self.require(time != Some(Time::ZERO), key, || {
            "is 0; allowed: a time above 0 s".to_owned()
        });
    }

    /// Refuses a share that is not above 0 and at most 1.
    fn fraction(&mut self, share: f64, key: &str) {
        self.require(share > 0.0 && share <= 1.0, key, || {
            format!("is {share}; allowed: above 0, at most 1 (100 %)")
        });
    }

    fn name(&mut self, name: &str, key: &str) {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        self.require(!name.is_empty() && name.chars().all(is_plain), key, || {
            format!("\"{name}\" is no name; allowed: letters, digits, \"-\", \"_\"")
        });
    }
}

/// Everything that cannot be run, in the order of the file's sections.
pub(super) fn check(scenario: &Scenario, root: &Node) -> Vec<Problem> {
    let mut checker = Checker {
        root,
        problems: Vec::new(),
    };
    checker.positive(Some(scenario.duration), "duration");
    if !checker.problems.is_empty() {
        // All other times are compared with it.
        return checker.problems;
    }
    checker.seeds(scenario.seeds.list());
    checker.schemes(scenario);
    let buildable = checker.fabric(&scenario.fabric, scenario.longest_packet());
    checker.tcp(&Tcp::default(), &scenario.tcp, "tcp");
    // One that could not be read is in the file all the same; typing reports it.
    let written = root.get("traffic").map_or(0, |table| table.keys().count());
    checker.require(
        written > 0 || !scenario.traffic.is_empty(),
        "traffic",
        || "has no entry; allowed: [traffic.NAME]".to_owned(),
    );
    for (name, traffic) in &scenario.traffic {
        let key = format!("traffic.{name}");
        checker.name(name, &key);
        if buildable {
            checker.traffic(traffic, scenario, &key);
        }
    }
    let has_end = scenario.traffic.values().any(Traffic::has_end);
    checker.require(
        has_end || scenario.until == Until::Duration,
        "until",
        || "is \"done\", but no traffic has an end; allowed: \"duration\"".to_owned(),
    );
    if buildable {
        checker.measure(scenario);
    }
    for (name, scheme) in &scenario.scheme {
        let key = format!("scheme.{name}");
        checker.name(name, &key);
        checker.scheme(scheme, &key);
        if buildable && scenario.schemes.contains(name) {
            checker.behind_ports(&scheme.window, &scenario.fabric, name);
        }
        checker.tcp(&scenario.tcp, &scheme.tcp, &format!("{key}.tcp"));
    }
    checker.problems
}

/// What a port of a running host, written at `key` of `root`, cannot do.
pub(super) fn check_deployment(
    port: &Deployment,
    root: &Node,
    key: &str,
) -> Result<(), Vec<Problem>> {
    let within = |name: &str| match key {
        "" => name.to_owned(),
        _ => format!("{key}.{name}"),
    };
    let mut checker = Checker {
        root,
        problems: Vec::new(),
    };
    if port.is_shim() {
        checker.shim(port, &within("window.wscale_source"));
    }
    checker.policy(port, &within);
    checker.not_empty(port.buffer, &within("buffer"));
    checker.rate(port, &within("rate"));
    checker.level(port.mark, &within("mark"));
    checker.params(&port.window, &within("window"));
    checker.data(port, &within);
    checker.queue(&port.queue, &within("queue"));
    checker.queue_of_port(port, &within);
    if let Some(params) = port.shim() {
        checker.params(params, &within("controller"));
        let is_alone = port.window.scheme().is_none() && !port.is_shim();
        checker.require(is_alone, &within("controller.kind"), || {
            format!("is no part of {}; allowed: a port of its own", port.scheme)
        });
    }
    if port.is_counted_by_controller() {
        checker.counted(&port.window, &within("controller.kind"));
    }
    checker.verdict()
}

/// What a controller, written at the top of `root`, cannot do.
pub(super) fn check_controller(controller: &Controller, root: &Node) -> Result<(), Vec<Problem>> {
    let mut checker = Checker {
        root,
        problems: Vec::new(),
    };
    if let Some(params) = controller.params() {
        checker.params(params, "controller");
    }
    checker.verdict()
}

impl Checker<'_> {
    fn verdict(self) -> Result<(), Vec<Problem>> {
        match self.problems {
            problems if problems.is_empty() => Ok(()),
            problems => Err(problems),
        }
    }

    /// A shim writes the scales of windows for the ports that read them.
    fn shim(&mut self, port: &Deployment, key: &str) {
        let source = port
            .window
            .given()
            .find(|(param, _)| param.key == "wscale_source");
        let Some((param, value)) = source else { return };
        let words: Vec<&str> = param.words.iter().map(|word| word.word).collect();
        self.require(port.window.wscale_source().has_shims(), key, || {
            let what = match value {
                Some(_) => "is for ports; a shim writes nothing then",
                None => "is missing",
            };
            let of_shims = WscaleSource::ALL.iter().zip(words);
            let allowed: Vec<&str> = of_shims
                .filter_map(|(source, word)| source.has_shims().then_some(word))
                .collect();
            format!("{what}; allowed: {}", allowed.join(", "))
        });
    }

    /// HCF's queue and Grant know the rate of their port.
    fn rate(&mut self, port: &Deployment, key: &str) {
        let Some(rate) = port.rate else { return };
        let param = port
            .window
            .kind()
            .params()
            .find(|param| param.key == "rate");
        let is_used = param.is_some() || matches!(port.queue, Queue::Hcf(_));
        self.require(is_used, key, || {
            format!("is for grant and hcf; {} needs none", port.scheme)
        });
        let rate = Value::Rate(rate);
        if let Some(param) = param.filter(|param| !param.allows(rate.number())) {
            self.refuse(key, out_of_range(param, rate));
        }
    }

    /// What the programs of a port with a window scheme do to its data, and no others: those of credit keep
    /// an account of each flow.
    fn data(&mut self, port: &Deployment, within: &dyn Fn(&str) -> String) {
        let is_credit = port.window.is_credit();
        let is_tracked = port.window.wscale_source() == WscaleSource::Tracked;
        self.require(
            !is_credit || is_tracked,
            &within("window.wscale_source"),
            || "allowed with credit on a host: tracked".to_owned(),
        );
        let reason = match port.window.scheme() {
            Some(_) if is_credit => format!("is not possible with {}", port.scheme),
            Some(_) => {
                let can_drop = port.window.drops_data();
                return self.require(!port.drops || can_drop, &within("drops"), || {
                    format!(
                        "is for schemes that drop data early; {} does not",
                        port.scheme
                    )
                });
            }
            None => format!("is for schemes with windows; {} has none", port.scheme),
        };
        for (key, is_given) in [
            ("mark", port.mark.is_some()),
            ("queue.mark_at", matches!(port.queue, Queue::Threshold(_))),
            ("drops", port.drops),
            ("control_priority", port.control_priority.is_some()),
        ] {
            self.require(!is_given, &within(key), || reason.clone());
        }
    }

    /// Of queue policies a port has HCF's; marks at a threshold are its programs'.
    fn queue_of_port(&mut self, port: &Deployment, within: &dyn Fn(&str) -> String) {
        match &port.queue {
            Queue::DropTail(_) | Queue::Hcf(_) => {}
            Queue::Threshold(spec) => {
                self.require(spec.mark_at.is_some(), &within("queue.mark_at"), || {
                    "is missing; a port needs it".to_owned()
                })
            }
            _ => self.refuse(
                &within("queue.kind"),
                "is for the simulator; allowed on a port: drop-tail, threshold, hcf",
            ),
        }
    }

    /// Which flows are controlled matters where a scheme rewrites windows at a port, or `observe` counts
    /// what it would.
    fn policy(&mut self, port: &Deployment, within: &dyn Fn(&str) -> String) {
        let is_queue_alone = matches!(port.queue, Queue::Hcf(_)) && port.window.scheme().is_none();
        let rewrites = !port.is_below_host() && !port.window.is_credit() && !is_queue_alone;
        for (key, is_given) in [
            ("exclude", !port.exclude.is_empty()),
            ("include", !port.include.is_empty()),
            ("canary", port.canary.is_some()),
        ] {
            self.require(rewrites || !is_given, &within(key), || {
                format!(
                    "is for schemes that rewrite all windows alike; {} does not",
                    port.scheme
                )
            });
        }
        let rules = port.exclude.len() + port.include.len();
        let key = if port.exclude.is_empty() {
            "include"
        } else {
            "exclude"
        };
        self.require(rules <= MOST_RULES, &within(key), || {
            format!("with include, {rules} rules; allowed: at most {MOST_RULES}")
        });
        let share = port.canary.map_or(1.0, |share| share.0);
        self.require(share > 1e-9 && share <= 1.0, &within("canary"), || {
            format!(
                "is {} %; allowed: above 0 %, at most 100 %",
                (share * 1e8).round() / 1e6
            )
        });
    }

    /// Credit behind ports is at hosts, or where a dumbbell's link ends.
    fn behind_ports(&mut self, window: &Window, fabric: &Fabric, name: &str) {
        if !window.is_behind_port() || matches!(fabric, Fabric::Dumbbell(_)) {
            return;
        }
        let mut hosts = 0..fabric.host_count() as usize;
        let has_host = hosts.any(|host| fabric.has_scheme(&fabric.switch_of(host)));
        self.require(has_host, "fabric.scheme_at", || {
            let first = fabric.switch_of(0);
            format!("has no switch with hosts, at which {name} is; allowed: as in \"{first}\"")
        });
    }

    fn seeds(&mut self, seeds: &[u64]) {
        self.require(!seeds.is_empty(), "seeds", || {
            "is empty; allowed: at least one seed".to_owned()
        });
        let mut seen = HashSet::new();
        for (index, seed) in seeds.iter().enumerate() {
            self.require(seen.insert(seed), &format!("seeds[{index}]"), || {
                format!("{seed} is named twice")
            });
        }
    }

    fn schemes(&mut self, scenario: &Scenario) {
        self.require(!scenario.schemes.is_empty(), "schemes", || {
            "is empty; allowed: at least one scheme".to_owned()
        });
        let built_in = super::builtin_schemes();
        let mut known: Vec<&str> = built_in.keys().map(String::as_str).collect();
        let own = scenario.scheme.keys().map(String::as_str);
        known.extend(own.filter(|name| !built_in.contains_key(*name)));
        let mut seen = HashSet::new();
        for (index, name) in scenario.schemes.iter().enumerate() {
            let key = format!("schemes[{index}]");
            self.require(known.contains(&name.as_str()), &key, || {
                unknown("scheme", name, &known)
            });
            self.require(seen.insert(name), &key, || {
                format!("\"{name}\" is named twice")
            });
        }
    }

    /// Refuses a time between samples that is 0, or so short that they fill the memory.
    fn samples(&mut self, every: Time, duration: Time, key: &str) {
        self.positive(Some(every), key);
        let least = LEAST_EVERY.max(Measure::least_every(duration));
        self.require(every == Time::ZERO || every >= least, key, || {
            format!("is {every}; allowed: {least} and more")
        });
    }

    fn measure(&mut self, scenario: &Scenario) {
        let measure = &scenario.measure;
        let duration = scenario.duration;
        self.samples(measure.queue_every, duration, "measure.queue_every");
        self.require(measure.from < scenario.duration, "measure.from", || {
            format!("is not before the end of the run, {}", scenario.duration)
        });
        let mut ends = HashSet::new();
        for (name, most) in &measure.sizes {
            let key = format!("measure.sizes.{name}");
            self.name(name, &key);
            self.require(most.0 > 0, &key, || {
                "is 0; allowed: 1 B and more".to_owned()
            });
            self.require(ends.insert(most.0), &key, || {
                format!("{most} is the end of another class too; allowed: one class for each end")
            });
        }
        if let Some(windows) = &measure.windows {
            let traffic = scenario.traffic.get(&windows.traffic);
            let is_tcp = traffic.is_some_and(|traffic| traffic.tcp().is_some());
            self.require(is_tcp, "measure.windows.traffic", || {
                let tcp = scenario.traffic.iter().filter(|(_, t)| t.tcp().is_some());
                let known: Vec<&str> = tcp.map(|(name, _)| name.as_str()).collect();
                unknown("traffic over TCP", &windows.traffic, &known)
            });
            self.samples(windows.every, duration, "measure.windows.every");
        }
        let recorded = measure.packets.as_ref();
        if let Some(packets) = recorded {
            let from = "measure.packets.from";
            self.require(packets.from < scenario.duration, from, || {
                format!("is not before the end of the run, {}", scenario.duration)
            });
        }
        if let Some(name) = recorded.and_then(|packets| packets.traffic.as_ref()) {
            let is_known = scenario.traffic.contains_key(name);
            self.require(is_known, "measure.packets.traffic", || {
                let known: Vec<&str> = scenario.traffic.keys().map(String::as_str).collect();
                unknown("traffic", name, &known)
            });
        }
        let port = recorded.and_then(|packets| packets.port.as_ref());
        let selected = measure.ports.iter().enumerate();
        let patterns: Vec<(String, &String, bool)> = selected
            .map(|(index, pattern)| (format!("measure.ports[{index}]"), pattern, true))
            .chain(port.map(|name| ("measure.packets.port".to_owned(), name, false)))
            .collect();
        if patterns.is_empty() {
            return;
        }
        let ports = scenario.fabric.ports();
        let is_dumbbell = matches!(scenario.fabric, Fabric::Dumbbell(_));
        for (key, pattern, is_pattern) in patterns {
            let is_known = (pattern == "bottleneck" && is_dumbbell)
                || ports
                    .iter()
                    .any(|port| port == pattern || is_pattern && matches(pattern, port));
            let example = ports.last().map_or(BOTTLENECK, String::as_str);
            self.require(is_known, &key, || {
                let mut allowed = vec![example, "rack1->*"];
                if is_dumbbell {
                    allowed = vec!["bottleneck", BOTTLENECK, "right->receiver1", "right->*"];
                }
                unknown("port", pattern, &allowed)
            });
        }
    }
}
