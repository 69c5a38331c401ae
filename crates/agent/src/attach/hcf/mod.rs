// SPDX-License-Identifier: Apache-2.0
//! HCF's queue on a port: the qdisc of `bpf/hcf.bpf.c` as the interface's root.
//!
//! Each port loads an object of its own, and so a kind of qdisc of its own (`hcf_...`): two ports
//! share no state. The port's folder has the pins of its registration (`hcf_link`), configuration
//! (`hcf_config`) and state (`hcf_port`).

use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use penstock_core::Params;
use penstock_core::definitions::{self, Definition};
use penstock_linux::qdisc;
use penstock_scenario::{Buffer, Deployment, Hcf, Period, Queue};
use serde::Serialize;

use crate::host::bpf::pin_over;
use crate::host::{clock, requirements};
use crate::skel::hcf::HcfSkelBuilder;
use crate::skel::hcf::types::{hcf_config, hcf_params, hcf_port};

/// `HCF_ABI` of `bpf/hcf_abi.h`.
const ABI: u32 = 1;

/// Prefix of the kinds of our qdiscs.
const PREFIX: &str = "hcf_";

/// Root qdiscs that the kernel creates by default; any other was configured by a user.
const DEFAULTS: [&str; 6] = ["noqueue", "pfifo_fast", "mq", "fq_codel", "fq", "pfifo"];

/// Burst by which a port with a rate catches up after a late timer: bytes, and least time.
const BURST_BYTES: u64 = 4096;
const BURST_NS: u64 = 50_000;

/// Pins of a port's folder.
const LINK: &str = "hcf_link";
const CONFIG: &str = "hcf_config";
const PORT: &str = "hcf_port";

/// The parameters of HCF.
pub fn definition() -> &'static Definition {
    definitions::of("hcf")
}

/// Attaches HCF to `interface`, replacing an HCF there, whose waiting packets are dropped. If the
/// port has another queue, detaches HCF.
///
/// # Errors
/// One line: the kernel lacks a feature, another tool's qdisc is the root, or the kernel refuses.
pub fn attach(
    folder: &Path,
    interface: &str,
    index: u32,
    port: &Deployment,
    buffer: Buffer,
) -> Result<()> {
    let Queue::Hcf(queue) = &port.queue else {
        return detach(folder, index);
    };
    requirements::bpf_qdisc()?;
    let present = qdisc::root(index)?.kind;
    if !present.starts_with(PREFIX) && !DEFAULTS.contains(&present.as_str()) {
        bail!(
            "{interface} has a qdisc {present}, which HCF would replace; do: tc qdisc del dev {interface} root"
        );
    }
    let config = config(queue, buffer, port.rate.map(|rate| rate.0))?;

    let mut object = MaybeUninit::uninit();
    let mut open = HcfSkelBuilder::default().open(&mut object)?;
    let kind = format!("{PREFIX}{:08x}", clock::monotonic_ns() as u32);
    for (target, byte) in open
        .struct_ops
        .hcf_mut()
        .id
        .iter_mut()
        .zip(kind.bytes().chain([0]))
    {
        *target = byte as _;
    }
    let mut skel = open
        .load()
        .map_err(|error| anyhow!("the kernel refuses HCF's qdisc: {error}"))?;
    // SAFETY: `hcf_config` has no padding: its `reserved` fills it up.
    let bytes = unsafe {
        std::slice::from_raw_parts((&raw const config).cast::<u8>(), size_of::<hcf_config>())
    };
    skel.maps
        .hcf_config
        .update(&0u32.to_ne_bytes(), bytes, MapFlags::ANY)?;
    let link = skel.maps.hcf.attach_struct_ops()?;
    qdisc::replace_root(index, &kind)?;
    pin_over(&skel.maps.hcf_config.as_fd(), &folder.join(CONFIG))?;
    pin_over(&skel.maps.hcf_port.as_fd(), &folder.join(PORT))?;
    pin_over(&link.as_fd(), &folder.join(LINK))
}

/// Detaches HCF from the interface with this index, which gets the kernel's default qdisc; waiting
/// packets are dropped. An interface without HCF is no error, and another tool's qdisc stays.
///
/// # Errors
/// The kernel or the file system refuses.
pub fn detach(folder: &Path, index: u32) -> Result<()> {
    let is_attached = status(folder)?.is_some_and(|status| status.ifindex == index);
    if is_attached && qdisc::root(index)?.kind.starts_with(PREFIX) {
        qdisc::delete_root(index)?;
    }
    for pin in [LINK, CONFIG, PORT] {
        match std::fs::remove_file(folder.join(pin)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(error).with_context(|| folder.join(pin).display().to_string());
            }
            _ => (),
        }
    }
    Ok(())
}

/// Whether `folder` has the pin of a registered qdisc.
pub fn is_pinned(folder: &Path) -> bool {
    folder.join(LINK).exists()
}

/// Whether a qdisc of this kind is one of penstockd's.
pub fn is_ours(kind: &str) -> bool {
    kind.starts_with(PREFIX)
}

/// State of HCF at a port, counted since it was attached.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Status {
    /// Index of its interface.
    pub ifindex: u32,
    /// Waiting in the queue that is high now, and in the low one.
    pub packets: [u32; 2],
    /// The same in bytes.
    pub bytes: [u64; 2],
    /// Priority periods begun.
    pub periods: u32,
    /// Packets put into the high queue.
    pub high_packets: u64,
    /// Packets put into the low queue.
    pub low_packets: u64,
    /// Packets dropped for want of room.
    pub dropped_packets: u64,
    /// Packets dropped for want of memory.
    pub failed_packets: u64,
    /// Packets sent.
    pub sent_packets: u64,
    /// Bytes sent, Ethernet headers included.
    pub sent_bytes: u64,
}

/// State of HCF at the port with its pins in `folder`; None if it is not attached.
///
/// # Errors
/// The pinned map is of another version.
pub fn status(folder: &Path) -> Result<Option<Status>> {
    let pin = folder.join(PORT);
    if !pin.exists() {
        return Ok(None);
    }
    let map = MapHandle::from_pinned_path(&pin)?;
    let value = map
        .lookup(&0u32.to_ne_bytes(), MapFlags::ANY)?
        .unwrap_or_default();
    if value.len() != size_of::<hcf_port>() {
        bail!(
            "{} was written by another version of penstockd; attach again",
            pin.display()
        );
    }
    // SAFETY: plain integers, valid for any bytes; the length is right.
    let port: hcf_port = unsafe { value.as_ptr().cast::<hcf_port>().read_unaligned() };
    if port.attached == 0 {
        return Ok(None);
    }
    let high = usize::from(port.state.high & 1);
    let by_role = |role: usize| role ^ high;
    Ok(Some(Status {
        ifindex: port.ifindex,
        packets: [0, 1].map(|role| port.state.packets[by_role(role)]),
        bytes: [0, 1].map(|role| port.state.bytes[by_role(role)]),
        periods: port.state.epoch,
        high_packets: port.counters.high_packets,
        low_packets: port.counters.low_packets,
        dropped_packets: port.counters.dropped_packets,
        failed_packets: port.counters.failed_packets,
        sent_packets: port.counters.sent_packets,
        sent_bytes: port.counters.sent_bytes,
    }))
}

fn config(queue: &Hcf, buffer: Buffer, rate_bps: Option<u64>) -> Result<hcf_config> {
    let params = queue
        .queues(buffer)
        .map_err(|error| anyhow!("--buffer {buffer}: {error}"))?;
    let ns_per_byte_q16 = match rate_bps {
        Some(bps) => ((8_000_000_000u128 << 16) / u128::from(bps.max(1))) as u64,
        None => 0,
    };
    let every = queue.time("every");
    let every = every.filter(|_| queue.period() != Period::Dynamic);
    Ok(hcf_config {
        abi: ABI,
        seed: 0,
        period_ns: every.map_or(0, |every| every.as_nanos()),
        ns_per_byte_q16,
        burst_ns: (BURST_BYTES.saturating_mul(ns_per_byte_q16) >> 16).max(BURST_NS),
        params: struct_of(&params),
        ..Default::default()
    })
}

/// The struct of `core/hcf.h` in the map.
fn struct_of(params: &Params) -> hcf_params {
    let bytes = params.bytes();
    assert_eq!(bytes.len(), size_of::<hcf_params>());
    // SAFETY: integers, valid for any bytes; the length is checked.
    unsafe { bytes.as_ptr().cast::<hcf_params>().read_unaligned() }
}
