// SPDX-License-Identifier: Apache-2.0
//! Token buckets, as the standard bandwidth plugin puts them: on the host's end of a pod's veth for what
//! the pod receives, on a device behind it for what the pod sends.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;

use penstock_linux::link::{self, Change, Link};
use penstock_linux::netns::NetNs;
use penstock_linux::{filter, qdisc};

use crate::config::{Attachment, Limit};
use crate::error::{Code, Error, Result};

/// Priority of the filter that takes what a pod sends to its token bucket: behind those of others, and
/// behind penstockd's, which read the ACKs.
const PRIORITY: u16 = 0xc000;

/// Bytes of a frame's header.
const ETHERNET: u32 = 14;

/// The host's end of the veth whose other end is `interface` in a pod.
///
/// # Errors
/// There is no such namespace or interface, or it is no veth with an end here.
pub fn host_end(netns: &Path, interface: &str) -> Result<Link> {
    let inside = NetNs::open(netns)?.run(|| link::get(interface))??;
    let peer = inside.peer.filter(|_| inside.has_ethernet_header);
    let ends = link::all()?;
    // The index alone could be another's: the ends name each other.
    let end = ends
        .into_iter()
        .find(|link| Some(link.index) == peer && link.peer == Some(inside.index));
    end.ok_or_else(|| {
        let msg = format!(
            "{interface} of {} has no veth peer on the host",
            netns.display()
        );
        Error::new(Code::Config, msg).with("only pods behind a veth can be limited")
    })
}

/// Refuses a burst of less than one packet: a token bucket would drop every full packet.
///
/// # Errors
/// It is less.
pub fn require_burst(interface: &Link, direction: &str, limit: &Limit) -> Result<()> {
    let least = interface.mtu.saturating_add(ETHERNET);
    if limit.burst_bytes >= least {
        return Ok(());
    }
    let (burst, name) = (limit.burst_bytes, &interface.name);
    let msg = format!("{direction}Burst: {burst} bytes are less than a packet of {name}");
    let least_bits = u64::from(least) * 8;
    Err(Error::new(Code::Config, msg).with(format!(
        "it must be at least the MTU and {ETHERNET} bytes: {least_bits} bits"
    )))
}

/// The token bucket of a limit. As in the standard plugin, the burst has room apart from the queue.
fn bucket(limit: &Limit) -> qdisc::Tbf {
    qdisc::Tbf {
        rate_bps: limit.rate_bps,
        burst_bytes: limit.burst_bytes,
        limit_bytes: limit.buffer_bytes().saturating_add(limit.burst_bytes),
    }
}

/// Limits what leaves by an interface; a limit that is there is replaced.
///
/// # Errors
/// The kernel refuses.
pub fn limit_egress(interface: &Link, limit: &Limit) -> Result<()> {
    // A tbf in place of a tbf would keep its tokens, but cannot shrink below its backlog.
    if is_limited(interface.index, limit)? {
        return Ok(());
    }
    Ok(bucket(limit).put_on(interface.index)?)
}

/// Whether an interface has the limit.
///
/// # Errors
/// The kernel gives no answer.
pub fn is_limited(index: u32, limit: &Limit) -> Result<bool> {
    let wanted = bucket(limit);
    let root = qdisc::all(index)?.into_iter().find(qdisc::Qdisc::is_root);
    Ok(root.is_some_and(|root| {
        root.kind == "tbf"
            && root.rate_bps == Some(wanted.rate_bps / 8 * 8)
            && root.limit == Some(qdisc::Limit::Bytes(wanted.limit_bytes))
    }))
}

/// The device of an attachment.
pub fn ifb_name(network: &str, attachment: &Attachment) -> String {
    let mut hasher = DefaultHasher::new();
    (network, &attachment.container, &attachment.interface).hash(&mut hasher);
    format!("pnk{:012x}", hasher.finish() >> 16)
}

/// Limits what comes in by an interface, by a device to which it is redirected.
///
/// # Errors
/// The kernel refuses, as where it has no ifb.
pub fn limit_ingress(interface: &Link, ifb: &str, limit: &Limit) -> Result<()> {
    if link::find(ifb)?.is_none() {
        link::create_ifb(ifb, interface.mtu)?;
        link::change(ifb, &[Change::Up])?;
    }
    let device = link::get(ifb)?;
    limit_egress(&device, limit)?;
    match filter::redirect(interface.index, device.index, PRIORITY) {
        // Of an ADD that was repeated: EEXIST, and EINVAL where u32's table is there.
        Err(error) if is_there(&error) && is_redirected(interface.index)? => Ok(()),
        redirected => Ok(redirected?),
    }
}

/// Whether the plugin's filter takes away what comes in by an interface. Those of others do not count.
///
/// # Errors
/// The kernel gives no answer.
pub fn is_redirected(index: u32) -> Result<bool> {
    let filters = filter::all(index, filter::Hook::Ingress)?;
    Ok(filters
        .iter()
        .any(|filter| filter.priority == PRIORITY && filter.program.is_none()))
}

fn is_there(error: &penstock_linux::Error) -> bool {
    const EEXIST: i32 = 17;
    error.errno() == Some(EEXIST)
}

/// Deletes a device, if it is there; its filter goes with it.
///
/// # Errors
/// The kernel refuses.
pub fn delete(ifb: &str) -> Result<()> {
    match link::find(ifb)? {
        Some(_) => Ok(link::delete(ifb)?),
        None => Ok(()),
    }
}
