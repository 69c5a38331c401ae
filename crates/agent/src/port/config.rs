// SPDX-License-Identifier: Apache-2.0
//! Converts a [`Deployment`], in the terms of a scenario, into the value of the map `config`.

use anyhow::{Result, anyhow};
use penstock_core::definitions::{self, Definition};
use penstock_core::{ParamError, Params};
use penstock_scenario::units::Time;
use penstock_scenario::{Buffer, Deployment};

use super::pins::ABI;
use crate::skel::port::types::{port_config, scheme_params};

/// `PORT_FLOW_EVENTS` of `bpf/abi.h`: set by `penstockd observe` while it records.
pub const FLOW_EVENTS: u32 = 1 << 0;

/// `PORT_BARE_IP` of `bpf/abi.h`.
const BARE_IP: u32 = 1 << 1;

/// The scheme of a deployment, the prefix of its programs' names.
pub fn programs(port: &Deployment) -> &'static str {
    match port.window.scheme() {
        _ if port.is_shim() => "shim",
        None => "observe",
        Some(scheme) => scheme.name,
    }
}

/// The parameters of every window scheme, as `struct scheme_params` of `core/schemes.h` has them.
///
/// # Errors
/// As of `params`.
pub fn schemes(
    params: impl Fn(&'static Definition) -> Result<Params, ParamError>,
) -> Result<scheme_params, ParamError> {
    let mut all = scheme_params::default();
    for scheme in definitions::window_schemes() {
        // SAFETY: integers, of which any bytes are valid.
        let bytes = unsafe { as_bytes_mut(&mut all) };
        let params = params(scheme)?;
        bytes[scheme.offset..][..params.bytes().len()].copy_from_slice(params.bytes());
    }
    Ok(all)
}

/// A struct of C from its bytes, as [`Params`] has them.
///
/// # Safety
/// Any bytes are a valid `T`.
pub unsafe fn from_bytes<T: Default>(bytes: &[u8]) -> T {
    let mut value = T::default();
    // SAFETY: as the caller promises.
    unsafe { as_bytes_mut(&mut value) }.copy_from_slice(bytes);
    value
}

/// # Safety
/// Any bytes are a valid `T`, and it has no padding that is not a field.
unsafe fn as_bytes_mut<T>(value: &mut T) -> &mut [u8] {
    // SAFETY: as the caller promises.
    unsafe { std::slice::from_raw_parts_mut((&raw mut *value).cast(), size_of::<T>()) }
}

/// # Safety
/// As of [`as_bytes_mut`].
unsafe fn as_bytes<T>(value: &T) -> &[u8] {
    // SAFETY: as the caller promises.
    unsafe { std::slice::from_raw_parts((&raw const *value).cast(), size_of::<T>()) }
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
    let message = |error: ParamError| anyhow!("--buffer {buffer}: {error}");
    let window = port.window.common().map_err(message)?;
    let own = port.window.scheme().map(|scheme| scheme.name);
    let params = |scheme: &'static Definition| match own == Some(scheme.name) {
        true => port.window.core(buffer.as_bytes(), None),
        false => Ok(Params::new(scheme, buffer.as_bytes())),
    };
    Ok(port_config {
        abi: ABI,
        generation: 0,
        stale_ns: stale.as_nanos().max(1),
        flags: if is_bare { BARE_IP } else { 0 },
        buffer_bytes: buffer.as_bytes(),
        mark_bytes: port.mark.map_or(0, Buffer::as_bytes),
        // SAFETY: integers, of which any bytes are valid.
        window: unsafe { from_bytes(window.bytes()) },
        schemes: schemes(params).map_err(message)?,
        ..Default::default()
    })
}

/// Whether two configurations differ in what a scheme's state depends on.
fn differs(one: &port_config, other: &port_config) -> bool {
    // SAFETY: integers; what pads them are fields too.
    let differ = unsafe {
        as_bytes(&one.window) != as_bytes(&other.window)
            || as_bytes(&one.schemes) != as_bytes(&other.schemes)
    };
    differ || (one.flags, one.buffer_bytes) != (other.flags, other.buffer_bytes)
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
