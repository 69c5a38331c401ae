// SPDX-License-Identifier: Apache-2.0
//! Converts a [`Deployment`], in the terms of a scenario, into the value of the map `config`.

use anyhow::{Result, anyhow};
use penstock_core::fairq::FairqParams;
use penstock_core::hscc::HsccParams;
use penstock_scenario::units::Time;
use penstock_scenario::{Buffer, Deployment, Fairq, Hscc, Scale, Window};

use super::pins::ABI;
use crate::skel::port::types::{
    fairq_params, hscc_params, port_config, scheme_params, window_params,
};

/// FairQ's T where none is given: a kernel does not know the RTT of its data center.
const INTERVAL: Time = Time::from_micros(100);

/// `PORT_FLOW_EVENTS` of `bpf/abi.h`: set by `penstockd observe` while it records.
pub const FLOW_EVENTS: u32 = 1 << 0;

/// `PORT_BARE_IP` of `bpf/abi.h`.
const BARE_IP: u32 = 1 << 1;

/// The scale that all hosts use under [`Scale::Unified`], as in the simulator.
const UNIFIED_SCALE: u32 = 7;

/// The scheme of a deployment, the prefix of its programs' names.
pub fn programs(port: &Deployment) -> &'static str {
    match port.window {
        _ if port.is_shim() => "shim",
        Window::None => "observe",
        Window::Fairq(_) => "fairq",
        Window::Hscc(_) => "hscc",
    }
}

/// The configuration of a port's programs, generation 0. `is_bare`: the interface has no Ethernet
/// header. Every scheme gets its parameters, as programs that observe run all of them.
///
/// # Errors
/// A parameter that the buffer makes impossible.
pub fn config(
    port: &Deployment,
    buffer: Buffer,
    stale: Time,
    is_bare: bool,
) -> Result<port_config> {
    let (fairq, hscc) = match &port.window {
        Window::None => (Fairq::default(), Hscc::default()),
        Window::Fairq(fairq) => (fairq.clone(), Hscc::default()),
        Window::Hscc(hscc) => (Fairq::default(), hscc.clone()),
    };
    let scale = match &port.window {
        Window::None => port.scale.unwrap_or(Scale::Tracked),
        Window::Fairq(fairq) => fairq.scale,
        Window::Hscc(hscc) => hscc.scale,
    };
    let fairq = fairq.params(buffer, INTERVAL);
    let hscc = hscc.params(buffer);
    let message = |error: penstock_core::ParamError| anyhow!("--buffer {buffer}: {error}");
    fairq.check().map_err(message)?;
    hscc.check().map_err(message)?;
    Ok(port_config {
        abi: ABI,
        generation: 0,
        stale_ns: stale.as_nanos().max(1),
        flags: if is_bare { BARE_IP } else { 0 },
        buffer_bytes: buffer.as_bytes(),
        mark_bytes: port.mark.map_or(0, Buffer::as_bytes),
        window: window_params {
            first_acks: port.first_acks,
            wscale_source: match scale {
                Scale::Tracked => 0,
                Scale::ReservedBits => 1,
                Scale::WindowBits => 2,
                Scale::Unified => 3,
            },
            network_wscale: UNIFIED_SCALE,
            idle_ns: port.idle.as_nanos().max(1),
            never_shrink: port.never_shrink.into(),
            ..Default::default()
        },
        schemes: scheme_params {
            // SAFETY: the same C structs, as BTF and as penstock-core mirror them.
            fairq: unsafe { std::mem::transmute::<FairqParams, fairq_params>(fairq) },
            // SAFETY: as above.
            hscc: unsafe { std::mem::transmute::<HsccParams, hscc_params>(hscc) },
        },
        ..Default::default()
    })
}

/// Whether two configurations differ in what a scheme's state depends on.
fn differs(one: &port_config, other: &port_config) -> bool {
    let window = |config: &port_config| {
        let window = config.window;
        (
            window.first_acks,
            window.wscale_source,
            window.network_wscale,
            window.idle_ns,
            window.never_shrink,
        )
    };
    let schemes = |config: &port_config| {
        // SAFETY: the same C structs, as BTF and as penstock-core mirror them.
        unsafe {
            (
                std::mem::transmute::<fairq_params, FairqParams>(config.schemes.fairq),
                std::mem::transmute::<hscc_params, HsccParams>(config.schemes.hscc),
            )
        }
    };
    (one.flags, one.buffer_bytes) != (other.flags, other.buffer_bytes)
        || window(one) != window(other)
        || schemes(one) != schemes(other)
}

/// `wanted` with the generation it takes to replace `running`: one more if the scheme's state must
/// be reset. Whether flow events are written stays as it is.
pub fn succeed(
    wanted: port_config,
    running: Option<&port_config>,
    is_other_scheme: bool,
) -> port_config {
    let Some(running) = running.filter(|running| running.abi == ABI) else {
        return port_config {
            generation: 1,
            ..wanted
        };
    };
    let mut next = wanted;
    next.flags |= running.flags & FLOW_EVENTS;
    next.generation = running.generation;
    if is_other_scheme || differs(&next, running) {
        next.generation = running.generation.wrapping_add(1).max(1);
    }
    next
}
