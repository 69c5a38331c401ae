// SPDX-License-Identifier: Apache-2.0
//! SICC's shim: its parameters, the messages that it takes, and the pairs that it clamps
//! (`bpf/sicc_abi.h`).

use std::net::{IpAddr, Ipv6Addr};
use std::os::fd::AsRawFd;

use anyhow::{Context, Result, bail};
use libbpf_rs::{MapCore, MapFlags, Program, libbpf_sys as sys};
use penstock_core::Params;
use penstock_core::definitions::{self, Definition};
use penstock_core::sicc::{self, SiccOrder};
use penstock_core::tcp_rewrite::raw_scale;
use penstock_sdn::message::{Notice, Order};

use super::Port;
use super::plain::of_bytes;
use crate::host::clock::monotonic_ns;
use crate::skel::port::types::{sicc_key, sicc_message};

/// Name of the scheme, and prefix of its programs.
pub const SICC: &str = "sicc";

/// The map with its parameters.
pub const PARAMS: &str = SICC;

/// Name and pin of the program that takes messages, in the folder of what all ports share.
pub const ORDER: &str = "sicc_order";

/// The map of pairs.
const PAIRS: &str = "sicc_pairs";

/// The maps that only its programs use.
pub const MAPS: [&str; 2] = [PARAMS, PAIRS];

/// Whether a port with this scheme has this shim.
pub fn is_scheme(name: &str) -> bool {
    name == SICC
}

/// Its parameters.
pub fn definition() -> &'static Definition {
    definitions::of(SICC)
}

/// Sets the parameters of a port's shim.
///
/// # Errors
/// The kernel refuses.
pub fn set_params(port: &Port, params: &Params) -> Result<()> {
    let slot = port.slot().to_ne_bytes();
    port.map(PARAMS)?
        .update(&slot, params.bytes(), MapFlags::ANY)?;
    Ok(())
}

/// The parameters in which a port's shim differs from those wanted, by their names in the daemon's
/// configuration.
///
/// # Errors
/// The map is not there.
pub fn differences(port: &Port, wanted: &Params) -> Result<Vec<String>> {
    let slot = port.slot().to_ne_bytes();
    let bytes = port.map(PARAMS)?.lookup(&slot, MapFlags::ANY)?;
    let running = Params::from_bytes(wanted.definition(), &bytes.unwrap_or_default());
    let params = wanted.definition().params.iter();
    let fields = params.filter_map(|param| Some((param, param.field?)));
    let changed = fields.filter(|(_, field)| running.field(field.name) != wanted.field(field.name));
    Ok(changed
        .map(|(param, _)| format!("controller.{}", param.key))
        .collect())
}

/// Has a port's shim take a controller's notice. An ON of 0 bytes is malformed and does nothing.
///
/// # Errors
/// The kernel refuses, or the port has another scheme.
pub fn take(port: &Port, notice: &Notice) -> Result<()> {
    let address = |address: IpAddr| -> [u32; 4] {
        let mapped = match address {
            IpAddr::V4(address) => address.to_ipv6_mapped(),
            IpAddr::V6(address) => address,
        };
        words(mapped)
    };
    let (order, mss_bytes, scale) = match notice.order {
        Order::On(mss, scale) => (SiccOrder::On, mss, scale),
        Order::Off => (SiccOrder::Off, 0, None),
    };
    let mut raw = sicc_message {
        pair: sicc_key {
            source: address(notice.source),
            destination: address(notice.destination),
            port: port.id,
        },
        order: order as u32,
        mss_bytes,
        scale: raw_scale(scale) as u8,
        reserved: 0,
    };
    let program = Program::fd_from_pinned_path(port.shared().join(ORDER))
        .with_context(|| format!("{} has no shim of SICC", port.interface))?;
    let mut options = sys::bpf_test_run_opts {
        sz: size_of::<sys::bpf_test_run_opts>() as sys::size_t,
        ctx_in: (&raw mut raw).cast(),
        ctx_size_in: size_of::<sicc_message>() as u32,
        ..Default::default()
    };
    // SAFETY: the descriptor and what the options point to are valid for the call.
    let status = unsafe { sys::bpf_prog_test_run_opts(program.as_raw_fd(), &raw mut options) };
    if status < 0 || options.retval != 0 {
        let number = if status < 0 {
            -status
        } else {
            (options.retval as i32).wrapping_neg()
        };
        let error = std::io::Error::from_raw_os_error(number);
        bail!("{}: the message is not taken: {error}", port.interface);
    }
    Ok(())
}

/// An address as on the wire.
fn words(address: Ipv6Addr) -> [u32; 4] {
    let octets = address.octets();
    let (words, _) = octets.as_chunks();
    std::array::from_fn(|at| u32::from_ne_bytes(words[at]))
}

/// How many pairs of a port are clamped now; none if it has no shim of SICC.
///
/// # Errors
/// The map of pairs cannot be read.
pub fn clamped_pairs(port: &Port) -> Result<u64> {
    let (pairs, now) = (port.map(PAIRS)?, monotonic_ns());
    let is_clamped = |key: &Vec<u8>| {
        of_bytes::<sicc_key>(key).is_some_and(|key| key.port == port.id)
            && matches!(pairs.lookup(key, MapFlags::ANY), Ok(Some(pair)) if sicc::pair_is_on(&pair, now))
    };
    Ok(pairs.keys().filter(is_clamped).count() as u64)
}

/// Removes the pairs of a port.
pub fn forget(port: &Port) {
    let Ok(pairs) = port.map(PAIRS) else { return };
    let is_own = |key: &Vec<u8>| of_bytes::<sicc_key>(key).is_some_and(|key| key.port == port.id);
    for key in pairs.keys().filter(is_own) {
        let _ = pairs.delete(&key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_mapped_and_in_the_order_of_the_wire() {
        let mapped = words(
            "10.1.2.3"
                .parse::<std::net::Ipv4Addr>()
                .unwrap()
                .to_ipv6_mapped(),
        );
        let bytes: Vec<u8> = mapped.iter().flat_map(|word| word.to_ne_bytes()).collect();
        assert_eq!(bytes[..12], [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255]);
        assert_eq!(bytes[12..], [10, 1, 2, 3]);
    }
}
