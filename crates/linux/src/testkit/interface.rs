// SPDX-License-Identifier: Apache-2.0
//! Changes of interfaces that no program of ours makes.

use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd};

use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{
    InfoData, InfoKind, InfoNetkit, LinkAttribute, LinkInfo, LinkMessage,
};
use netlink_packet_route::neighbour::{
    NeighbourAddress, NeighbourAttribute, NeighbourMessage, NeighbourState,
};

use crate::link::{create, family, get};
use crate::netlink::Rtnetlink;
use crate::netns::NetNs;
use crate::{Error, Result, ethtool};

/// `ETHTOOL_GSET` and `ETHTOOL_SSET` of `linux/ethtool.h`.
const GET_SETTINGS: u32 = 1;
const SET_SETTINGS: u32 = 2;

/// `ETHTOOL_STXCSUM` of `linux/ethtool.h`.
const SET_TX_CHECKSUM: u32 = 0x17;

/// Creates a netkit pair without Ethernet addresses (its mode L3): `name` here, the primary, and `peer` in
/// `peer_netns`. Both are down.
///
/// # Errors
/// One of the names is taken or too long, or the kernel has no netkit (Linux 6.7, `CONFIG_NETKIT`).
pub fn create_netkit(name: &str, peer: &str, peer_netns: &NetNs) -> Result<()> {
    let mut far = LinkMessage::default();
    far.attributes = vec![
        LinkAttribute::IfName(peer.to_owned()),
        LinkAttribute::NetNsFd(peer_netns.as_fd().as_raw_fd()),
    ];
    create(
        name,
        &[],
        vec![
            LinkInfo::Kind(InfoKind::Netkit),
            LinkInfo::Data(InfoData::Netkit(vec![InfoNetkit::Peer(far)])),
        ],
    )
}

/// Has `address` be reached through the interface `name` at the Ethernet address `ethernet`, for
/// good.
///
/// # Errors
/// There is no such interface, or it has this neighbour already.
pub fn add_neighbour(name: &str, address: IpAddr, ethernet: [u8; 6]) -> Result<()> {
    let mut message = NeighbourMessage::default();
    message.header.ifindex = get(name)?.index;
    message.header.family = family(&address);
    message.header.state = NeighbourState::Permanent;
    message.attributes = vec![
        NeighbourAttribute::Destination(match address {
            IpAddr::V4(address) => NeighbourAddress::Inet(address),
            IpAddr::V6(address) => NeighbourAddress::Inet6(address),
        }),
        NeighbourAttribute::LinkLayerAddress(ethernet.to_vec()),
    ];
    Rtnetlink::open()?
        .change(
            RouteNetlinkMessage::NewNeighbour(message),
            NLM_F_CREATE | NLM_F_EXCL,
        )
        .map_err(|failure| failure.of(format!("add neighbour {address} to {name}")))
}

/// Has the kernel compute the checksums of packets that leave, as `ethtool -K INTERFACE tx off`
/// does. A veth leaves them out otherwise, as its packets never leave the machine.
///
/// # Errors
/// There is no such interface, or the caller lacks CAP_NET_ADMIN.
pub fn disable_tx_checksum_offload(interface: &str) -> Result<()> {
    ethtool::call(interface, &mut [SET_TX_CHECKSUM, 0]).map_err(|reason| {
        Error::refused(
            format!("disable transmit checksum offload of {interface}"),
            reason,
        )
    })
}

/// Has the link of an interface this speed, megabits a second, as `ethtool -s INTERFACE speed` does: a tap
/// takes any.
///
/// # Errors
/// There is no such interface, or its driver refuses.
pub fn set_speed(interface: &str, megabits: u16) -> Result<()> {
    let mut settings = [0; 11];
    settings[0] = GET_SETTINGS;
    let set = ethtool::call(interface, &mut settings).and_then(|()| {
        // Speed and duplex share a word, and so do the port and the upper half of the speed.
        let mut word = settings[3].to_ne_bytes();
        word[..2].copy_from_slice(&megabits.to_ne_bytes());
        (settings[0], settings[3]) = (SET_SETTINGS, u32::from_ne_bytes(word));
        ethtool::call(interface, &mut settings)
    });
    set.map_err(|reason| Error::refused(format!("set the speed of {interface}"), reason))
}
