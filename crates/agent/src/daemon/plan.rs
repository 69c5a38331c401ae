// SPDX-License-Identifier: Apache-2.0
//! What a start or a reload of the daemon would change, without changing it.

use anyhow::Result;
use penstock_linux::link::{self, Link};
use penstock_scenario::Deployment;

use super::config::Config;
use super::ports::MARK;
use crate::attach::location::{self, Location};
use crate::attach::{buffer_of, hcf};
use crate::host::interface;
use crate::port::policy::Policy;
use crate::port::{PinsArg, config, sicc};

/// One line for each interface that is configured or attached: `eth1: attach fairq`.
///
/// # Errors
/// The interfaces or the pins cannot be read.
pub fn lines(config: &Config) -> Result<Vec<String>> {
    let pins = config.agent.pins();
    let links = link::all()?;
    let mut lines = Vec::new();
    for link in &links {
        if let Some((_, port)) = config.port_of(&link.name) {
            let change = change(config, &pins, link, port, &links);
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
    for name in pins.interfaces()? {
        if config.port_of(&name).is_some() {
            continue;
        }
        let scheme = pins.scheme(&name).unwrap_or_default();
        lines.push(match pins.of(&name).join(MARK).exists() {
            true => format!("{name}: detach {scheme}"),
            false => format!("{name}: stays, as it was attached by hand ({scheme})"),
        });
    }
    Ok(lines)
}

/// What would happen to one interface.
fn change(
    config: &Config,
    pins: &PinsArg,
    link: &Link,
    port: &Deployment,
    links: &[Link],
) -> Result<String> {
    let name = &link.name;
    let buffer = buffer_of(name, link.index, port)?;
    let may_replace = config.agent.replace_qdisc.contains(name);
    hcf::check(name, link.index, port, may_replace)?;
    let agent = &config.agent;
    let wanted = config::config(port, buffer, agent.stale, interface::is_bare(name))?;
    let mut wanted = config::with_tunnels(wanted, agent.vxlan_ports, agent.ignore_vni);
    wanted.flows_max = agent.flows;
    if location::of(&pins.of(name), links) != Location::Here(link.index) {
        return Ok(format!("attach {}, for a buffer of {buffer}", port.scheme));
    }
    let programs = config::programs(port);
    let running = pins.scheme(name).unwrap_or_default();
    if running != programs {
        return Ok(format!("replace {running} by {programs}"));
    }
    let attached = pins.open(name)?;
    let mut differences = config::differences(&attached.config()?, &wanted, programs);
    if let Some(shim) = port.shim() {
        let wanted = shim.core(wanted.buffer_bytes, None)?;
        differences.extend(sicc::differences(&attached, &wanted)?);
    }
    differences.extend(attached.policy()?.differences(&Policy::of(port)));
    Ok(match differences.is_empty() {
        true => format!("unchanged ({running})"),
        false => format!("change {} of {running}", differences.join(", ")),
    })
}
