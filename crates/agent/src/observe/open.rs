// SPDX-License-Identifier: Apache-2.0
//! The transfers that are open now, from the tables of flows.

use anyhow::Result;
use libbpf_rs::{MapCore, MapFlags};

use super::fan_in::Transfer;
use crate::port::Port;
use crate::port::records::{FlowKey, address};
use crate::skel::port::types::port_flow;

/// Entries read by one call.
const BATCH: u32 = 4096;

/// Transfers of at least a byte, not yet over at `now_ns`. Those that began before `began_ns` are
/// left over from an earlier recording.
///
/// # Errors
/// The kernel refuses.
pub fn transfers(port: &Port, began_ns: u64, now_ns: u64) -> Result<Vec<Transfer>> {
    let mut open = Vec::new();
    for (name, is_v6) in [("flows4", false), ("flows6", true)] {
        let map = port.map(name)?;
        for (key, value) in map.lookup_batch(BATCH, MapFlags::ANY, MapFlags::ANY)? {
            let Some(flow) = read(&value) else {
                continue;
            };
            if let Some(key) = flow_key(&key, is_v6) {
                open.extend(transfer(&flow, key, began_ns, now_ns));
            }
        }
    }
    Ok(open)
}

fn transfer(flow: &port_flow, key: FlowKey, began_ns: u64, now_ns: u64) -> Option<Transfer> {
    // Microseconds modulo 2^32 are unambiguous, as no transfer is open for 71 minutes.
    let ago_ns = |us: u32| u64::from(((now_ns / 1000) as u32).wrapping_sub(us)) * 1000;
    let begun_ns = now_ns.saturating_sub(ago_ns(flow.burst_us));
    let is_open = flow.burst_bytes > 0 && begun_ns >= began_ns;
    is_open.then_some(Transfer {
        begun_ns,
        ended_ns: now_ns.saturating_sub(ago_ns(flow.last_us)),
        bytes: flow.burst_bytes.into(),
        flow: key,
        is_finished: false,
    })
}

fn read(value: &[u8]) -> Option<port_flow> {
    // SAFETY: plain integers, valid for any bytes; the length is checked.
    (value.len() == size_of::<port_flow>())
        .then(|| unsafe { value.as_ptr().cast::<port_flow>().read_unaligned() })
}

/// `struct flow_key4` or `flow_key6`: both addresses, both ports, the network.
fn flow_key(key: &[u8], is_v6: bool) -> Option<FlowKey> {
    let width = if is_v6 { 16 } else { 4 };
    let host = |at: usize| {
        let mut bytes = [0; 16];
        bytes[..width].copy_from_slice(key.get(at..at + width)?);
        Some(address(bytes, is_v6))
    };
    let number = |at: usize| Some(u16::from_be_bytes(key.get(at..at + 2)?.try_into().ok()?));
    let ports = 2 * width;
    Some(FlowKey {
        source: (host(0)?, number(ports)?),
        destination: (host(width)?, number(ports + 2)?),
        network: u32::from_ne_bytes(key.get(ports + 4..ports + 8)?.try_into().ok()?),
    })
}
