// SPDX-License-Identifier: Apache-2.0
//! The network interfaces of this network namespace.

use anyhow::{Result, anyhow, bail};
use penstock_linux::link::{self, Link};
use penstock_linux::qdisc::{self, Limit, Qdisc};
use penstock_scenario::{Buffer, nearest};

/// The index of the interface `name`.
///
/// # Errors
/// There is no such interface, or it has another name; the message has that, or the nearest.
pub fn index(name: &str) -> Result<u32> {
    match link::find(name)? {
        Some(link) if link.name == name => return Ok(link.index),
        // Pins, locks and the daemon's configuration go by the interface's own name.
        Some(link) => bail!(
            "{name} is an alternative name of {}; give that one",
            link.name
        ),
        None => (),
    }
    let links = link::all()?;
    let names: Vec<&str> = links.iter().map(|link| link.name.as_str()).collect();
    let hint = match nearest(name, &names) {
        Some(near) => format!("did you mean {near}?"),
        None => format!("it has {}", names.join(", ")),
    };
    Err(anyhow!(
        "no interface {name} in this network namespace; {hint}"
    ))
}

/// The index of the interface `name`, if it exists now. An alternative name is none.
pub fn find(name: &str) -> Option<u32> {
    let link = link::find(name).ok().flatten();
    link.filter(|link| link.name == name).map(|link| link.index)
}

/// Size of the interface's queue: as its qdisc reports, else the length of its transmit queue; of kinds
/// that count packets, apart from pfifo, the lesser of the two, as most drop long before their limit.
///
/// # Errors
/// Neither is known.
pub fn buffer(name: &str, index: u32) -> Result<Buffer> {
    let qdisc = qdisc::root(index)?;
    buffer_by(&qdisc, &link::get(name)?).ok_or_else(|| {
        anyhow!(
            "the qdisc of {name} ({}) does not report its size; give it: --buffer \"128 kB\", or in the daemon's configuration: buffer = \"128 kB\"",
            qdisc.kind
        )
    })
}

/// The same by the interface and its root qdisc as they were read; none if neither shows it.
pub fn buffer_by(qdisc: &Qdisc, link: &Link) -> Option<Buffer> {
    let length = link.tx_queue_len;
    match (qdisc.limit, length) {
        (Some(Limit::Bytes(bytes)), _) if bytes > 0 => Some(Buffer::Bytes(bytes.into())),
        (Some(Limit::Packets(packets)), 1..) if packets > 0 && qdisc.kind != "pfifo" => {
            Some(Buffer::Packets(packets.min(length)))
        }
        (Some(Limit::Packets(packets)), _) if packets > 0 => Some(Buffer::Packets(packets)),
        (_, 1..) if qdisc.kind != "noqueue" => Some(Buffer::Packets(length)),
        _ => None,
    }
}

/// Whether packets have no Ethernet header, as those of tun or wireguard.
pub fn is_bare(name: &str) -> bool {
    let link = link::find(name).ok().flatten();
    link.is_some_and(|link| !link.has_ethernet_header)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_is_as_large_as_its_qdisc_or_else_its_interface_reports() {
        let buffer = |kind: &str, limit: Option<Limit>, tx_queue_len: u32| {
            let kind = kind.to_owned();
            let qdisc = Qdisc {
                kind,
                limit,
                ..Qdisc::default()
            };
            let link = Link {
                tx_queue_len,
                ..Link::default()
            };
            buffer_by(&qdisc, &link)
        };
        let packets = |count| Some(Limit::Packets(count));
        let tbf = buffer("tbf", Some(Limit::Bytes(131_072)), 1000);
        assert_eq!(tbf, Some(Buffer::Bytes(131_072)));
        for (kind, limit, length, expected) in [
            ("pfifo", packets(5000), 1000, Some(5000)),
            ("fq_codel", packets(10_240), 1000, Some(1000)),
            ("fq_codel", packets(100), 1000, Some(100)),
            ("fq_codel", packets(10_240), 0, Some(10_240)),
            ("htb", None, 1000, Some(1000)),
            ("htb", None, 0, None),
            ("noqueue", None, 1000, None),
        ] {
            let expected = expected.map(Buffer::Packets);
            assert_eq!(buffer(kind, limit, length), expected, "{kind} {length}");
        }
    }
}
