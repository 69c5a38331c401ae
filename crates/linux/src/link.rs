// SPDX-License-Identifier: Apache-2.0
//! Network interfaces of the calling thread's network namespace.

use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Once;

use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL, ParseableParametrized};
use netlink_packet_route::address::{AddressAttribute, AddressMessage};
use netlink_packet_route::link::{
    InfoData, InfoKind, InfoVeth, LinkAttribute, LinkFlags, LinkHeader, LinkInfo, LinkLayerType,
    LinkMessage,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};

use crate::netlink::{Rtnetlink, attributes};
use crate::netns::NetNs;
use crate::{Error, Result, note};

/// Longest name of an interface, bytes (`IFNAMSIZ` without its zero).
pub const LONGEST_NAME: usize = 15;

/// Length of `struct ifinfomsg`, bytes.
const IFINFOMSG: usize = 16;

/// A network interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Link {
    /// Its number, unique within its network namespace.
    pub index: u32,
    /// Its name.
    pub name: String,
    /// Whether packets begin with an Ethernet header, unlike those of tun or wireguard.
    pub has_ethernet_header: bool,
    /// Whether it is administratively up.
    pub is_up: bool,
    /// Packets of its transmit queue, which pfifo_fast takes for its limit.
    pub tx_queue_len: u32,
    /// Longest packet, bytes, its Ethernet header apart.
    pub mtu: u32,
    /// Index of the interface at the other end of a veth, in that one's network namespace.
    pub peer: Option<u32>,
    /// Packets that have left by it.
    pub sent_packets: u64,
    /// Packets that have come in by it.
    pub received_packets: u64,
}

/// The index of the interface `name`; none if it does not exist.
///
/// # Errors
/// The kernel gives no answer.
pub fn index(name: &str) -> Result<Option<u32>> {
    Ok(find(name)?.map(|link| link.index))
}

/// Whether an interface can have this name (the kernel's `dev_valid_name`).
pub fn is_name(name: &str) -> bool {
    // The kernel's blanks are those of Latin-1, also where they are a part of a character of UTF-8.
    let is_allowed = |byte| !matches!(byte, 0 | 9..=13 | b' ' | b'/' | b':' | 0xa0);
    (1..=LONGEST_NAME).contains(&name.len())
        && !matches!(name, "." | "..")
        && name.bytes().all(is_allowed)
}

/// The interface `name`, maybe an alternative one; none if it does not exist.
///
/// # Errors
/// The kernel gives no answer.
pub fn find(name: &str) -> Result<Option<Link>> {
    if !is_name(name) {
        return Ok(None);
    }
    let mut message = LinkMessage::default();
    message
        .attributes
        .push(LinkAttribute::IfName(name.to_owned()));
    let mut link = None;
    let answer = Rtnetlink::open()?.query(RouteNetlinkMessage::GetLink(message), 0, |reply| {
        link = link.take().or(decode(reply));
    });
    match answer {
        Ok(()) => Ok(link),
        Err(failure) if failure.errno() == Some(libc::ENODEV) => Ok(None),
        Err(failure) => Err(failure.of(format!("look up interface {name}"))),
    }
}

/// The interface `name`.
///
/// # Errors
/// [`Error::NoInterface`] if it does not exist.
pub fn get(name: &str) -> Result<Link> {
    match find(name)? {
        Some(link) => Ok(link),
        None => Err(Error::NoInterface {
            name: name.to_owned(),
            present: all()?.into_iter().map(|link| link.name).collect(),
        }),
    }
}

/// The name of the interface with this index, for messages; `interface 7` if it is gone.
pub(crate) fn label(index: u32) -> String {
    let known = all().unwrap_or_default();
    let link = known.into_iter().find(|link| link.index == index);
    link.map_or_else(|| format!("interface {index}"), |link| link.name)
}

/// All interfaces, by index.
///
/// # Errors
/// The kernel gives no answer, or interfaces change during each attempt.
pub fn all() -> Result<Vec<Link>> {
    let message = RouteNetlinkMessage::GetLink(LinkMessage::default());
    let mut links = Rtnetlink::open()?
        .dump(message, decode)
        .map_err(|failure| failure.of("list the interfaces"))?;
    links.sort_by_key(|link| link.index);
    Ok(links)
}

/// A note on interfaces that are left out.
static UNNAMED: Once = Once::new();

/// An interface from the payload of an RTM_NEWLINK message; none if its name is not UTF-8.
fn decode(payload: &[u8]) -> Option<Link> {
    let header = LinkHeader::parse(payload).ok()?;
    let mut link = Link {
        index: header.index,
        has_ethernet_header: matches!(
            header.link_layer_type,
            LinkLayerType::Ether | LinkLayerType::Loopback
        ),
        is_up: header.flags.contains(LinkFlags::Up),
        ..Link::default()
    };
    for attribute in attributes(payload.get(IFINFOMSG..)?) {
        match LinkAttribute::parse_with_param(&attribute, header.interface_family) {
            Ok(LinkAttribute::IfName(name)) => link.name = name,
            Ok(LinkAttribute::TxQueueLen(packets)) => link.tx_queue_len = packets,
            Ok(LinkAttribute::Mtu(bytes)) => link.mtu = bytes,
            Ok(LinkAttribute::Link(index)) => link.peer = Some(index),
            Ok(LinkAttribute::Stats64(stats)) => {
                link.sent_packets = stats.tx_packets;
                link.received_packets = stats.rx_packets;
            }
            // Not asked for, or of a form that the library does not know.
            _ => (),
        }
    }
    // A name that is no UTF-8 cannot be written in any option or file of ours.
    if link.name.is_empty() {
        UNNAMED.call_once(|| {
            note!(
                "interfaces whose names are not UTF-8 are left out, such as number {}",
                link.index
            );
        });
        return None;
    }
    Some(link)
}

/// Creates a pair of virtual Ethernet interfaces that are the ends of one cable: `name` here and
/// `peer` in `peer_netns`, each with so many queues in both directions. Both are down.
///
/// # Errors
/// One of the names is taken or too long, or the caller lacks CAP_NET_ADMIN.
pub fn create_veth(name: &str, peer: &str, peer_netns: &NetNs, queues: u32) -> Result<()> {
    let queues = [
        LinkAttribute::NumTxQueues(queues),
        LinkAttribute::NumRxQueues(queues),
    ];
    let mut far = LinkMessage::default();
    far.attributes = vec![
        LinkAttribute::IfName(peer.to_owned()),
        LinkAttribute::NetNsFd(peer_netns.as_fd().as_raw_fd()),
    ];
    far.attributes.extend(queues.clone());
    create(
        name,
        &queues,
        vec![
            LinkInfo::Kind(InfoKind::Veth),
            LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(far))),
        ],
    )
}

/// Creates an Ethernet bridge, which is down.
///
/// # Errors
/// The name is taken or too long, or the caller lacks CAP_NET_ADMIN.
pub fn create_bridge(name: &str) -> Result<()> {
    create(name, &[], vec![LinkInfo::Kind(InfoKind::Bridge)])
}

/// Creates an intermediate functional block with this longest packet, which is down: the queue of packets
/// that filters send there.
///
/// # Errors
/// The name is taken or too long, or the kernel has no such device.
pub fn create_ifb(name: &str, mtu: u32) -> Result<()> {
    create(
        name,
        &[LinkAttribute::Mtu(mtu)],
        vec![LinkInfo::Kind(InfoKind::Ifb)],
    )
}

pub(crate) fn create(name: &str, more: &[LinkAttribute], info: Vec<LinkInfo>) -> Result<()> {
    let mut message = LinkMessage::default();
    message.attributes = vec![
        LinkAttribute::IfName(name.to_owned()),
        LinkAttribute::LinkInfo(info),
    ];
    message.attributes.extend_from_slice(more);
    Rtnetlink::open()?
        .change(
            RouteNetlinkMessage::NewLink(message),
            NLM_F_CREATE | NLM_F_EXCL,
        )
        .map_err(|failure| failure.of(format!("create interface {name}")))
}

/// A change of an interface.
#[derive(Clone, Copy, Debug)]
pub enum Change<'a> {
    /// Up, administratively.
    Up,
    /// Down.
    Down,
    /// Another name. The interface must be down on kernels before Linux 6.2.
    Name(&'a str),
    /// A port of the bridge of this name.
    Bridge(&'a str),
    /// In another network namespace.
    NetNs(&'a NetNs),
    /// Most segments that the kernel puts into one packet before the interface.
    GsoMaxSegments(u32),
    /// Packets of its transmit queue.
    TxQueueLen(u32),
}

/// Changes the interface `name` by one request. Of a request that is refused, the kernel may have made
/// the earlier changes.
///
/// # Errors
/// There is no such interface, or the kernel refuses a change.
pub fn change(name: &str, changes: &[Change<'_>]) -> Result<()> {
    let mut message = LinkMessage::default();
    message.header.index = get(name)?.index;
    for change in changes {
        match *change {
            Change::Up | Change::Down => {
                let is_up = matches!(change, Change::Up);
                message.header.flags.set(LinkFlags::Up, is_up);
                message.header.change_mask |= LinkFlags::Up;
            }
            Change::Name(new) => message
                .attributes
                .push(LinkAttribute::IfName(new.to_owned())),
            Change::Bridge(bridge) => {
                let bridge = get(bridge)?.index;
                message.attributes.push(LinkAttribute::Controller(bridge));
            }
            Change::NetNs(netns) => {
                let netns = netns.as_fd().as_raw_fd();
                message.attributes.push(LinkAttribute::NetNsFd(netns));
            }
            Change::GsoMaxSegments(most) => {
                message.attributes.push(LinkAttribute::GsoMaxSegs(most));
            }
            Change::TxQueueLen(packets) => {
                message.attributes.push(LinkAttribute::TxQueueLen(packets));
            }
        }
    }
    // RTM_SETLINK would ignore the segments.
    Rtnetlink::open()?
        .change(RouteNetlinkMessage::NewLink(message), 0)
        .map_err(|failure| failure.of(format!("change interface {name} ({changes:?})")))
}

/// Deletes the interface `name`, and the other end of a veth with it.
///
/// # Errors
/// There is no such interface, or it is not a virtual one.
pub fn delete(name: &str) -> Result<()> {
    let mut message = LinkMessage::default();
    message.header.index = get(name)?.index;
    Rtnetlink::open()?
        .change(RouteNetlinkMessage::DelLink(message), 0)
        .map_err(|failure| failure.of(format!("delete interface {name}")))
}

/// Gives the interface `name` an address whose first `prefix` bits are those of its subnet.
///
/// # Errors
/// There is no such interface, or it has the address already.
pub fn add_address(name: &str, address: IpAddr, prefix: u8) -> Result<()> {
    let mut message = AddressMessage::default();
    message.header.index = get(name)?.index;
    message.header.family = family(&address);
    message.header.prefix_len = prefix;
    message.attributes = vec![
        AddressAttribute::Local(address),
        AddressAttribute::Address(address),
    ];
    Rtnetlink::open()?
        .change(
            RouteNetlinkMessage::NewAddress(message),
            NLM_F_CREATE | NLM_F_EXCL,
        )
        .map_err(|failure| failure.of(format!("add address {address}/{prefix} to {name}")))
}

pub(crate) fn family(address: &IpAddr) -> AddressFamily {
    match address {
        IpAddr::V4(_) => AddressFamily::Inet,
        IpAddr::V6(_) => AddressFamily::Inet6,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IFLA_IFNAME: u16 = 3;

    /// The payload of an RTM_NEWLINK message about interface 7.
    fn message(name: &[u8]) -> Vec<u8> {
        let mut payload = vec![0; IFINFOMSG];
        payload[4] = 7;
        payload.extend((4 + name.len() as u16).to_ne_bytes());
        payload.extend(IFLA_IFNAME.to_ne_bytes());
        payload.extend(name);
        payload
    }

    #[test]
    fn an_interface_whose_name_is_no_text_is_left_out() {
        let named = decode(&message(b"eth\xc3\xa90\0")).unwrap();
        assert_eq!((named.index, named.name.as_str()), (7, "ethé0"));
        assert_eq!(decode(&message(b"eth\xff0\0")), None);
        assert_eq!(decode(&message(b"")), None);
    }
}
