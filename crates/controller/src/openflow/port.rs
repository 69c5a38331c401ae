// SPDX-License-Identifier: Apache-2.0
//! Ports of a switch (§7.2.1).

use crate::openflow::frame::Version;
use penstock_sdn::codec::Input;

/// Numbers of ports with a meaning, `enum ofp_port_no`.
pub mod number {
    /// The largest number of a port that exists.
    pub const MAX: u32 = 0xffff_ff00;
    /// The first table, for a packet of the controller.
    pub const TABLE: u32 = 0xffff_fff9;
    /// The controller.
    pub const CONTROLLER: u32 = 0xffff_fffd;
    /// The switch's own stack.
    pub const LOCAL: u32 = 0xffff_fffe;
    /// Any; in requests, all.
    pub const ANY: u32 = 0xffff_ffff;
}

/// Its address and its name, with padding.
const NAMES_BYTES: usize = 4 + 6 + 2 + 16;
const DOWN: u32 = 1; // OFPPC_PORT_DOWN and OFPPS_LINK_DOWN
const PORT_13_BYTES: usize = 64;

/// A port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Port {
    /// Its number.
    pub number: u32,
    /// It is switched on and has a link.
    pub is_up: bool,
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
        own.take(NAMES_BYTES)?;
        let (config, state) = (own.u32()?, own.u32()?);
        Some(Port {
            number,
            is_up: (config | state) & DOWN == 0,
        })
    }
}
