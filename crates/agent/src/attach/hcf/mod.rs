// SPDX-License-Identifier: Apache-2.0
//! HCF's queue on a port: the qdisc of `bpf/hcf.bpf.c` as the interface's root.
//!
//! Each port loads an object of its own, and so a kind of qdisc of its own (`hcf_...`): two ports
//! share no state. The port's folder has the pins of its registration (`hcf_link`), configuration
//! (`hcf_config`) and state (`hcf_port`).

use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use penstock_core::Params;
use penstock_core::definitions::{self, Definition};
use penstock_linux::qdisc::{self, Qdisc};
use penstock_scenario::units::Rate;
use penstock_scenario::{Buffer, Deployment, Hcf, Period, Queue};
use serde::Serialize;

use crate::host::bpf::pin_over;
use crate::host::{clock, requirements};
use crate::port::config::changed;
use crate::port::plain::{bytes_of, bytes_of_mut, of_bytes};
use crate::skel::hcf::HcfSkelBuilder;
use crate::skel::hcf::types::{hcf_abi, hcf_config, hcf_params, hcf_port};

/// Prefix of the kinds of our qdiscs.
const PREFIX: &str = "hcf_";

/// A folder among the pins whose name ends in the number of the build that attached the qdisc.
const BUILD: &str = "hcf_build_";

/// A folder among the pins from before the qdisc is replaced until it is pinned.
const BEGUN: &str = "hcf_build_begun";

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

/// Checks that HCF may become the root qdisc of `interface`, if `port` has it.
///
/// # Errors
/// One line: the kernel lacks a feature, or HCF would replace what a user configured.
pub fn check(interface: &str, index: u32, port: &Deployment, may_replace: bool) -> Result<()> {
    match port.queue {
        Queue::Hcf(_) if may_replace => requirements::bpf_qdisc().map(drop),
        Queue::Hcf(_) => {
            requirements::bpf_qdisc()?;
            check_root(interface, &qdisc::root(index)?)
        }
        _ => Ok(()),
    }
}

/// The kernel gives handles to the qdiscs that users configure, and none to its own.
fn check_root(interface: &str, root: &Qdisc) -> Result<()> {
    let kind = &root.kind;
    match kind.as_str() {
        kind if is_ours(kind) => Ok(()),
        "mq" | "mqprio" => bail!(
            "{interface} has a qdisc {kind}, with a queue for each of its transmit queues, which HCF would replace by one for all; to do so: --replace-qdisc"
        ),
        _ if root.handle != 0 => bail!(
            "{interface} has a qdisc {kind}, which HCF would replace; do: tc qdisc del dev {interface} root, or give --replace-qdisc"
        ),
        _ => Ok(()),
    }
}

/// Attaches HCF to the interface with this index, replacing an HCF there, whose waiting packets are
/// dropped; an HCF of the same build with the same configuration stays. If the port has another
/// queue, detaches HCF.
///
/// # Errors
/// The kernel refuses.
pub fn attach(folder: &Path, index: u32, port: &Deployment, buffer: Buffer) -> Result<()> {
    let Queue::Hcf(queue) = &port.queue else {
        return detach(folder, index);
    };
    let config = config(queue, buffer, port.rate)?;
    let bytes = bytes_of(&config);
    if is_same(folder, index, bytes)? {
        return Ok(());
    }

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
    skel.maps
        .hcf_config
        .update(&0u32.to_ne_bytes(), bytes, MapFlags::ANY)?;
    let link = skel.maps.hcf.attach_struct_ops()?;
    let begun = folder.join(BEGUN);
    std::fs::create_dir_all(&begun).with_context(|| begun.display().to_string())?;
    qdisc::replace_root(index, &kind)?;
    pin_over(&skel.maps.hcf_config.as_fd(), &folder.join(CONFIG))?;
    pin_over(&skel.maps.hcf_port.as_fd(), &folder.join(PORT))?;
    pin_over(&link.as_fd(), &folder.join(LINK))?;
    remove_build(folder)?;
    std::fs::create_dir(build_mark(folder)).with_context(|| folder.display().to_string())
}

/// Whether the root qdisc was attached by this build with this configuration.
fn is_same(folder: &Path, index: u32, config: &[u8]) -> Result<bool> {
    if !build_mark(folder).is_dir() || !is_ours(&qdisc::root(index)?.kind) {
        return Ok(false);
    }
    let is_here = status(folder)?.is_some_and(|status| status.ifindex == index);
    let running = MapHandle::from_pinned_path(folder.join(CONFIG))?;
    let running = running.lookup(&0u32.to_ne_bytes(), MapFlags::ANY)?;
    Ok(is_here && running.as_deref() == Some(config))
}

/// Marks the build: the number of the compiled qdisc.
fn build_mark(folder: &Path) -> PathBuf {
    folder.join(format!("{BUILD}{}", env!("PENSTOCK_HCF_BUILD")))
}

fn remove_build(folder: &Path) -> Result<()> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let marks = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(BUILD));
    for mark in marks {
        std::fs::remove_dir(mark.path()).with_context(|| mark.path().display().to_string())?;
    }
    Ok(())
}

/// Detaches HCF from the interface with this index, which gets the kernel's default qdisc; waiting
/// packets are dropped. An interface without HCF is no error, and another tool's qdisc stays.
///
/// # Errors
/// The kernel or the file system refuses.
pub fn detach(folder: &Path, index: u32) -> Result<()> {
    let is_attached = status(folder)?.is_some_and(|status| status.ifindex == index);
    // A process that was killed may have pinned nothing yet.
    let has_begun = folder.join(BEGUN).is_dir();
    if (is_attached || has_begun) && is_ours(&qdisc::root(index)?.kind) {
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
    remove_build(folder)
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
    /// Their bytes, Ethernet headers included.
    pub dropped_bytes: u64,
    /// Packets dropped for want of memory.
    pub failed_packets: u64,
    /// Packets sent.
    pub sent_packets: u64,
    /// Bytes sent, Ethernet headers included.
    pub sent_bytes: u64,
    /// Times that packets had to wait for the port's rate.
    pub waits: u64,
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
    let Some(port) = of_bytes::<hcf_port>(&value) else {
        bail!(
            "{} was written by another version of penstockd; attach again",
            pin.display()
        );
    };
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
        dropped_bytes: port.counters.dropped_bytes,
        failed_packets: port.counters.failed_packets,
        sent_packets: port.counters.sent_packets,
        sent_bytes: port.counters.sent_bytes,
        waits: port.counters.waits,
    }))
}

/// The configuration of a queue of this size, at a port that is limited to a rate or not.
///
/// # Errors
/// The buffer is too small.
pub fn config(queue: &Hcf, buffer: Buffer, rate: Option<Rate>) -> Result<hcf_config> {
    let params = queue
        .queues(buffer)
        .map_err(|error| anyhow!("a buffer of {buffer}: {error}"))?;
    let ns_per_byte_q16 = match rate {
        Some(Rate(bps)) => ((8_000_000_000u128 << 16) / u128::from(bps.max(1))) as u64,
        None => 0,
    };
    let every = queue.time("every");
    let every = every.filter(|_| queue.period() != Period::Dynamic);
    Ok(hcf_config {
        abi: hcf_abi::HCF_ABI,
        seed: 0,
        period_ns: every.map_or(0, |every| every.as_nanos()),
        ns_per_byte_q16,
        burst_ns: (BURST_BYTES.saturating_mul(ns_per_byte_q16) >> 16).max(BURST_NS),
        params: struct_of(&params),
    })
}

/// The settings in which two configurations differ, by their names in the daemon's.
pub fn differences(one: &hcf_config, other: &hcf_config) -> Vec<String> {
    let [params, others] =
        [one, other].map(|config| Params::from_bytes(definition(), bytes_of(&config.params)));
    let mut names = changed(&params, &others, "queue");
    if one.ns_per_byte_q16 != other.ns_per_byte_q16 {
        names.push("rate".to_owned());
    }
    names
}

/// The struct of `core/hcf.h` in the map.
fn struct_of(params: &Params) -> hcf_params {
    let mut plain = hcf_params::default();
    bytes_of_mut(&mut plain).copy_from_slice(params.bytes());
    plain
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_scenario::deployment;

    #[test]
    fn a_changed_rate_or_parameter_is_named() {
        let config = |more: &[(&str, &str)]| {
            let pairs = [&[("scheme", "hcf")], more].concat();
            let pairs = pairs
                .iter()
                .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
            let port = deployment(&pairs.collect::<Vec<_>>()).unwrap();
            let Queue::Hcf(queue) = &port.queue else {
                panic!("hcf is a queue");
            };
            config(queue, Buffer::Bytes(128_000), port.rate).unwrap()
        };
        let plain = config(&[]);
        assert!(differences(&plain, &plain).is_empty());
        assert_eq!(
            differences(&plain, &config(&[("rate", "1 Gb/s")])),
            ["rate"]
        );
        assert_eq!(
            differences(&plain, &config(&[("queue.bins", "64")])),
            ["queue.bins"]
        );
    }

    #[test]
    fn what_a_user_configured_is_not_replaced() {
        let root = |kind: &str, handle| Qdisc {
            kind: kind.to_owned(),
            handle,
            ..Qdisc::default()
        };
        for kind in ["noqueue", "pfifo_fast", "fq_codel", "fq", "pfifo"] {
            check_root("eth1", &root(kind, 0)).unwrap();
        }
        check_root("eth1", &root("hcf_0123abcd", 0x8001_0000)).unwrap();
        for (kind, handle) in [
            ("fq_codel", 0x8001_0000),
            ("fq", 0x1_0000),
            ("tbf", 0x1_0000),
        ] {
            let refusal = check_root("eth1", &root(kind, handle))
                .unwrap_err()
                .to_string();
            assert!(
                refusal.contains(&format!("qdisc {kind}, which HCF would")),
                "{refusal}"
            );
            assert!(refusal.contains("tc qdisc del dev eth1 root"), "{refusal}");
        }
        for handle in [0, 0x1_0000] {
            let refusal = check_root("eth1", &root("mq", handle))
                .unwrap_err()
                .to_string();
            assert!(refusal.ends_with("to do so: --replace-qdisc"), "{refusal}");
        }
    }
}
