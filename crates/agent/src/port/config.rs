// SPDX-License-Identifier: Apache-2.0
//! Converts a [`Deployment`], in the terms of a scenario, into the value of the map `config`.
//!
//! The structs of parameters are those of `core/`, filled by `penstock-core` from the definitions
//! there; the agent copies their bytes and names none of their fields.

use anyhow::{Result, anyhow};
use penstock_core::definitions::{self, Definition};
use penstock_core::{ParamError, Params};
use penstock_scenario::units::Time;
use penstock_scenario::{Buffer, Deployment, Priority, SHIM};

pub use penstock_scenario::OBSERVE;

use super::plain::{bytes_of, bytes_of_mut};
use super::sicc;
use super::vxlan::VxlanPorts;
use crate::host::clock::monotonic_ns;
use crate::skel::port::types::{port_abi, port_config, port_flag, scheme_params};

/// Flag of a port's configuration: set by `penstockd observe` while it records.
pub const FLOW_EVENTS: u32 = port_flag::PORT_FLOW_EVENTS.0;

const BARE_IP: u32 = port_flag::PORT_BARE_IP.0;
const DROPS: u32 = port_flag::PORT_DROPS.0;
const COUNTED: u32 = port_flag::PORT_COUNTED.0;
const IGNORE_VNI: u32 = port_flag::PORT_IGNORE_VNI.0;

/// The prefix of the names of a deployment's programs.
pub fn programs(port: &Deployment) -> &'static str {
    match (port.window.scheme(), port.shim()) {
        _ if port.is_shim() => SHIM,
        (Some(scheme), _) => scheme.name,
        (None, Some(shim)) => shim.kind().name,
        (None, None) => OBSERVE,
    }
}

/// Whether the programs of this name run below a host and not at a queue.
pub fn are_below_host(programs: &str) -> bool {
    programs == SHIM || sicc::is_scheme(programs)
}

/// The configuration of a port's programs, generation 0. `is_bare`: the interface has no Ethernet
/// header. Every scheme gets parameters, by default those with which it would be deployed, as
/// programs that observe run all of them.
///
/// # Errors
/// A parameter outside its range.
pub fn config(
    port: &Deployment,
    buffer: Buffer,
    stale: Time,
    is_bare: bool,
) -> Result<port_config> {
    let message = |error: ParamError| anyhow!("a buffer of {buffer}: {error}");
    let mut config = port_config {
        abi: port_abi::PENSTOCK_ABI,
        stale_ns: stale.as_nanos().max(1),
        flags: (BARE_IP * u32::from(is_bare))
            | (DROPS * u32::from(port.drops))
            | (COUNTED * u32::from(port.is_counted_by_controller())),
        buffer_bytes: buffer.as_bytes(),
        mark_bytes: port.marks_from(buffer).map_or(0, Buffer::as_bytes),
        control_priority: port.control_priority.map_or(0, Priority::as_number),
        ..Default::default()
    };
    let window = port.window.common().map_err(message)?;
    bytes_of_mut(&mut config.window).copy_from_slice(window.bytes());
    for definition in definitions::window_schemes() {
        let is_deployed = port.window.scheme().map(|scheme| scheme.scheme);
        let params = match is_deployed == Some(definition.scheme) {
            true => port.window.core(buffer.as_bytes(), None).map_err(message)?,
            false => Params::new(definition, buffer.as_bytes()),
        };
        write_params(&mut config.schemes, &params);
    }
    Ok(config)
}

/// The same with the settings of tunnels: UDP ports of VXLAN, and whether the identifiers of tunnels
/// (VNI) are those of senders, so that the two directions of a connection have different ones.
pub fn with_tunnels(
    config: port_config,
    vxlan_ports: VxlanPorts,
    ignores_vni: bool,
) -> port_config {
    port_config {
        vxlan_ports: vxlan_ports.to_wire(),
        flags: config.flags | (IGNORE_VNI * u32::from(ignores_vni)),
        ..config
    }
}

/// For how much longer the port is paused, ns; 0: it is not.
pub fn paused_ns(config: &port_config) -> u64 {
    let now = monotonic_ns();
    match now >= config.pause_ns {
        true => config.resume_ns.saturating_sub(now),
        false => 0,
    }
}

/// Whether a controller is to count the port's flows.
pub fn is_counted(config: &port_config) -> bool {
    config.flags & COUNTED != 0
}

/// The parameters of one scheme.
pub fn read_params(schemes: &scheme_params, definition: &'static Definition) -> Params {
    Params::from_bytes(definition, &bytes_of(schemes)[definition.offset..])
}

/// Sets the parameters of one scheme.
pub fn write_params(schemes: &mut scheme_params, params: &Params) {
    let bytes = params.bytes();
    let offset = params.definition().offset;
    bytes_of_mut(schemes)[offset..offset + bytes.len()].copy_from_slice(bytes);
}

/// Whether two configurations differ in anything that the state of schemes depends on.
fn differ(one: &port_config, other: &port_config) -> bool {
    let window = |config: &port_config| {
        Params::from_bytes(definitions::of("window"), bytes_of(&config.window))
    };
    let flags = |config: &port_config| config.flags & !(DROPS | COUNTED);
    (flags(one), one.buffer_bytes) != (flags(other), other.buffer_bytes)
        || window(one) != window(other)
        || definitions::window_schemes().any(|definition| {
            read_params(&one.schemes, definition) != read_params(&other.schemes, definition)
        })
}

/// The settings in which two configurations of `scheme` differ, by their names in the daemon's
/// configuration.
pub fn differences(one: &port_config, other: &port_config, scheme: &str) -> Vec<String> {
    let mut names = Vec::new();
    for (name, is_other) in [
        ("buffer", one.buffer_bytes != other.buffer_bytes),
        ("mark", one.mark_bytes != other.mark_bytes),
        ("drops", one.flags & DROPS != other.flags & DROPS),
        ("controller", is_counted(one) != is_counted(other)),
        (
            "control_priority",
            one.control_priority != other.control_priority,
        ),
        ("agent.stale", one.stale_ns != other.stale_ns),
        ("agent.vxlan_ports", one.vxlan_ports != other.vxlan_ports),
        (
            "agent.ignore_vni",
            one.flags & IGNORE_VNI != other.flags & IGNORE_VNI,
        ),
        ("agent.flows", one.flows_max != other.flows_max),
    ] {
        names.extend(is_other.then(|| name.to_owned()));
    }
    let window = definitions::of("window");
    let common = [one, other].map(|config| Params::from_bytes(window, bytes_of(&config.window)));
    let mut pairs = vec![common];
    let definitions = definitions::window_schemes().filter(|definition| definition.name == scheme);
    pairs.extend(
        definitions
            .map(|definition| [one, other].map(|config| read_params(&config.schemes, definition))),
    );
    for [one, other] in pairs {
        names.extend(changed(&one, &other, "window"));
    }
    names
}

/// The parameters in which two of one scheme differ, by their names in this table.
pub fn changed(one: &Params, other: &Params, table: &str) -> Vec<String> {
    let params = one.definition().params.iter();
    let fields = params.filter_map(|param| Some((param, param.field?)));
    let changed = fields.filter(|(_, field)| one.field(field.name) != other.field(field.name));
    changed
        .map(|(param, _)| format!("{table}.{}", param.key))
        .collect()
}

/// `wanted` with the generation it takes to replace `running`: one more if the schemes must be
/// reset. Whether flow events are written, and whether the port is paused, stays as it is.
pub fn succeed(
    wanted: port_config,
    running: Option<&port_config>,
    is_other_scheme: bool,
) -> port_config {
    let Some(running) = running.filter(|running| running.abi == port_abi::PENSTOCK_ABI) else {
        return port_config {
            generation: 1,
            ..wanted
        };
    };
    let mut next = wanted;
    next.flags |= running.flags & FLOW_EVENTS;
    next.generation = running.generation;
    (next.pause_ns, next.resume_ns) = (running.pause_ns, running.resume_ns);
    if is_other_scheme || differ(&next, running) {
        next.generation = running.generation.wrapping_add(1).max(1);
    }
    next
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::skel::port::types::window_params;
    use penstock_scenario::{deployable, deployment};

    /// The window schemes that have a name of their own in `--scheme`.
    fn schemes() -> impl Iterator<Item = &'static Definition> {
        let all = definitions::window_schemes();
        all.filter(|definition| deployable().any(|name| name == definition.name))
    }

    fn deployed(pairs: &[(&str, &str)]) -> port_config {
        let pairs: Vec<(String, String)> = pairs
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect();
        let port = deployment(&pairs).unwrap();
        config(&port, Buffer::Bytes(128_000), Time::from_secs(2), false).unwrap()
    }

    #[test]
    fn structs_in_the_map_are_those_of_core() {
        let ends = definitions::window_schemes()
            .map(|definition| definition.offset + Params::new(definition, 1).bytes().len());
        assert_eq!(ends.max(), Some(size_of::<scheme_params>()));
        let window = Params::new(definitions::of("window"), 0);
        assert_eq!(window.bytes().len(), size_of::<window_params>());
    }

    /// What `observe` judges by is what `attach --scheme NAME` deploys.
    #[test]
    fn observing_runs_each_scheme_as_it_would_be_deployed() {
        let observed = deployed(&[("scheme", "observe")]);
        for definition in schemes() {
            let attached = deployed(&[("scheme", definition.name)]);
            assert_eq!(
                read_params(&observed.schemes, definition),
                read_params(&attached.schemes, definition),
                "{}",
                definition.name
            );
        }
    }

    #[test]
    fn a_parameter_resets_the_schemes_and_a_setting_of_the_port_does_not() {
        for definition in schemes() {
            let running = succeed(deployed(&[("scheme", definition.name)]), None, false);
            assert_eq!(running.generation, 1);
            let generation = |pairs: &[(&str, &str)]| {
                let mut all = vec![("scheme", definition.name)];
                all.extend(pairs);
                succeed(deployed(&all), Some(&running), false).generation
            };
            assert_eq!(generation(&[]), 1);
            assert_eq!(
                generation(&[("mark", "30 kB"), ("control_priority", "7")]),
                1
            );
            if definition.name == "hscc" {
                assert_eq!(generation(&[("drops", "true")]), 1);
            }
            let is_other = Params::paper(definition, 128_000) != Params::new(definition, 128_000);
            let paper = generation(&[("window.variant", "paper")]);
            assert_eq!(paper, 1 + u32::from(is_other));
            assert_eq!(generation(&[("window.first_acks", "7")]), 2);
        }
        let recording = port_config {
            generation: 5,
            flags: FLOW_EVENTS,
            ..deployed(&[("scheme", "observe")])
        };
        let next = succeed(deployed(&[("scheme", "observe")]), Some(&recording), false);
        assert_eq!((next.generation, next.flags), (5, FLOW_EVENTS));
        let other = succeed(deployed(&[("scheme", "observe")]), Some(&recording), true);
        assert_eq!(other.generation, 6);
    }
}
