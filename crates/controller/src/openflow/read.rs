// SPDX-License-Identifier: Apache-2.0
//! What a switch sends.

use crate::openflow::action::Instruction;
use crate::openflow::frame::{Header, Version, kind};
use crate::openflow::matching::{ETH_DST, IN_PORT, Match};
use crate::openflow::port::Port;
use crate::openflow::write::multipart;
use crate::openflow::{Error, write};
use penstock_sdn::codec::Input;

const VERSION_BITMAP: u16 = 1;
const MORE: u16 = 1;

/// How a port changed (`enum ofp_port_reason`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortChange {
    /// It is new.
    Added,
    /// It is gone.
    Deleted,
    /// It has changed.
    Modified,
}

/// A controller's part (§6.3.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Asks for the present one.
    Same = 0,
    /// As all the others.
    Equal = 1,
    /// The only one that may change the switch.
    Master = 2,
    /// May read only.
    Slave = 3,
}

/// A rule by which frames for an address leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// Destination of Ethernet.
    pub destination: [u8; 6],
    /// The port's number.
    pub port: u32,
}

impl Route {
    fn read(version: Version, bytes: &mut Input<'_>) -> Option<Option<Route>> {
        let length = usize::from(bytes.u16()?);
        let mut bytes = bytes.take(length.checked_sub(2)?)?;
        // Table, priority, times, flags and counters; in 1.5, these follow the match (§7.3.5.2).
        bytes.take(if version == Version::V13 { 46 } else { 22 })?;
        let mut destination = None;
        Match::read(&mut bytes, |field, value| {
            if field == ETH_DST {
                destination = value.0.try_into().ok();
            }
        })?;
        if version == Version::V15 {
            let mut header = bytes;
            header.u16()?;
            let length = usize::from(header.u16()?);
            bytes.take(length.next_multiple_of(8))?;
        }
        let route = |destination| {
            let port = Instruction::read_output(bytes)?;
            Some(Route { destination, port })
        };
        Some(destination.and_then(route))
    }
}

/// A message of a switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message<'a> {
    /// A connection begins: the newest version that both sides may speak, if any.
    Hello(Option<Version>),
    /// A request failed: type and code, as on the wire.
    Error {
        /// One of [`failure`](crate::openflow::failure), or another.
        kind: u16,
        /// Its meaning depends on the type.
        code: u16,
        /// The type of the request, if the switch repeats it.
        request: Option<u8>,
    },
    /// It is to be repeated to the switch.
    EchoRequest(&'a [u8]),
    /// The switch's number, and which connection of the switch this is.
    Features {
        /// `datapath_id`
        datapath: u64,
        /// Number of the connection; 0: the main one.
        auxiliary: u8,
    },
    /// A packet that a rule sent here.
    PacketIn {
        /// Of the rule.
        cookie: u64,
        /// The port that it came from, if the switch names it.
        in_port: Option<u32>,
        /// Its first bytes, from Ethernet on.
        data: &'a [u8],
    },
    /// A port came, went or changed.
    PortStatus(PortChange, Port),
    /// Rules that send the frames for one address out by one port, others left out; `true`: more follow.
    Routes(Vec<Route>, bool),
    /// Ports; `true`: more follow.
    Ports(Vec<Port>, bool),
    /// All before the request is done.
    Barrier,
    /// Our role, and the number of the last election.
    Role(Role, u64),
    /// A message of another type, which may be ignored.
    Other(u8),
}

impl<'a> Message<'a> {
    /// Reads a message of a switch with which `version` was agreed.
    ///
    /// # Errors
    /// It is of another version, which only a HELLO or an ERROR before may be, or malformed.
    pub fn read(version: Version, header: Header, body: &'a [u8]) -> Result<Message<'a>, Error> {
        let is_early = matches!(header.kind, kind::HELLO | kind::ERROR);
        if header.version != version as u8 && !is_early {
            return Err(Error::Version(header.version));
        }
        read(version, header, Input(body)).ok_or(Error::Malformed(header.kind))
    }
}

fn read<'a>(version: Version, header: Header, mut body: Input<'a>) -> Option<Message<'a>> {
    Some(match header.kind {
        kind::HELLO => Message::Hello(newest(header.version, body)?),
        kind::ERROR => Message::Error {
            kind: body.u16()?,
            code: body.u16()?,
            request: body.0.get(1).copied(),
        },
        kind::ECHO_REQUEST => Message::EchoRequest(body.0),
        kind::FEATURES_REPLY => {
            let datapath = body.u64()?;
            body.take(5)?; // buffers and tables
            Message::Features {
                datapath,
                auxiliary: body.u8()?,
            }
        }
        kind::PACKET_IN => {
            body.take(8)?; // buffer, length, reason and table
            let cookie = body.u64()?;
            let mut in_port = None;
            Match::read(&mut body, |field, mut value| {
                if field == IN_PORT {
                    in_port = value.u32();
                }
            })?;
            body.u16()?;
            Message::PacketIn {
                cookie,
                in_port,
                data: body.0,
            }
        }
        kind::PORT_STATUS => {
            let change = match body.u8()? {
                0 => PortChange::Added,
                1 => PortChange::Deleted,
                2 => PortChange::Modified,
                _ => return None,
            };
            body.take(7)?;
            Message::PortStatus(change, Port::read(version, &mut body)?)
        }
        kind::MULTIPART_REPLY => {
            let (subject, flags) = (body.u16()?, body.u16()?);
            body.u32()?;
            let more = flags & MORE != 0;
            match subject {
                multipart::RULES => {
                    let rules = all(version, body, Route::read)?;
                    Message::Routes(rules.into_iter().flatten().collect(), more)
                }
                multipart::PORT_DESC => Message::Ports(all(version, body, Port::read)?, more),
                _ => Message::Other(header.kind),
            }
        }
        kind::BARRIER_REPLY => Message::Barrier,
        kind::ROLE_REPLY => {
            let role = match body.u32()? {
                0 => Role::Same,
                1 => Role::Equal,
                2 => Role::Master,
                3 => Role::Slave,
                _ => return None,
            };
            body.u32()?;
            Message::Role(role, body.u64()?)
        }
        other => Message::Other(other),
    })
}

/// All that a reply lists.
fn all<T>(
    version: Version,
    mut body: Input<'_>,
    one: fn(Version, &mut Input<'_>) -> Option<T>,
) -> Option<Vec<T>> {
    let mut found = Vec::new();
    while !body.0.is_empty() {
        found.push(one(version, &mut body)?);
    }
    Some(found)
}

/// The newest version that both sides know (§6.3.1): of the bitmaps, or the lower of the headers' ([`write::HELLO`]).
fn newest(wire: u8, mut elements: Input<'_>) -> Option<Option<Version>> {
    while !elements.0.is_empty() {
        let (kind, length) = (elements.u16()?, elements.u16()?);
        let mut element = elements.take(usize::from(length).checked_sub(4)?)?;
        let padding = usize::from(length).wrapping_neg() % 8;
        elements.take(padding.min(elements.0.len()))?;
        if kind == VERSION_BITMAP {
            let bits = element.u32()?;
            let both = |version: &Version| bits & 1 << *version as u8 != 0;
            return Some(write::VERSIONS.into_iter().rev().find(both));
        }
    }
    Some(Version::of(wire.min(write::HELLO as u8)))
}
