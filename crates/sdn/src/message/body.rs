// SPDX-License-Identifier: Apache-2.0
//! The contents of messages.

use super::flows::{Ask, FlowReport, OptionsReport};
use super::queues::QueueReport;
use super::seal::{CODE_BYTES, HEADER_BYTES};
use crate::codec::{Input, Output};
use std::net::{IpAddr, Ipv6Addr};

pub(super) const SCALE_UNKNOWN: u8 = 0xff;
const ON: u8 = 1;
const OFF: u8 = 2;

/// What a shim is to do with the ACKs of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Order {
    /// Clamp windows to segments of this size, bytes, in this window scale if it is known.
    On(u16, Option<u8>),
    /// Do not.
    Off,
}

/// An order for a pair of a source and a destination of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Notice {
    /// Sends the data, and gets the ACKs.
    pub source: IpAddr,
    /// Gets the data.
    pub destination: IpAddr,
    /// What is to be done.
    pub order: Order,
}

/// The content of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// An agent is there, and the shim of these guests. Repeated, as a sign of life.
    Hello(Vec<IpAddr>),
    /// Of an agent of a switch.
    Queues(QueueReport),
    /// Of the controller.
    Notices(Vec<Notice>),
    /// Of an agent of a switch whose ports the controller counts the flows of.
    Ask(Ask),
    /// Of the controller, to that.
    Flows(FlowReport),
    /// Likewise.
    Options(OptionsReport),
}

/// Bytes of an address: IPv4 as IPv6.
pub(super) const ADDRESS_BYTES: usize = 16;
const NOTICE_BYTES: usize = 2 * ADDRESS_BYTES + 4;

/// Notices that a message can hold, so that it passes a path with an MTU of 1280 bytes.
pub const MAX_NOTICES: usize = (1280 - 48 - HEADER_BYTES - CODE_BYTES) / NOTICE_BYTES;

impl Body {
    pub(super) fn kind(&self) -> u8 {
        match self {
            Body::Hello(_) => 1,
            Body::Queues(_) => 2,
            Body::Notices(_) => 3,
            Body::Ask(_) => 4,
            Body::Flows(_) => 5,
            Body::Options(_) => 6,
        }
    }

    /// Whether it is the controller who sends such.
    pub(super) fn is_of_controller(&self) -> bool {
        matches!(self, Body::Notices(_) | Body::Flows(_) | Body::Options(_))
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        match self {
            Body::Hello(guests) => guests
                .iter()
                .for_each(|guest| out.extend(mapped(*guest).octets())),
            Body::Queues(report) => report.write(out),
            Body::Notices(notices) => notices.iter().for_each(|notice| notice.write(out)),
            Body::Ask(ask) => ask.write(out),
            Body::Flows(report) => report.write(out),
            Body::Options(report) => report.write(out),
        }
    }

    pub(super) fn read(kind: u8, bytes: &[u8]) -> Option<Body> {
        let bytes = Input(bytes);
        Some(match kind {
            1 => Body::Hello(all(bytes, |one| one.array().map(from_wire))?),
            2 => Body::Queues(QueueReport::read(bytes)?),
            3 => Body::Notices(all(bytes, Notice::read)?),
            4 => Body::Ask(Ask::read(bytes)?),
            5 => Body::Flows(FlowReport::read(bytes)?),
            6 => Body::Options(OptionsReport::read(bytes)?),
            _ => return None,
        })
    }
}

impl Notice {
    fn write(&self, out: &mut Vec<u8>) {
        out.extend(mapped(self.source).octets());
        out.extend(mapped(self.destination).octets());
        match self.order {
            Order::On(mss_bytes, scale) => {
                out.extend([ON, scale.unwrap_or(SCALE_UNKNOWN)]);
                out.u16(mss_bytes);
            }
            Order::Off => out.extend([OFF, SCALE_UNKNOWN, 0, 0]),
        }
    }

    fn read(bytes: &mut Input<'_>) -> Option<Notice> {
        let [source, destination] = [bytes.array()?, bytes.array()?].map(from_wire);
        let (order, scale, mss_bytes) = (bytes.u8()?, bytes.u8()?, bytes.u16()?);
        let order = match order {
            ON => Order::On(mss_bytes, (scale != SCALE_UNKNOWN).then_some(scale)),
            OFF => Order::Off,
            _ => return None,
        };
        Some(Notice {
            source,
            destination,
            order,
        })
    }
}

pub(super) fn all<T>(
    mut bytes: Input<'_>,
    mut one: impl FnMut(&mut Input<'_>) -> Option<T>,
) -> Option<Vec<T>> {
    let mut found = Vec::new();
    while !bytes.0.is_empty() {
        found.push(one(&mut bytes)?);
    }
    Some(found)
}

/// An address as all are kept: IPv4 mapped to IPv6 (RFC 4291 §2.5.5.2).
pub fn mapped(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(short) => short.to_ipv6_mapped(),
        IpAddr::V6(long) => long,
    }
}

pub(super) fn from_wire(octets: [u8; ADDRESS_BYTES]) -> IpAddr {
    IpAddr::V6(Ipv6Addr::from(octets)).to_canonical()
}
