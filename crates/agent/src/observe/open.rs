// SPDX-License-Identifier: Apache-2.0
//! The transfers that are open now, from the tables of flows.

use anyhow::Result;
use libbpf_rs::{MapCore, MapFlags};

use super::fan_in::Transfer;
use crate::host::clock::monotonic_ns;
use crate::port::Port;
use crate::port::plain::of_bytes;
use crate::port::records::{FlowKey, address};
use crate::skel::port::types::port_flow;

/// Entries read by one call.
const BATCH: u32 = 4096;

/// Transfers of at least a byte that are not yet over. Those that began before `began_ns` are left
/// over from an earlier recording.
///
/// # Errors
/// The kernel refuses.
pub fn transfers(port: &Port, began_ns: u64) -> Result<Vec<Transfer>> {
    let mut open = Vec::new();
    for (name, is_v6) in [("flows4", false), ("flows6", true)] {
        let map = port.map(name)?;
        let entries: Vec<_> = map
            .lookup_batch(BATCH, MapFlags::ANY, MapFlags::ANY)?
            .collect();
        // Later than all that the entries hold, as their times are relative to it.
        let now_ns = monotonic_ns();
        for (key, value) in entries {
            let Some(flow) = of_bytes::<port_flow>(&value) else {
                continue;
            };
            if let Some((key, id)) = flow_key(&key, is_v6)
                && id == port.id
            {
                open.extend(transfer(&flow, key, began_ns, now_ns));
            }
        }
    }
    Ok(open)
}

fn transfer(flow: &port_flow, key: FlowKey, began_ns: u64, now_ns: u64) -> Option<Transfer> {
    // Microseconds modulo 2^32 are unambiguous, as no transfer is open for 71 minutes.
    let now_us = now_ns / 1000;
    let time_us = |us: u32| now_us.saturating_sub((now_us as u32).wrapping_sub(us).into());
    let begun_us = time_us(flow.burst_us);
    let is_open = flow.burst_bytes > 0 && begun_us >= began_ns / 1000;
    is_open.then_some(Transfer {
        begun_ns: (begun_us * 1000).max(began_ns),
        ended_ns: (time_us(flow.last_us) * 1000).max(began_ns),
        bytes: flow.burst_bytes.into(),
        flow: key,
        is_finished: false,
    })
}

/// `struct flow_key4` or `flow_key6`: both addresses, both ports, the network; and the port's number.
fn flow_key(key: &[u8], is_v6: bool) -> Option<(FlowKey, u32)> {
    let width = if is_v6 { 16 } else { 4 };
    let host = |at: usize| {
        let mut bytes = [0; 16];
        bytes[..width].copy_from_slice(key.get(at..at + width)?);
        Some(address(bytes, is_v6))
    };
    let number = |at: usize| Some(u16::from_be_bytes(key.get(at..at + 2)?.try_into().ok()?));
    let ports = 2 * width;
    let word = |at: usize| Some(u32::from_ne_bytes(key.get(at..at + 4)?.try_into().ok()?));
    let flow = FlowKey {
        source: (host(0)?, number(ports)?),
        destination: (host(width)?, number(ports + 2)?),
        network: word(ports + 4)?,
    };
    Some((flow, word(ports + 8)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    const KEY: FlowKey = FlowKey {
        source: (std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 1),
        destination: (std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 2),
        network: 0,
    };

    /// A transfer whose first and last data passed at these times, read at `now_ns`.
    fn read_at(now_ns: u64, first_ns: u64, last_ns: u64, began_ns: u64) -> Option<(u64, u64)> {
        let flow = port_flow {
            burst_us: (first_ns / 1000) as u32,
            last_us: (last_ns / 1000) as u32,
            burst_bytes: 1,
            ..port_flow::default()
        };
        let transfer = transfer(&flow, KEY, began_ns, now_ns)?;
        Some((transfer.begun_ns, transfer.ended_ns))
    }

    #[test]
    fn times_in_microseconds_are_of_the_recording_across_a_wrap() {
        let wrap_ns = (u64::from(u32::MAX) + 1) * 1000;
        for base_ns in [7_000_000, wrap_ns - 1_000_000, 5 * wrap_ns + 3_000] {
            let began_ns = base_ns + 999;
            let times =
                |first_ns, last_ns| read_at(base_ns + 9_000_500, first_ns, last_ns, began_ns);
            // In the microsecond in which the recording began.
            assert_eq!(times(began_ns, began_ns), Some((began_ns, began_ns)));
            let (first_ns, last_ns) = (base_ns + 2_000, base_ns + 9_000_000);
            assert_eq!(times(first_ns, last_ns), Some((first_ns, last_ns)));
            assert_eq!(times(base_ns - 1_000, last_ns), None, "an earlier one's");
        }
    }
}
