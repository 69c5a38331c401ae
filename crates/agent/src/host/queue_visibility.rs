// SPDX-License-Identifier: Apache-2.0
//! Whether the programs of a port can read its queue (`bpf/queue.h`). One that they cannot read
//! counts as empty: windows are never lowered for it, and reports show no queue.

use std::sync::LazyLock;

use anyhow::{Result, bail};
use libbpf_rs::{Btf, btf};
use penstock_linux::qdisc::{self, Qdisc};

/// How many queues of a device the programs read (`QUEUE_MAX_TX` of `bpf/queue.h`).
pub const READ_QUEUES: u32 = 1024;

/// Requires a kernel that lets programs read its structs (Linux 6.2).
///
/// # Errors
/// It does not, in one line.
pub fn require() -> Result<&'static str> {
    // Reading the kernel's types takes milliseconds, which each attach would need.
    static HAS: LazyLock<bool> = LazyLock::new(|| {
        Btf::from_vmlinux().is_ok_and(|types| {
            types
                .type_by_name::<btf::types::Func<'_>>("bpf_cast_to_kern_ctx")
                .is_some()
        })
    });
    match *HAS {
        true => Ok("programs can read the backlog of qdiscs"),
        false => bail!(
            "this kernel does not let eBPF programs read a qdisc's backlog; that needs Linux 6.2 or newer"
        ),
    }
}

/// Why programs cannot read the queue of an interface, or not all of it, with a remedy; none if they can.
pub fn missing(interface: &str, index: u32) -> Option<String> {
    let why = match require() {
        Err(error) => error.to_string(),
        Ok(_) => {
            let qdiscs = qdisc::all(index).ok()?;
            if let Some(why) = unread(interface, leaves(&qdiscs).count()) {
                return Some(why);
            }
            let kind = hidden_kind(&qdiscs)?;
            let why = match kind {
                "noqueue" => "the interface has none (noqueue)",
                _ => "pfifo_fast counts it separately for each CPU",
            };
            format!("{why}; do: tc qdisc replace dev {interface} root fq_codel")
        }
    };
    Some(format!(
        "the programs cannot read its queue, which counts as empty: {why}"
    ))
}

/// Why not all of an interface's queues are read, with a remedy.
fn unread(interface: &str, queues: usize) -> Option<String> {
    (queues > READ_QUEUES as usize).then(|| {
        format!(
            "the programs read {READ_QUEUES} of its {queues} queues, the others count as empty; do: ethtool -L {interface} combined {READ_QUEUES}"
        )
    })
}

/// The qdiscs by which packets leave: the root, or the children of a root with one queue for each queue of
/// the device.
fn leaves(qdiscs: &[Qdisc]) -> impl Iterator<Item = &Qdisc> {
    let root = qdiscs.iter().find(|qdisc| qdisc.is_root());
    let many = root.filter(|root| matches!(root.kind.as_str(), "mq" | "mqprio"));
    qdiscs.iter().filter(move |qdisc| match many {
        Some(root) => qdisc.is_below(root),
        None => qdisc.is_root(),
    })
}

/// The kind of one by which packets leave, if it holds no queue or does not count it in its own statistics.
fn hidden_kind(qdiscs: &[Qdisc]) -> Option<&'static str> {
    leaves(qdiscs).find_map(|leaf| {
        ["noqueue", "pfifo_fast"]
            .into_iter()
            .find(|kind| leaf.kind == *kind)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn qdisc(kind: &str, handle: u32, parent: u32) -> Qdisc {
        Qdisc {
            kind: kind.to_owned(),
            handle,
            parent,
            ..Qdisc::default()
        }
    }

    #[test]
    fn a_qdisc_that_counts_its_queue_is_readable() {
        let clsact = qdisc("clsact", 0xffff_0000, 0xffff_fff1);
        for (root, leaf, hidden) in [
            ("tbf", "pfifo_fast", None),
            ("fq_codel", "", None),
            ("noqueue", "", Some("noqueue")),
            ("pfifo_fast", "", Some("pfifo_fast")),
            ("mq", "fq_codel", None),
            ("mq", "pfifo_fast", Some("pfifo_fast")),
        ] {
            for handle in [0, 0x8001_0000] {
                let all = [
                    qdisc(root, handle, u32::MAX),
                    qdisc(leaf, 0, handle | 1),
                    clsact.clone(),
                ];
                assert_eq!(hidden_kind(&all), hidden, "{root} {leaf}");
            }
        }
    }

    #[test]
    fn a_hidden_queue_is_reported_with_a_remedy() {
        // The loopback has no queue.
        let reason = missing("lo", 1).unwrap();
        assert!(reason.starts_with("the programs cannot read"), "{reason}");
        assert!(reason.contains("; do: tc qdisc replace dev lo"), "{reason}");
        assert_eq!(reason.lines().count(), 1);
    }
}
