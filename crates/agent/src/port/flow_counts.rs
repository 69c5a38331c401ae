// SPDX-License-Identifier: Apache-2.0
//! What a controller counts and learns of a port's flows (FairQ §III-B), in the maps where the programs find
//! it: `flow_counts` and `known` of `bpf/abi.h`.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Result;
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use penstock_core::flow::SCALE_NONE;
use penstock_core::tcp_rewrite::MAX_SCALE;
use penstock_sdn::message::{FlowOptions, mapped};

use super::Port;
use super::plain::{bytes_of, of_bytes};
use super::sicc::words;

use crate::host::clock::monotonic_ns;
use crate::skel::port::types::{flow_count, flow_key6, flow_known};

/// The map of the numbers.
pub const MAP: &str = "flow_counts";

/// The least MSS that a port or a shim believes (`core/params.h`).
pub const MIN_MSS_BYTES: u16 = 536;

/// The two maps, of one port.
pub struct FlowCounts {
    /// The port's number.
    port: u32,
    slot: u32,
    numbers: MapHandle,
    known: MapHandle,
}

impl FlowCounts {
    /// Of an attached port.
    ///
    /// # Errors
    /// The maps are not there.
    pub fn of(port: &Port) -> Result<FlowCounts> {
        Ok(FlowCounts {
            port: port.id,
            slot: port.slot(),
            numbers: port.map(MAP)?,
            known: port.map("known")?,
        })
    }

    /// The port has so many flows, which holds for this time.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn set(&self, flows: u32, life: Duration) -> Result<()> {
        let count = flow_count {
            until_ns: monotonic_ns().saturating_add(life.as_nanos() as u64),
            flows,
            port: self.port,
        };
        let slot = self.slot.to_ne_bytes();
        self.numbers
            .update(&slot, bytes_of(&count), MapFlags::ANY)?;
        Ok(())
    }

    /// Enters what the SYNs of a flow offered. Returns its key; none if they cannot have offered that, or
    /// the port has changed the flow's windows itself since.
    ///
    /// # Errors
    /// The kernel refuses, as when the map is full.
    pub fn learn(&self, flow: &FlowOptions) -> Result<Option<Vec<u8>>> {
        let key = self.key(flow.source, flow.destination);
        let largest = flow.scales.map_or(0, |scales| scales[0].max(scales[1]));
        let has_ends = flow.source.port() != 0
            && flow.destination.port() != 0
            && flow.source.is_ipv4() == flow.destination.is_ipv4();
        let before = self.known.lookup(bytes_of(&key), MapFlags::ANY)?;
        let before = before.and_then(|bytes| of_bytes::<flow_known>(&bytes));
        if largest > MAX_SCALE || !has_ends || before.is_some_and(|known| known.unified != 0) {
            return Ok(None);
        }
        let known = flow_known {
            seen_ns: monotonic_ns(),
            mss: flow.mss_bytes.max(MIN_MSS_BYTES),
            scale: flow.scales.unwrap_or([SCALE_NONE; 2]),
            ..Default::default()
        };
        let key = bytes_of(&key).to_vec();
        self.known.update(&key, bytes_of(&known), MapFlags::ANY)?;
        Ok(Some(key))
    }

    /// Removes what was learned, if it is still there.
    pub fn forget(&self, key: &[u8]) {
        let _ = self.known.delete(key);
    }

    fn key(&self, source: SocketAddr, destination: SocketAddr) -> flow_key6 {
        flow_key6 {
            source: words(mapped(source.ip())),
            destination: words(mapped(destination.ip())),
            source_port: source.port().to_be(),
            destination_port: destination.port().to_be(),
            network: 0,
            port: self.port,
        }
    }
}
