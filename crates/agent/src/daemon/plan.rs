// SPDX-License-Identifier: Apache-2.0
//! What a start or a reload of the daemon would change, without changing it.

use std::path::Path;

use anyhow::{Context, Result};
use libbpf_rs::{MapCore, MapFlags};
use penstock_core::Params;
use penstock_core::definitions::Definition;
use penstock_linux::link::{self, Link};
use penstock_scenario::{Buffer, Deployment, Queue};

use super::config::Config;
use super::ports::{MARK, is_gone};
use super::settled::speed_bps;
use crate::attach::location::{self, Location};
use crate::attach::{buffer_of, grant, hcf};
use crate::host::interface;
use crate::port::maps::open_map;
use crate::port::plain::{bytes_of, of_bytes};
use crate::port::policy::Policy;
use crate::port::{PinsArg, config, sicc};
use crate::skel::grant::types::grant_config;

/// One line for each interface that is configured or attached: `eth1: attach fairq`.
///
/// # Errors
/// The interfaces or the pins cannot be read.
pub fn lines(config: &Config) -> Result<Vec<String>> {
    let pins = config.agent.pins();
    let links = link::all()?;
    let located = location::all_of(&pins, pins.interfaces()?, &links);
    // The daemon gives pins the names that interfaces have now, before all else.
    let renamed = location::renamed_of(&pins, &located, &links);
    let mut lines = Vec::new();
    for link in &links {
        if let Some((_, port)) = config.port_of(&link.name) {
            let old = renamed.iter().find(|(_, new)| *new == link.name);
            let pinned = old.map_or(link.name.as_str(), |(old, _)| old);
            let change = change(config, &pins, pinned, link, port, &links);
            let change = change.unwrap_or_else(|error| format!("refused: {error:#}"));
            lines.push(format!("{}: {change}", link.name));
        }
    }
    let is_missing = |name: &str| !links.iter().any(|link| link.name == name);
    for name in config.port.keys().filter(|name| !name.contains(['*', '?'])) {
        if is_missing(name) {
            lines.push(format!("{name}: waits for the interface"));
        }
    }
    for (pinned, location) in &located {
        let new = renamed.iter().find(|(old, _)| old == pinned);
        let name = new.map_or(pinned, |(_, new)| new);
        if config.port_of(name).is_some() && !is_gone(config, name, *location, &links) {
            continue;
        }
        let scheme = scheme(&pins, pinned);
        lines.push(match pins.of(pinned).join(MARK).exists() {
            true => format!("{name}: detach {scheme}"),
            false => format!("{name}: stays, as it was attached by hand ({scheme})"),
        });
    }
    Ok(lines)
}

/// The scheme of a port by its programs, or by its qdisc where these only observe.
fn scheme(pins: &PinsArg, interface: &str) -> String {
    let programs = pins.scheme(interface).unwrap_or_default();
    match programs == config::OBSERVE && hcf::is_pinned(&pins.of(interface)) {
        true => hcf::definition().name.to_owned(),
        false => programs,
    }
}

/// What would happen to one interface, whose port is pinned by the name `pinned`.
fn change(
    config: &Config,
    pins: &PinsArg,
    pinned: &str,
    link: &Link,
    port: &Deployment,
    links: &[Link],
) -> Result<String> {
    let name = &link.name;
    let buffer = buffer_of(name, link.index, port)?;
    hcf::check(name, link.index, port, config.agent.may_replace_qdisc(name))?;
    let rate_bps = rate_bps(name, port)?;
    let agent = &config.agent;
    let wanted = config::config(port, buffer, agent.stale, interface::is_bare(name))?;
    let mut wanted = config::with_tunnels(wanted, agent.vxlan_ports, agent.ignore_vni);
    wanted.flows_max = agent.flows;
    let folder = pins.of(pinned);
    if location::of(&folder, links) != Location::Here(link.index) {
        return Ok(format!("attach {}, for a buffer of {buffer}", port.scheme));
    }
    let is_hcf = matches!(port.queue, Queue::Hcf(_));
    let programs = match config::programs(port) {
        config::OBSERVE if is_hcf => hcf::definition().name,
        programs => programs,
    };
    let running = scheme(pins, pinned);
    if running != programs {
        return Ok(format!("replace {running} by {programs}"));
    }
    let attached = pins.open(pinned)?;
    let mut differences = config::differences(&attached.config()?, &wanted, programs);
    if let Some(shim) = port.shim() {
        let wanted = shim.core(wanted.buffer_bytes, None)?;
        differences.extend(sicc::differences(&attached, &wanted)?);
    }
    if let Some(rate_bps) = rate_bps {
        differences.extend(of_grant(&folder, port, buffer, rate_bps)?);
    }
    match &port.queue {
        Queue::Hcf(queue) if hcf::is_pinned(&folder) => {
            let wanted = hcf::config(queue, buffer, port.rate)?;
            let running = pinned_config(&folder, "hcf_config")?;
            differences.extend(hcf::differences(&running, &wanted));
        }
        _ if is_hcf != hcf::is_pinned(&folder) => differences.push("queue".to_owned()),
        _ => (),
    }
    differences.extend(attached.policy()?.differences(&Policy::of(port)));
    Ok(match differences.is_empty() {
        true => format!("unchanged ({running})"),
        false => format!("change {} of {running}", differences.join(", ")),
    })
}

/// Rate of a port with credit, bits per second; none for another scheme.
fn rate_bps(interface: &str, port: &Deployment) -> Result<Option<u64>> {
    if !port.window.is_credit() {
        return Ok(None);
    }
    let given = port.credit_rate().map(|rate| rate.0);
    let rate = given.or_else(|| speed_bps(interface, port));
    let rate = rate.with_context(|| format!("the rate of {interface} is not known; set rate"))?;
    Ok(Some(rate))
}

/// The settings of Grant in which a port differs from what is wanted.
fn of_grant(
    folder: &Path,
    port: &Deployment,
    buffer: Buffer,
    rate_bps: u64,
) -> Result<Vec<String>> {
    let running: grant_config = pinned_config(folder, "grant_config")?;
    let wanted = port.window.core(buffer.as_bytes(), None)?;
    let params = params(grant::definition(), &running.params);
    let mut names = config::changed(&params, &wanted, "window");
    if running.rate_bps != rate_bps {
        names.push("rate".to_owned());
    }
    Ok(names)
}

/// The configuration of a port's own programs.
fn pinned_config<T: Copy>(folder: &Path, pin: &str) -> Result<T> {
    let value = open_map(&folder.join(pin))?.lookup(&0u32.to_ne_bytes(), MapFlags::ANY)?;
    let config = of_bytes(&value.unwrap_or_default());
    config.with_context(|| format!("{pin} is of another version"))
}

fn params<T: Copy>(definition: &'static Definition, plain: &T) -> Params {
    Params::from_bytes(definition, bytes_of(plain))
}
