// SPDX-License-Identifier: Apache-2.0
//! From a deployment in a scenario's words to what the programs of a port are told.

use anyhow::{Result, anyhow};
use penstock_core::fairq::FairqParams;
use penstock_core::hscc::HsccParams;
use penstock_scenario::units::Time;
use penstock_scenario::{Buffer, Deployment, Fairq, Hscc, Scale, Window};

use super::pins::ABI;
use crate::skel::port::types::{fairq_params, hscc_params, port_config};

/// FairQ's T where none is given: a kernel does not know the RTT of its data center.
const INTERVAL: Time = Time::from_micros(100);

/// `enum port_flag`.
const NEVER_SHRINKS: u32 = 1 << 0;
/// `enum port_flag`.
const COUNTS_PACKETS: u32 = 1 << 1;
/// `enum port_flag`: set by `penstockd observe` while it looks.
const TELLS_FLOWS: u32 = 1 << 2;

/// `enum port_flag`.
const BARE_IP: u32 = 1 << 3;

/// The scale that all hosts use under [`Scale::Unified`], as in the simulator.
const UNIFIED_SCALE: u32 = 7;

/// The prefix of the names of the programs that do it.
pub fn programs(port: &Deployment) -> &'static str {
    match port.window {
        _ if port.is_shim() => "shim",
        Window::None => "observe",
        Window::Fairq(_) => "fairq",
        Window::Hscc(_) => "hscc",
    }
}

/// What the programs of a port with `buffer` are told, generation 0. `is_bare`: the interface has no
/// Ethernet header. Both schemes get their
/// parameters, so that observing tells what either would do.
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
    let (scale, counts_packets) = match &port.window {
        Window::None => (port.scale.unwrap_or(Scale::Tracked), false),
        Window::Fairq(fairq) => (
            fairq.scale,
            fairq.counting() == penstock_scenario::Counting::Packets,
        ),
        Window::Hscc(hscc) => (hscc.scale, false),
    };
    let fairq = fairq.params(buffer, INTERVAL);
    let hscc = hscc.params(buffer);
    let told = |error: penstock_core::ParamError| anyhow!("--buffer {buffer}: {error}");
    fairq.check().map_err(told)?;
    hscc.check().map_err(told)?;
    Ok(port_config {
        abi: ABI,
        generation: 0,
        flags: if port.never_shrink { NEVER_SHRINKS } else { 0 }
            | if counts_packets { COUNTS_PACKETS } else { 0 }
            | if is_bare { BARE_IP } else { 0 },
        wscale_source: match scale {
            Scale::Tracked => 0,
            Scale::ReservedBits => 1,
            Scale::WindowBits => 2,
            Scale::Unified => 3,
        },
        stale_ns: stale.as_nanos().max(1),
        idle_ns: port.idle.as_nanos().max(1),
        buffer_bytes: buffer.as_bytes(),
        mark_bytes: port.mark.map_or(0, Buffer::as_bytes),
        first_acks: port.first_acks,
        network_scale: UNIFIED_SCALE,
        fairq: raw_fairq(&fairq),
        hscc: raw_hscc(&hscc),
    })
}

fn raw_fairq(from: &FairqParams) -> fairq_params {
    fairq_params {
        buffer_bytes: from.buffer_bytes,
        mss_bytes: from.mss_bytes,
        alpha_q16: from.alpha_q16,
        interval_ns: from.interval_ns,
        intervals: from.intervals,
        shares_slow_start: from.shares_slow_start,
        floor_segments: from.floor_segments,
        first_floor_segments: from.first_floor_segments,
        averaged: from.averaged,
        paths: from.paths,
        counting: from.counting,
        ..Default::default()
    }
}

fn raw_hscc(from: &HsccParams) -> hscc_params {
    hscc_params {
        buffer_bytes: from.buffer_bytes,
        mss_bytes: from.mss_bytes,
        alpha1_bytes: from.alpha1_bytes,
        alpha2_bytes: from.alpha2_bytes,
        sigma_bytes: from.sigma_bytes,
        floor_segments: from.floor_segments,
        first_flight_segments: from.first_flight_segments,
        release_step_bytes: from.release_step_bytes,
        release_interval_ns: from.release_interval_ns,
        expiry_ns: from.expiry_ns,
        ..Default::default()
    }
}

/// `wanted` with the generation it takes over `running`: one more if the scheme must begin anew.
/// Whether flows are told stays as it is.
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
    next.flags |= running.flags & TELLS_FLOWS;
    next.generation = running.generation;
    // Only a change of these leaves the scheme's state valid. Generated types have no `==`.
    let mut comparable = *running;
    comparable.stale_ns = next.stale_ns;
    comparable.mark_bytes = next.mark_bytes;
    if is_other_scheme || format!("{next:?}") != format!("{comparable:?}") {
        next.generation = running.generation.wrapping_add(1).max(1);
    }
    next
}
