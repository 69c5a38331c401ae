// SPDX-License-Identifier: Apache-2.0
//! SICC's shim: its parameters, the messages that it takes, and the pairs that it clamps
//! (`bpf/sicc_abi.h`).

use std::cell::RefCell;
use std::io;
use std::net::Ipv6Addr;
use std::os::fd::BorrowedFd;
use std::rc::Rc;

use anyhow::{Context, Result, anyhow};
use libbpf_rs::{MapCore, MapFlags, MapHandle, MapType, Program, RingBuffer, RingBufferBuilder};
use penstock_core::Params;
use penstock_core::definitions::{self, Definition};
use penstock_core::sicc::{self, SiccOrder};
use penstock_core::tcp_rewrite::raw_scale;
use penstock_sdn::message::{Notice, Order, mapped};

use super::Port;
use super::config::changed;
use super::maps::{create, put};
use super::plain::{bytes_of_mut, of_bytes};
use crate::host::bpf::{TestRun, test_run};
use crate::host::clock::monotonic_ns;
use crate::skel::port::types::{sicc_key, sicc_message};

/// Name of the scheme, and prefix of its programs.
pub const SICC: &str = "sicc";

/// The map with its parameters.
pub const PARAMS: &str = SICC;

/// Name and pin of the program that takes messages, in the folder of what all ports share.
pub const ORDER: &str = "sicc_order";

/// The map of pairs.
pub const PAIRS: &str = "sicc_pairs";

/// The map with the ring buffer of each port.
pub const FRAMES: &str = "sicc_frames";

/// The maps that only its programs use.
pub const MAPS: [&str; 3] = [PARAMS, PAIRS, FRAMES];

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
    Ok(changed(&running, wanted, "controller"))
}

/// Has a port's shim take a controller's notice. An ON of 0 bytes is malformed and does nothing.
///
/// # Errors
/// The kernel refuses, or the port has another scheme.
pub fn take(port: &Port, notice: &Notice) -> Result<()> {
    let (order, mss_bytes, scale) = match notice.order {
        Order::On(mss, scale) => (SiccOrder::On, mss, scale),
        Order::Off => (SiccOrder::Off, 0, None),
    };
    let mut raw = sicc_message {
        pair: sicc_key {
            source: words(mapped(notice.source)),
            destination: words(mapped(notice.destination)),
            port: port.id,
        },
        order: order as u32,
        mss_bytes,
        scale: raw_scale(scale) as u8,
        reserved: 0,
    };
    let program = Program::fd_from_pinned_path(port.shared().join(ORDER))
        .with_context(|| format!("{} has no shim of SICC", port.interface))?;
    let run = TestRun {
        context: Some(bytes_of_mut(&mut raw)),
        ..Default::default()
    };
    let taken = test_run(&program, run).and_then(|result| match result.value as i32 {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(error.wrapping_neg())),
    });
    taken.map_err(|error| anyhow!("{}: the message is not taken: {error}", port.interface))
}

/// An address as on the wire.
pub(super) fn words(address: Ipv6Addr) -> [u32; 4] {
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

/// Room for the controller's frames, bytes: some 40.
const FRAMES_BYTES: u32 = 1 << 16;

/// The controller's frames that come to ports with this shim.
pub struct Frames {
    map: MapHandle,
    ring: RingBuffer<'static>,
    payloads: Rc<RefCell<Vec<Vec<u8>>>>,
}

impl Frames {
    /// Of no port yet.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn new() -> Result<Frames> {
        let map = create(MapType::RingBuf, FRAMES, (0, 0), FRAMES_BYTES)?;
        let payloads = Rc::new(RefCell::new(Vec::new()));
        let into = Rc::clone(&payloads);
        let mut builder = RingBufferBuilder::new();
        builder.add(&map, move |record| {
            if let Some((bytes, data)) = record.split_first_chunk()
                && let Some(payload) = data.get(..u32::from_ne_bytes(*bytes) as usize)
            {
                into.borrow_mut().push(payload.to_vec());
            }
            0
        })?;
        Ok(Frames {
            ring: builder.build()?,
            map,
            payloads,
        })
    }

    /// Takes those of a port, too.
    ///
    /// # Errors
    /// The kernel refuses, or the port has another scheme.
    pub fn of(&self, port: &Port) -> Result<()> {
        let rings = port.map(FRAMES)?;
        let own = self.map.info()?.info.id.to_ne_bytes();
        let slot = port.slot();
        // The kernel waits for all programs when one is put there.
        if rings.lookup(&slot.to_ne_bytes(), MapFlags::ANY)?.as_deref() != Some(&own) {
            put(&rings, slot, &self.map)?;
        }
        Ok(())
    }

    /// Takes none of a port, where an earlier process did: they pass as any other.
    pub fn stop(port: &Port) {
        if let Ok(rings) = port.map(FRAMES) {
            let _ = rings.delete(&port.slot().to_ne_bytes());
        }
    }

    /// Is readable when there is a frame.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        // SAFETY: it is open as long as the ring.
        unsafe { BorrowedFd::borrow_raw(self.ring.epoll_fd()) }
    }

    /// What followed the headers of Ethernet in those that have come since.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn take(&self) -> Result<Vec<Vec<u8>>> {
        self.ring.consume()?;
        Ok(self.payloads.take())
    }
}

/// Removes the pairs of a port, and what takes its frames.
pub fn forget(port: &Port) {
    Frames::stop(port);
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
