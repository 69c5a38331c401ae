// SPDX-License-Identifier: Apache-2.0
//! What a configuration must keep beyond its form, so that a daemon need not find it out as it runs.

use std::collections::HashSet;
use std::hash::Hash;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use penstock_linux::link::{LONGEST_NAME, is_name};
use penstock_scenario::units::Time;

use super::config::{Agent, Config, Sdn, Switch, is_matched};
use crate::attach::{FLOWS, grant};
use crate::metrics;
use crate::port::heartbeat::{BEATS, SHORTEST};

/// The shortest interval of reports on queues: each takes a datagram, and a call of the kernel for each port.
const SHORTEST_REPORT: Time = Time::from_micros(10);

/// Refuses what cannot be run.
///
/// # Errors
/// The first key with a value that is not allowed, why, and what is.
pub fn check(config: &Config) -> Result<()> {
    agent(&config.agent)?;
    if let Some(address) = config.metrics.listen {
        metrics::require_allowed(address, config.metrics.allow_remote).context("metrics.listen")?;
    }
    if let Some(textfile) = &config.metrics.textfile {
        absolute("metrics.textfile", textfile)?;
    }
    if let Some(sdn) = &config.sdn {
        controller(sdn)?;
    }
    let switch = config.sdn.as_ref().and_then(|sdn| sdn.switch.as_ref());
    for (interface, port) in &config.port {
        name("port", interface, true)?;
        grant::require_one_rate(port).with_context(|| format!("port.{interface}.rate"))?;
        let mut counted = switch.iter().flat_map(|switch| switch.ports.keys());
        ensure!(
            !port.is_counted_by_controller() || counted.any(|name| is_matched(interface, name)),
            "port.{interface}.controller: counts flows for a port of [sdn.switch], whose ports lack it; \
             add it there"
        );
    }
    Ok(())
}

fn agent(agent: &Agent) -> Result<()> {
    let longest = Time(agent.stale.0 / u64::from(BEATS));
    let shortest = Time::from_nanos(SHORTEST.as_nanos() as u64);
    ensure!(
        (shortest..=longest).contains(&agent.heartbeat),
        "agent.heartbeat: is {}; allowed: {shortest} to a quarter of agent.stale, {longest}",
        agent.heartbeat
    );
    for (key, value, least, most) in [
        ("all_flows", agent.all_flows, 64, 1 << 24),
        ("flows", agent.flows, 64, agent.all_flows.max(FLOWS)),
        ("ports", agent.ports, 1, 1 << 15),
    ] {
        ensure!(
            (least..=most).contains(&value),
            "agent.{key}: is {value}; allowed: {least} to {most}"
        );
    }
    absolute("agent.pins", &agent.pins)?;
    absolute("agent.locks", &agent.locks)?;
    for interface in &agent.replace_qdisc {
        name("agent.replace_qdisc", interface, true)?;
    }
    Ok(())
}

fn controller(sdn: &Sdn) -> Result<()> {
    ensure!(
        !sdn.controller.is_empty(),
        "sdn.controller: names none; allowed: an address, as \"10.0.0.1:6654\", or several"
    );
    for interface in sdn.guests.keys() {
        name("sdn.guests", interface, false)?;
    }
    if let Some(guest) = twice(sdn.guests.values().flatten()) {
        bail!("sdn.guests: {guest} is there twice; allowed: each address at one interface");
    }
    sdn.switch.as_ref().map_or(Ok(()), ports_of)
}

fn ports_of(switch: &Switch) -> Result<()> {
    penstock_sdn::datapath(&switch.datapath).context("sdn.switch.datapath")?;
    let interval = switch.interval;
    ensure!(
        interval.0 == 0 || interval >= SHORTEST_REPORT,
        "sdn.switch.interval: is {interval}; allowed: 0, or {SHORTEST_REPORT} and more"
    );
    for interface in switch.ports.keys() {
        name("sdn.switch.ports", interface, false)?;
    }
    if let Some(number) = twice(switch.ports.values()) {
        bail!("sdn.switch.ports: {number} is there twice; allowed: each number for one port");
    }
    Ok(())
}

/// Refuses what no interface can be called, or no pattern can match.
fn name(key: &str, name: &str, is_pattern: bool) -> Result<()> {
    let matches_some = || {
        let shortest = name.replace('*', "");
        shortest != name && (is_name(&shortest) || is_name(&format!("{shortest}x")))
    };
    ensure!(
        is_name(name) || is_pattern && matches_some(),
        "{key}: no interface can be called {name:?}; allowed: 1 to {LONGEST_NAME} bytes without blanks, \
         \"/\" and \":\""
    );
    Ok(())
}

fn absolute(key: &str, path: &Path) -> Result<()> {
    ensure!(
        path.is_absolute(),
        "{key}: is {path:?}; allowed: a path that begins with \"/\""
    );
    Ok(())
}

/// The first that is there a second time.
fn twice<T: Copy + Eq + Hash>(mut all: impl Iterator<Item = T>) -> Option<T> {
    let mut seen = HashSet::new();
    all.find(|one| !seen.insert(*one))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        Config::parse(text, Path::new("p.toml"))
            .map_or_else(|error| format!("{error:#}"), |_| String::new())
    }

    #[track_caller]
    fn is_refused(text: &str, begin: &str) {
        let error = refused(text);
        assert!(
            error.starts_with(&format!("p.toml: {begin}")),
            "{text}: {error:?}"
        );
        assert_eq!(error.lines().count(), 1, "{error}");
    }

    const SDN: &str = "[sdn]\ncontroller = \"10.0.0.1:6654\"\nnumber = 1\nkey = \"/k\"\n";
    const SWITCH: &str = "[sdn.switch]\ndatapath = \"a2\"\n";

    #[test]
    fn limits_of_the_agent() {
        is_refused(
            "[agent]\nheartbeat = \"1 s\"\n",
            "agent.heartbeat: is 1 s; allowed: 10 ms to a quarter of agent.stale, 500 ms",
        );
        is_refused(
            "[agent]\nflows = 63\n",
            "agent.flows: is 63; allowed: 64 to 262144",
        );
        is_refused(
            "[agent]\nflows = 100000\nall_flows = 1000\n",
            "agent.flows: is 100000; allowed: 64 to 65536",
        );
        assert_eq!(refused("[agent]\nall_flows = 1000\n"), "");
        is_refused(
            "[agent]\nports = 0\n",
            "agent.ports: is 0; allowed: 1 to 32768",
        );
    }

    #[test]
    fn paths_begin_at_the_root() {
        for (text, key) in [
            ("[agent]\npins = \"bpf\"\n", "agent.pins"),
            ("[agent]\nlocks = \"\"\n", "agent.locks"),
            ("[metrics]\ntextfile = \"x.prom\"\n", "metrics.textfile"),
        ] {
            is_refused(text, &format!("{key}: is "));
        }
    }

    #[test]
    fn names_that_an_interface_can_have() {
        let port = |name: &str| refused(&format!("[port.{name:?}]\nscheme = \"observe\"\n"));
        for name in [
            "eth1",
            "lxc*",
            "*",
            "a23456789012345",
            "*a23456789012345*",
            "*.",
            "tap??",
        ] {
            assert_eq!(port(name), "", "{name}");
        }
        for name in ["", "a234567890123456", "a/b", "a b", "a:b", ".", ".."] {
            let error = port(name);
            assert!(
                error.starts_with("p.toml: port: no interface can be called"),
                "{name}: {error}"
            );
        }
        // Where an interface is named there is no pattern.
        assert_eq!(refused("[agent]\nreplace_qdisc = [\"eth*\"]\n"), "");
        is_refused(
            &format!("{SDN}guests = {{ \"a/b\" = [] }}\n"),
            "sdn.guests: no interface",
        );
    }

    #[test]
    fn addresses_and_numbers_stand_once() {
        is_refused(
            "[sdn]\ncontroller = []\nnumber = 1\nkey = \"/k\"\n",
            "sdn.controller: names none",
        );
        let guests = "guests = { a = [\"10.0.0.2\"], b = [\"10.0.0.2\"] }\n";
        is_refused(
            &format!("{SDN}{guests}"),
            "sdn.guests: 10.0.0.2 is there twice",
        );
        let ports = "ports = { a = 1, b = 1 }\n";
        is_refused(
            &format!("{SDN}{SWITCH}{ports}"),
            "sdn.switch.ports: 1 is there twice",
        );
        let datapath = "[sdn.switch]\ndatapath = \"br0\"\nports = {}\n";
        is_refused(
            &format!("{SDN}{datapath}"),
            "sdn.switch.datapath: \"br0\" is no",
        );
    }

    #[test]
    fn reports_on_queues_are_not_too_frequent() {
        for (interval, is_allowed) in [("0 s", true), ("1 ns", false), ("10 us", true)] {
            let text = format!("{SDN}{SWITCH}ports = {{}}\ninterval = \"{interval}\"\n");
            assert_eq!(refused(&text).is_empty(), is_allowed, "{interval}");
        }
    }

    #[test]
    fn the_rate_of_grant_is_given_once() {
        let port = |more: &str| format!("[port.eth1]\nscheme = \"grant\"\n{more}");
        let rate = "rate = \"1 Gb/s\"\n";
        let in_window = "[port.eth1.window]\nrate = \"2 Gb/s\"\n";
        for allowed in [rate, in_window] {
            assert_eq!(refused(&port(allowed)), "");
        }
        is_refused(
            &port(&format!("{rate}{in_window}")),
            "port.eth1.rate: is 1 Gb/s, and window.rate, another name for it, is 2 Gb/s; give one",
        );
        // HCF's queue has a rate of its own.
        let with_hcf = format!("queue = {{ kind = \"hcf\" }}\n{rate}{in_window}");
        assert_eq!(refused(&port(&with_hcf)), "");
    }

    #[test]
    fn a_controller_counts_the_flows_of_its_switch() {
        let port = |name: &str| {
            format!(
                "[port.\"{name}\"]\nscheme = \"fairq\"\ncontroller = {{ kind = \"flow-counts\" }}\n"
            )
        };
        let ports = "ports = { veth7 = 7 }\n";
        for name in ["veth7", "veth*"] {
            assert_eq!(refused(&format!("{SDN}{SWITCH}{ports}{}", port(name))), "");
        }
        for text in [
            port("veth7"),
            format!("{SDN}{}", port("veth7")),
            format!("{SDN}{SWITCH}{ports}{}", port("veth8")),
            format!("{SDN}{SWITCH}{ports}{}", port("eth*")),
        ] {
            let error = refused(&text);
            assert!(
                error.contains(".controller: counts flows for a port of [sdn.switch]"),
                "{error}"
            );
        }
    }
}
