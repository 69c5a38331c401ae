// SPDX-License-Identifier: Apache-2.0
//! Ports of a switch (§7.2.1) and their counters (§7.3.5.6).

use crate::openflow::frame::Version;
use penstock_sdn::codec::Input;

/// Numbers of ports with a meaning, `enum ofp_port_no`.
pub mod number {
    /// The largest number of a port that exists.
    pub const MAX: u32 = 0xffff_ff00;
    /// Back by the port that a packet came from.
    pub const IN_PORT: u32 = 0xffff_fff8;
    /// The controller.
    pub const CONTROLLER: u32 = 0xffff_fffd;
    /// Any; in requests, all.
    pub const ANY: u32 = 0xffff_ffff;
}

const NAME_BYTES: usize = 16;
const DOWN: u32 = 1; // OFPPC_PORT_DOWN and OFPPS_LINK_DOWN
const PORT_13_BYTES: usize = 64;
const COUNTERS_13_BYTES: usize = 112;

/// A port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// Its number.
    pub number: u32,
    /// Its Ethernet address.
    pub address: [u8; 6],
    /// Its name, as the switch's system has it.
    pub name: String,
    /// It is switched on and has a link.
    pub is_up: bool,
}

/// What passed a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortCounters {
    /// The port's number.
    pub number: u32,
    /// Packets received.
    pub rx_packets: u64,
    /// Packets sent.
    pub tx_packets: u64,
    /// Bytes received.
    pub rx_bytes: u64,
    /// Bytes sent.
    pub tx_bytes: u64,
    /// Packets that were dropped instead of sent.
    pub tx_dropped: u64,
}

impl Port {
    /// Takes one from the front.
    pub(crate) fn read(version: Version, bytes: &mut Input<'_>) -> Option<Port> {
        let mut own = match version {
            Version::V13 => bytes.take(PORT_13_BYTES)?,
            Version::V15 => {
                let length = u16::from_be_bytes(bytes.0.get(4..6)?.try_into().ok()?);
                bytes.take(length.into())?
            }
        };
        let number = own.u32()?;
        own.take(4)?;
        let address = own.array()?;
        own.take(2)?;
        let name = own.array::<NAME_BYTES>()?;
        let text = name.split(|byte| *byte == 0).next()?;
        let (config, state) = (own.u32()?, own.u32()?);
        Some(Port {
            number,
            address,
            name: String::from_utf8_lossy(text).into_owned(),
            is_up: (config | state) & DOWN == 0,
        })
    }
}

impl PortCounters {
    /// Takes those of one port from the front.
    pub(crate) fn read(version: Version, bytes: &mut Input<'_>) -> Option<PortCounters> {
        let (mut own, number) = match version {
            Version::V13 => {
                let mut own = bytes.take(COUNTERS_13_BYTES)?;
                let number = own.u32()?;
                own.take(4)?;
                (own, number)
            }
            Version::V15 => {
                let length = u16::from_be_bytes(bytes.0.get(..2)?.try_into().ok()?);
                let mut own = bytes.take(length.into())?;
                own.take(4)?;
                let number = own.u32()?;
                own.take(8)?;
                (own, number)
            }
        };
        let [rx_packets, tx_packets, rx_bytes, tx_bytes] =
            [own.u64()?, own.u64()?, own.u64()?, own.u64()?];
        own.take(8)?;
        Some(PortCounters {
            number,
            rx_packets,
            tx_packets,
            rx_bytes,
            tx_bytes,
            tx_dropped: own.u64()?,
        })
    }
}
