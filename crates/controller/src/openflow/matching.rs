// SPDX-License-Identifier: Apache-2.0
//! Matches: what a rule applies to (§7.2.3).

use crate::openflow::frame::Version;
use penstock_sdn::codec::{Input, Output};

const TYPE_OXM: u16 = 1;
const BASIC: u16 = 0x8000;
const EXPERIMENTER: u16 = 0xffff;
const ONF: u32 = 0x4f4e_4600;
pub(crate) const IN_PORT: u8 = 0;
pub(crate) const ETH_DST: u8 = 3;
const TCP_FLAGS: u8 = 42;

/// One field of a match. What a field needs (an Ethernet type for addresses of IP, a protocol for
/// TCP's flags) has to come before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Field {
    /// The port that a packet came from.
    InPort(u32),
    /// Destination of Ethernet.
    EthDst([u8; 6]),
    /// Source of Ethernet.
    EthSrc([u8; 6]),
    /// Type of Ethernet.
    EthType(u16),
    /// Protocol of IP.
    IpProto(u8),
    /// Flags of TCP: these values of the bits in a mask.
    TcpFlags(u16, u16),
}

impl Field {
    fn write(self, version: Version, out: &mut Vec<u8>) {
        let mut basic = |field: u8, value: &[u8]| {
            out.u16(BASIC);
            out.extend([field << 1, value.len() as u8]);
            out.extend(value);
        };
        match self {
            Field::InPort(port) => basic(IN_PORT, &port.to_be_bytes()),
            Field::EthDst(address) => basic(ETH_DST, &address),
            Field::EthSrc(address) => basic(4, &address),
            Field::EthType(value) => basic(5, &value.to_be_bytes()),
            Field::IpProto(protocol) => basic(10, &[protocol]),
            Field::TcpFlags(value, mask) => {
                let has_mask = TCP_FLAGS << 1 | 1;
                if version == Version::V13 {
                    out.u16(EXPERIMENTER);
                    out.extend([has_mask, 8]);
                    out.u32(ONF);
                } else {
                    out.u16(BASIC);
                    out.extend([has_mask, 4]);
                }
                out.u16(value);
                out.u16(mask);
            }
        }
    }
}

/// All fields of a match; without any, every packet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Match(pub Vec<Field>);

impl Match {
    pub(crate) fn write(&self, version: Version, out: &mut Vec<u8>) {
        let start = out.len();
        out.u16(TYPE_OXM);
        out.u16(0);
        for field in &self.0 {
            field.write(version, out);
        }
        out.set_length(start + 2, start);
        out.pad8(start);
    }

    /// Takes a match from the front, and shows the basic fields that are whole: number and value.
    pub(crate) fn read<'a>(
        bytes: &mut Input<'a>,
        mut field: impl FnMut(u8, Input<'a>),
    ) -> Option<()> {
        let mut header = *bytes;
        let (kind, length) = (header.u16()?, header.u16()?);
        if kind != TYPE_OXM || length < 4 {
            return None;
        }
        let mut fields = bytes.take(length.into())?;
        bytes.take(usize::from(length).wrapping_neg() % 8)?;
        fields.take(4)?;
        while !fields.0.is_empty() {
            let (class, number, length) = (fields.u16()?, fields.u8()?, fields.u8()?);
            let value = fields.take(length.into())?;
            let has_mask = number & 1 != 0;
            if class == BASIC && !has_mask {
                field(number >> 1, value);
            }
        }
        Some(())
    }
}
