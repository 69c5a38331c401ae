// SPDX-License-Identifier: Apache-2.0
//! What a port takes over from programs of another version: what it knew of flows, and their places on the
//! hooks, where the new programs replace them without a gap.

use std::ops::Range;

use anyhow::{Context, Result};
use libbpf_rs::{MapCore, MapFlags};
use penstock_core::tcp_rewrite::SCALE_UNKNOWN;

use super::clsact;
use super::hook::Hook;
use super::versions::Other;
use crate::host::clock::monotonic_ns;
use crate::port::layout::Layout;
use crate::port::maps::open_map;
use crate::port::pins::{SHARED, link_pin};
use crate::port::plain::bytes_of;
use crate::port::{Port, Side, slots};
use crate::skel::port::types::{flow_key6, flow_known};

/// Flows of one call.
const BATCH: u32 = 4096;

/// Copies what is known of the port's flows into the map `known`; returns of how many.
///
/// # Errors
/// The maps cannot be read, or lack a field.
pub fn flows(other: &Other, port: &Port) -> Result<u32> {
    let shared = other.folder.with_file_name(SHARED);
    let layout = Layout::open(&shared)?;
    let id = slots::mark_of(&other.folder).context("the port has no number")?;
    let known = port.map("known")?;
    let mut copied = 0;
    for (table, key) in [("flows4", "flow_key4"), ("flows6", "flow_key6")] {
        let fields = Fields::of(&layout, key)?;
        let table = open_map(&shared.join(table))?;
        for (key, value) in table.lookup_batch(BATCH, MapFlags::ANY, MapFlags::ANY)? {
            let (Some(key), Some(flow)) = (fields.key(&key, id, port.id), fields.known(&value))
            else {
                continue;
            };
            known.update(bytes_of(&key), bytes_of(&flow), MapFlags::ANY)?;
            copied += 1;
        }
    }
    Ok(copied)
}

/// From and until when the port is paused, as in its configuration; zeros if it is not.
///
/// # Errors
/// The map cannot be read, or lacks a field.
pub fn pause(other: &Other) -> Result<(u64, u64)> {
    let shared = other.folder.with_file_name(SHARED);
    let layout = Layout::open(&shared)?;
    let id = slots::mark_of(&other.folder).context("the port has no number")?;
    let slot = slots::slot_of(id).to_ne_bytes();
    let config = open_map(&shared.join("config"))?.lookup(&slot, MapFlags::ANY)?;
    let config = config.unwrap_or_default();
    let number = |name: &str| {
        let field = layout.field("port_config", &[name])?;
        let number = array(&config, &field).map(u64::from_ne_bytes);
        number.with_context(|| format!("their {name} is no u64"))
    };
    let (pause_ns, resume_ns) = (number("pause_ns")?, number("resume_ns")?);
    Ok(match resume_ns > monotonic_ns() {
        true => (pause_ns, resume_ns),
        false => (0, 0),
    })
}

/// Moves what keeps programs on a hook to the new port's folder, so that its programs replace these.
///
/// # Errors
/// The file system refuses.
pub fn hook(other: &Other, port: &Port, hook: Hook) -> Result<()> {
    let pins = match hook {
        Hook::Tcx => Side::BOTH
            .map(|side| link_pin(&other.folder, side))
            .to_vec(),
        Hook::Clsact => vec![clsact::marker(&other.folder)],
    };
    for pin in pins {
        if pin.exists() {
            let to = port.folder.join(pin.file_name().unwrap_or_default());
            std::fs::rename(&pin, &to).with_context(|| pin.display().to_string())?;
        }
    }
    Ok(())
}

/// Where the fields of a table's keys and values are.
struct Fields {
    source: Range<usize>,
    destination: Range<usize>,
    source_port: Range<usize>,
    destination_port: Range<usize>,
    network: Range<usize>,
    port: Range<usize>,
    last_ns: Range<usize>,
    mss: Range<usize>,
    scale: Range<usize>,
    unified: Range<usize>,
}

impl Fields {
    fn of(layout: &Layout, key: &str) -> Result<Fields> {
        let key = |name: &str| layout.field(key, &[name]);
        let entry = |name: &str| layout.field("port_flow", &["entry", name]);
        let fields = Fields {
            source: key("source")?,
            destination: key("destination")?,
            source_port: key("source_port")?,
            destination_port: key("destination_port")?,
            network: key("network")?,
            port: key("port")?,
            last_ns: entry("last_ns")?,
            mss: entry("mss")?,
            scale: entry("scale")?,
            unified: layout.field("port_flow", &["unified"])?,
        };
        Ok(fields)
    }

    /// The key in the map `known` of a flow of the port `from`, now of the port `to`.
    fn key(&self, bytes: &[u8], from: u32, to: u32) -> Option<flow_key6> {
        let key = flow_key6 {
            source: address(bytes.get(self.source.clone())?)?,
            destination: address(bytes.get(self.destination.clone())?)?,
            source_port: u16::from_ne_bytes(array(bytes, &self.source_port)?),
            destination_port: u16::from_ne_bytes(array(bytes, &self.destination_port)?),
            network: u32::from_ne_bytes(array(bytes, &self.network)?),
            port: to,
        };
        (u32::from_ne_bytes(array(bytes, &self.port)?) == from).then_some(key)
    }

    /// None: nothing is known of the flow.
    fn known(&self, bytes: &[u8]) -> Option<flow_known> {
        let known = flow_known {
            seen_ns: u64::from_ne_bytes(array(bytes, &self.last_ns)?),
            mss: u16::from_ne_bytes(array(bytes, &self.mss)?),
            scale: array(bytes, &self.scale)?,
            unified: u8::from_ne_bytes(array(bytes, &self.unified)?),
            ..Default::default()
        };
        // One without a time begins just now.
        let has_scale = |scale: &u8| u32::from(*scale) != SCALE_UNKNOWN;
        let is_known = known.seen_ns != 0 && known.scale.iter().any(has_scale);
        is_known.then_some(known)
    }
}

fn array<const N: usize>(bytes: &[u8], range: &Range<usize>) -> Option<[u8; N]> {
    bytes.get(range.clone())?.try_into().ok()
}

/// As in the map `known`: IPv4 mapped to IPv6.
fn address(bytes: &[u8]) -> Option<[u32; 4]> {
    let mut all = [0; 16];
    match bytes.len() {
        16 => all.copy_from_slice(bytes),
        4 => {
            all[10..12].fill(0xff);
            all[12..].copy_from_slice(bytes);
        }
        _ => return None,
    }
    let (words, _) = all.as_chunks::<4>();
    let mut address = [0; 4];
    for (word, bytes) in address.iter_mut().zip(words) {
        *word = u32::from_ne_bytes(*bytes);
    }
    Some(address)
}
