// SPDX-License-Identifier: Apache-2.0
//! A scheme on a port of a running host, in the words of a scenario: what was simulated is what is
//! deployed, with the same names, defaults and ranges.

use std::path::Path;

use indexmap::IndexMap;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::check::{check_controller, check_deployment};
use super::document::{self, Node, Value};
use super::error::{Origin, Problem, ScenarioError, unknown};
use super::params::Params;
use super::priority::Priority;
use super::resolve::apply;
use super::typing::typed;
use super::{Buffer, Controller, Level, Queue, Rule, Share, Window, builtin_schemes};
use crate::units::Rate;

/// The scheme that only watches.
pub const OBSERVE: &str = "observe";

/// What runs below a host, not on a port: it carries the scales of windows to ports.
pub const SHIM: &str = "shim";

/// What one port of a running host does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Deployment {
    /// A built-in scheme; or `observe`: nothing is rewritten; or `shim`: below a host, carries to ports
    /// the scales of windows.
    pub scheme: String,
    /// What the port can hold. Default: that of its qdisc.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub buffer: Option<Buffer>,
    /// HCF: the rate at which the port sends; Grant: that of the port, or the limit. Default: its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// ECN: packets are marked from this queue, or from this share of the buffer on. Default: where the
    /// scheme's own queue policy marks, or never.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mark: Option<Level>,
    /// Whether the scheme may drop data early, as HSCC's `sigma` does. Default: false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub drops: bool,
    /// The priority with which SYNs and pure ACKs leave, so that a queue discipline can give them a
    /// band of their own. Default: theirs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control_priority: Option<Priority>,
    /// Flows that match one of these rules are left alone. Default: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclude: Vec<Rule>,
    /// If there are such rules, flows that match none of them are left alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub include: Vec<Rule>,
    /// The share of flows, chosen at random, that is controlled. Default: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub canary: Option<Share>,
    /// The scheme's window policy, with these parameters over its own.
    #[serde(default)]
    pub window: Window,
    /// The scheme's queue policy, likewise.
    #[serde(default)]
    pub queue: Queue,
    /// The scheme's controller, likewise: its shim runs here. Or "flow-counts": a controller counts the
    /// port's flows.
    #[serde(default, skip_serializing_if = "is_none")]
    pub controller: Controller,
}

fn is_none(controller: &Controller) -> bool {
    *controller == Controller::None
}

impl Deployment {
    /// Whether it runs below a host, not on a port.
    pub fn is_shim(&self) -> bool {
        self.scheme == SHIM
    }

    /// The parameters of the controller whose shim runs here, if one does.
    pub fn shim(&self) -> Option<&Params> {
        self.controller.params()
    }

    /// The rate of the port that the window policy is for, or its limit, if it is given.
    pub fn credit_rate(&self) -> Option<Rate> {
        let of_window = self.window.is_credit().then(|| self.window.rate("rate"));
        of_window.flatten().or(self.rate)
    }

    /// Whether a controller counts the port's flows.
    pub fn is_counted_by_controller(&self) -> bool {
        matches!(self.controller, Controller::FlowCounts(_))
    }

    /// Whether it runs below a host and not at a queue.
    pub fn is_below_host(&self) -> bool {
        self.is_shim() || self.shim().is_some()
    }

    /// Whether it is at a queue: neither below a host nor behind the port that has it.
    pub fn has_queue(&self) -> bool {
        !self.is_below_host() && !self.window.is_behind_port()
    }

    /// The queue from which on packets are marked, at a port with this buffer.
    pub fn marks_from(&self, buffer: Buffer) -> Option<Buffer> {
        let of_queue = match &self.queue {
            Queue::Threshold(spec) => spec.mark_at,
            _ => None,
        };
        self.mark.or(of_queue).map(|level| level.of(buffer))
    }
}

/// The schemes that can be attached to a port of a host: those with no other queue policy than HCF, or
/// marks next to a window policy; those of a controller's shim; `observe` and `shim`.
pub fn deployable() -> impl Iterator<Item = &'static str> {
    let parts = builtin_schemes().iter().filter(|(_, scheme)| {
        let has_window = scheme.window.scheme().is_some();
        match &scheme.queue {
            Queue::DropTail(_) => has_window || scheme.controller.params().is_some(),
            Queue::Threshold(spec) => has_window && spec.mark_at.is_some(),
            Queue::Hcf(_) => true,
            _ => false,
        }
    });
    [OBSERVE, SHIM]
        .into_iter()
        .chain(parts.map(|(name, _)| name.as_str()))
}

/// Puts the parts of the scheme under the keys given.
fn complete(port: &mut Node, key: &str) -> Result<(), Problem> {
    let Some((name, at)) = port
        .get("scheme")
        .and_then(|node| Some((node.text()?.to_owned(), node.at)))
    else {
        return Ok(()); // typing reports it
    };
    if !deployable().any(|known| known == name) {
        return Err(Problem {
            at,
            key: [key, "scheme"]
                .iter()
                .filter(|part| !part.is_empty())
                .copied()
                .collect::<Vec<_>>()
                .join("."),
            what: unknown("scheme", &name, &deployable().collect::<Vec<_>>()),
        });
    }
    let built_in = super::scheme::document()?;
    let no_window = document::parse_value("{ kind = \"none\" }");
    let parts = [
        ("window", Some(no_window)),
        ("queue", None),
        ("controller", None),
    ];
    for (part, without) in parts {
        let scheme = built_in.get(&name);
        let node = scheme.and_then(|scheme| scheme.get(part)).cloned();
        let without = without.map(|value| Node {
            value,
            at: Origin::BuiltIn,
        });
        let Some(mut node) = node.or(without) else {
            continue;
        };
        if let Some(own) = port.get(part) {
            node.merge(own.clone());
        }
        port.insert(part, node);
    }
    Ok(())
}

/// A port from pairs of a key and a value, as `penstockd attach --set` takes them.
///
/// # Errors
/// What is wrong, with the pair.
pub fn deployment(sets: &[(String, String)]) -> Result<Deployment, ScenarioError> {
    let read = || {
        let mut root = Node::table(Origin::Line(1));
        apply(&mut root, sets)?;
        complete(&mut root, "").map_err(|problem| vec![problem])?;
        let port = read_as(&root)?;
        check_deployment(&port, &root, "")?;
        Ok(port)
    };
    read().map_err(|problems| ScenarioError {
        file: "--set".into(),
        overrides: sets.iter().map(|(k, v)| format!("{k}={v}")).collect(),
        problems,
    })
}

/// A whole configuration `T`, whose tables `[port.NAME]` are [`Deployment`]s and whose `[controller]` is a
/// [`Controller`]. `file` is for messages.
///
/// # Errors
/// What is wrong, with file and line.
pub fn deployments<T: DeserializeOwned>(text: &str, file: &Path) -> Result<T, ScenarioError> {
    let read = || {
        let mut root = document::parse(text).map_err(|problem| vec![problem])?;
        if let Value::Table(top) = &mut root.value
            && let Some(ports) = top.get_mut("port")
            && let Value::Table(ports) = &mut ports.value
        {
            for (name, port) in ports {
                complete(port, &format!("port.{name}")).map_err(|problem| vec![problem])?;
            }
        }
        let all = read_as::<T>(&root)?;
        if let Some(ports) = root.get("port") {
            for (name, port) in read_as::<IndexMap<String, Deployment>>(ports)? {
                check_deployment(&port, &root, &format!("port.{name}"))?;
            }
        }
        if let Some(controller) = root.get("controller") {
            check_controller(&read_as(controller)?, &root)?;
        }
        Ok(all)
    };
    read().map_err(|problems| ScenarioError {
        file: file.to_owned(),
        overrides: Vec::new(),
        problems,
    })
}

fn read_as<T: DeserializeOwned>(node: &Node) -> Result<T, Vec<Problem>> {
    match typed(node) {
        (Some(value), problems) if problems.is_empty() => Ok(value),
        (_, problems) => Err(problems),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::units::Time;

    fn sets(pairs: &[(&str, &str)]) -> Result<Deployment, String> {
        let owned: Vec<(String, String)> = pairs
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect();
        deployment(&owned).map_err(|error| error.to_string())
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Ports {
        port: IndexMap<String, Deployment>,
    }

    fn file(text: &str) -> Result<Ports, String> {
        deployments(text, Path::new("p.toml")).map_err(|error| error.to_string())
    }

    #[test]
    fn a_scheme_brings_its_window_and_sets_lie_over_it() {
        let port = sets(&[("scheme", "fairq-paper"), ("window.alpha", "20 %")]).unwrap();
        assert_eq!(
            port.window.scheme().map(|scheme| scheme.name),
            Some("fairq")
        );
        assert_eq!(port.window.share("alpha").0, 0.2);
        assert_eq!(port.window.count("first_floor"), 0);
        assert_eq!(port.window.count("first_acks"), 4);
        assert!(!port.window.flag("never_shrink"));
        let observing = sets(&[("scheme", "observe")]).unwrap();
        assert_eq!(observing.window, Window::default());
        let observing = sets(&[("scheme", "observe"), ("window.idle", "2 s")]).unwrap();
        assert_eq!(observing.window.time("idle"), Some(Time::from_secs(2)));
    }

    #[test]
    fn a_controllers_scheme_brings_the_parameters_of_its_shim() {
        let port = sets(&[("scheme", "sicc"), ("controller.duration", "20 ms")]).unwrap();
        let shim = port.shim().unwrap();
        assert_eq!(shim.time("duration"), Some(Time::from_millis(20)));
        assert!(shim.flag("expires") && port.is_below_host() && !port.is_shim());
        let printed = sets(&[("scheme", "sicc-paper")]).unwrap();
        assert!(!printed.shim().unwrap().flag("expires"));
        let refused = sets(&[("scheme", "sicc"), ("controller.floor", "0")]).unwrap_err();
        assert!(refused.contains("controller.floor"), "{refused}");
        let refused = sets(&[("scheme", "sicc"), ("canary", "10%")]).unwrap_err();
        assert!(refused.contains("canary"), "{refused}");
        let refused = sets(&[("scheme", "fairq"), ("canary", "110%")]).unwrap_err();
        assert!(
            refused.contains("canary=110%: is 110 %; allowed"),
            "{refused}"
        );
        assert_eq!(sets(&[("scheme", "fairq")]).unwrap().shim(), None);
    }

    #[test]
    fn a_scheme_that_marks_does_so_on_a_port() {
        let buffer = Buffer::Bytes(128_000);
        let marks = |pairs: &[(&str, &str)]| sets(pairs).unwrap().marks_from(buffer);
        let scheme = ("scheme", "fairswitch");
        assert_eq!(marks(&[scheme]), Some(Buffer::Bytes(32_000)));
        assert_eq!(
            marks(&[scheme, ("queue.mark_at", "50 %")]),
            Some(Buffer::Bytes(64_000))
        );
        assert_eq!(
            marks(&[scheme, ("mark", "30 kB")]),
            Some(Buffer::Bytes(30_000))
        );
        assert_eq!(
            marks(&[("scheme", "fairq"), ("mark", "0.1")]),
            Some(Buffer::Bytes(12_800))
        );
        assert_eq!(marks(&[("scheme", "fairq")]), None);
    }

    #[test]
    fn a_file_and_sets_mean_the_same() {
        let text =
            "[port.eth1]\nscheme = \"hscc\"\nbuffer = \"128 kB\"\nwindow = { alpha1 = 0.2 }\n";
        let pairs = [
            ("scheme", "hscc"),
            ("buffer", "128 kB"),
            ("window.alpha1", "0.2"),
        ];
        assert_eq!(file(text).unwrap().port["eth1"], sets(&pairs).unwrap());
    }

    #[test]
    fn a_priority_is_an_index_or_a_class() {
        let number = |text: &str| {
            let port = sets(&[("scheme", "hscc"), ("control_priority", text)])?;
            Ok(port.control_priority.unwrap().as_number())
        };
        assert_eq!(number("7"), Ok(7));
        assert_eq!(number("1:10"), Ok(0x0001_0010));
        for refused in ["0", "16", "-1", "0:1", "1:", "1:fffff", "high"] {
            let error: String = number(refused).unwrap_err();
            let allowed = "allowed: 1 to 15, or a class of the queue discipline, as in \"1:10\"";
            assert!(error.ends_with(allowed), "{error}");
        }
        let text = "[port.eth1]\nscheme = \"hscc\"\ncontrol_priority = \"a:1f\"\n";
        let port = &file(text).unwrap().port["eth1"];
        assert_eq!(port.control_priority.unwrap().to_string(), "a:1f");
    }

    #[test]
    fn a_policy_is_for_schemes_that_rewrite_windows() {
        let rules = ("exclude", "[\"10.0.0.0/8\", \"tcp:179\"]");
        for scheme in ["fairq", "hcf-fairq"] {
            let port = sets(&[("scheme", scheme), rules, ("canary", "10%")]).unwrap();
            assert_eq!(port.exclude.len(), 2);
            assert_eq!((port.include.len(), port.canary), (0, Some(Share(0.1))));
        }
        let text = "[port.eth1]\nscheme = \"fairq\"\nexclude = [\"tcp:0\"]\n";
        let refused = file(text).unwrap_err();
        assert!(
            refused.starts_with("p.toml:3: port.eth1.exclude") && refused.contains("\"tcp:0\""),
            "{refused}"
        );
        for (scheme, set, what) in [
            ("hcf", ("canary", "0.1"), "--set canary=0.1: is for schemes"),
            (
                "hcf",
                ("include", "[\"tcp:80\"]"),
                "is for schemes that rewrite",
            ),
            (
                "fairq",
                ("canary", "0"),
                "allowed: above 0 %, at most 100 %",
            ),
            (
                "fairq",
                ("canary", "10"),
                "allowed: above 0 %, at most 100 %",
            ),
        ] {
            let refused = sets(&[("scheme", scheme), set]).unwrap_err();
            assert!(refused.contains(what), "{refused}");
        }
        let rules = |count| format!("[{}]", "\"tcp:1\",".repeat(count));
        let many = |count| {
            let (exclude, include) = (rules(30), rules(count));
            sets(&[
                ("scheme", "hscc"),
                ("exclude", &exclude),
                ("include", &include),
            ])
        };
        assert!(many(2).is_ok());
        let refused = many(3).unwrap_err();
        assert!(
            refused.contains("33 rules; allowed: at most 32"),
            "{refused}"
        );
    }

    #[test]
    fn what_programs_at_a_port_do_to_its_data_needs_a_window_scheme() {
        let settings = [
            ("mark", "30 kB"),
            ("drops", "true"),
            ("control_priority", "7"),
        ];
        for set in settings {
            for scheme in ["observe", "hcf", "hcf-paper", "sicc", "sicc-paper"] {
                let refused = sets(&[("scheme", scheme), set]).unwrap_err();
                let what = format!("is for schemes with windows; {scheme} has none");
                assert!(refused.ends_with(&what), "{refused}");
            }
        }
        for set in [settings[0], settings[2]] {
            sets(&[("scheme", "hcf-fairq"), set]).unwrap();
        }
        let drops = settings[1];
        sets(&[("scheme", "hscc"), drops]).unwrap();
        for scheme in ["fairq", "hscc-paper", "hcf-fairq"] {
            let refused = sets(&[("scheme", scheme), drops]).unwrap_err();
            let what = format!("is for schemes that drop data early; {scheme} does not");
            assert!(refused.ends_with(&what), "{refused}");
        }
        for mark in ["0", "0 B", "150 %"] {
            let refused = sets(&[("scheme", "fairq"), ("mark", mark)]).unwrap_err();
            assert!(
                refused.contains("mark=") && refused.contains("allowed: "),
                "{refused}"
            );
        }
    }

    #[test]
    fn a_rate_is_for_schemes_that_use_it() {
        let rate = |rate| ("rate", rate);
        for scheme in ["hcf", "hcf-fairq", "grant", "grant-receiver"] {
            sets(&[("scheme", scheme), rate("1 Gb/s")]).unwrap();
        }
        for scheme in ["fairq", "fairswitch", "hscc", "observe", "sicc"] {
            let refused = sets(&[("scheme", scheme), rate("1 Gb/s")]).unwrap_err();
            let what = format!("rate=1 Gb/s: is for grant and hcf; {scheme} needs none");
            assert!(refused.ends_with(&what), "{refused}");
        }
        for beyond in ["999 b/s", "2 Tb/s"] {
            let refused = sets(&[("scheme", "grant"), rate(beyond)]).unwrap_err();
            assert!(refused.ends_with("allowed: 1 kb/s to 1 Tb/s"), "{refused}");
        }
    }

    #[test]
    fn a_port_has_no_part_that_would_do_nothing() {
        for (scheme, set) in [
            ("fairq", ("queue.kind", "codel")),
            ("fairq", ("queue.kind", "threshold")),
            (
                "grant",
                ("queue", "{ kind = \"threshold\", mark_at = \"25 %\" }"),
            ),
            (
                "observe",
                ("queue", "{ kind = \"threshold\", mark_at = \"25 %\" }"),
            ),
            ("fairq", ("controller.kind", "sicc")),
        ] {
            let refused = sets(&[("scheme", scheme), set]);
            assert!(refused.is_err(), "{scheme} {set:?}");
        }
        let marks = "{ kind = \"threshold\", mark_at = \"25 %\" }";
        sets(&[("scheme", "hscc"), ("queue", marks)]).unwrap();
        sets(&[("scheme", "fairq"), ("queue.kind", "hcf")]).unwrap();
    }

    #[test]
    fn refusals_name_the_place_and_the_remedy() {
        let refused = sets(&[("scheme", "fairk")]).unwrap_err();
        assert!(
            refused.starts_with("--set scheme=fairk: unknown scheme"),
            "{refused}"
        );
        assert!(refused.ends_with("did you mean \"fairq\"?"), "{refused}");
        let refused = sets(&[("scheme", "dctcp")]).unwrap_err();
        assert!(
            refused.contains("allowed: observe, shim, fairq, "),
            "{refused}"
        );
        let refused = sets(&[("scheme", "shim")]).unwrap_err();
        assert!(
            refused.contains(
                "window.wscale_source: is missing; allowed: reserved-bits, window-bits, unified"
            ),
            "{refused}"
        );
        let tracked = ("window.wscale_source", "tracked");
        let refused = sets(&[("scheme", "shim"), tracked]).unwrap_err();
        assert!(
            refused.starts_with("--set window.wscale_source=tracked: is for ports"),
            "{refused}"
        );
        let refused = sets(&[("scheme", "fairq"), ("window.alpha", "2")]).unwrap_err();
        assert!(refused.starts_with("--set window.alpha=2: "), "{refused}");
        let refused = file("[port.eth1]\nscheme = \"fairq\"\nbufer = \"1 kB\"\n").unwrap_err();
        assert!(
            refused.starts_with("p.toml:3: port.eth1.bufer: "),
            "{refused}"
        );
        let refused =
            file("[port.eth1]\nscheme = \"fairq\"\n\n[port.eth1.window]\nintervals = 0\n")
                .unwrap_err();
        assert!(
            refused.starts_with("p.toml:5: port.eth1.window.intervals: "),
            "{refused}"
        );
    }
}
