// SPDX-License-Identifier: Apache-2.0
//! Whether the programs of a port can see its queue (`bpf/queue.h`). One that they cannot see reads
//! as empty: FairQ's window only grows, HSCC never clamps, observing tells of no queue.

use anyhow::{Result, bail};
use libbpf_rs::{Btf, btf};

use crate::host::qdisc::{self, Qdisc};

/// Whether the kernel lets programs look at its own structs, as since Linux 6.2.
///
/// # Errors
/// It does not; one line.
pub fn require() -> Result<&'static str> {
    let types = Btf::from_vmlinux();
    let has = types.is_ok_and(|types| {
        types
            .type_by_name::<btf::types::Func<'_>>("bpf_cast_to_kern_ctx")
            .is_some()
    });
    match has {
        true => Ok("programs see the backlog of qdiscs"),
        false => bail!("this kernel shows programs no queue, as Linux 6.2 and newer do"),
    }
}

/// Why the queue of an interface is not seen, with what to do; none if it is.
pub fn missing(interface: &str, index: u32) -> Option<String> {
    let why = match require() {
        Err(error) => error.to_string(),
        Ok(_) => {
            let kind = unseen(&qdisc::all(index).ok()?)?;
            let why = match kind {
                "noqueue" => "it has none (noqueue)",
                _ => "pfifo_fast counts it for each CPU apart",
            };
            format!("{why}; do: tc qdisc replace dev {interface} root fq_codel")
        }
    };
    Some(format!("its queue is not seen and reads as empty: {why}"))
}

/// The kind of the queue by which packets leave, of those that hold or count none at the qdisc:
/// the root, or what stands below one that has a queue for each of the device's.
fn unseen(qdiscs: &[Qdisc]) -> Option<&'static str> {
    let root = qdiscs.iter().find(|qdisc| qdisc.is_root())?;
    let is_many = matches!(root.kind.as_str(), "mq" | "mqprio");
    let is_leaf = |qdisc: &&Qdisc| match is_many {
        true => qdisc.is_below(root),
        false => qdisc.is_root(),
    };
    let mut leaves = qdiscs.iter().filter(is_leaf);
    leaves.find_map(|leaf| {
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
    fn what_counts_its_queue_is_seen() {
        let clsact = qdisc("clsact", 0xffff_0000, 0xffff_fff1);
        for (root, leaf, told) in [
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
                assert_eq!(unseen(&all), told, "{root} {leaf}");
            }
        }
    }

    #[test]
    fn what_is_missing_is_told_with_a_remedy() {
        // The loopback has no queue.
        let told = missing("lo", 1).unwrap();
        assert!(told.starts_with("its queue is not seen"), "{told}");
        assert_eq!(told.lines().count(), 1);
    }
}
