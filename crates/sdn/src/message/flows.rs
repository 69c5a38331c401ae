// SPDX-License-Identifier: Apache-2.0
//! The flows of a switch's ports, which the controller counts for agents that ask (FairQ §III-B): how many
//! there are, and the scales of their windows.

use super::body::{ADDRESS_BYTES, SCALE_UNKNOWN, all, from_wire, mapped};
use super::seal::{CODE_BYTES, HEADER_BYTES};
use crate::codec::{Input, Output};
use std::net::{IpAddr, SocketAddr};

/// Ports of a switch whose flows an agent wants. Repeated, as the controller forgets it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ask {
    /// The switch, `datapath_id`.
    pub datapath: u64,
    /// Number of each port, and whether the scales of all its flows are wanted, not of new ones alone.
    pub ports: Vec<(u32, bool)>,
}

/// How many flows ports have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowReport {
    /// The switch, `datapath_id`.
    pub datapath: u64,
    /// Number and flows of each port.
    pub flows: Vec<(u32, u32)>,
}

/// What the SYN and SYN-ACK of a flow's connection offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowOptions {
    /// Sends the data.
    pub source: SocketAddr,
    /// Gets the data.
    pub destination: SocketAddr,
    /// The lesser MSS of both, bytes.
    pub mss_bytes: u16,
    /// The shifts of the windows of source and destination; none where one of them did not offer any.
    pub scales: Option<[u8; 2]>,
}

/// Flows of a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OptionsReport {
    /// The switch, `datapath_id`.
    pub datapath: u64,
    /// The port's number.
    pub port: u32,
    /// The flows.
    pub flows: Vec<FlowOptions>,
}

const FLOW_BYTES: usize = 2 * (ADDRESS_BYTES + 2) + 4;

/// Flows that a message can hold, so that it passes a path with an MTU of 1280 bytes.
pub const MAX_FLOWS: usize = (1280 - 48 - HEADER_BYTES - CODE_BYTES - 12) / FLOW_BYTES;

impl Ask {
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.u64(self.datapath);
        for (port, wants_all) in &self.ports {
            out.u32(*port);
            out.u32(u32::from(*wants_all));
        }
    }

    pub(super) fn read(mut bytes: Input<'_>) -> Option<Ask> {
        Some(Ask {
            datapath: bytes.u64()?,
            ports: all(bytes, |one| Some((one.u32()?, one.u32()? != 0)))?,
        })
    }
}

impl FlowReport {
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.u64(self.datapath);
        for (port, flows) in &self.flows {
            out.u32(*port);
            out.u32(*flows);
        }
    }

    pub(super) fn read(mut bytes: Input<'_>) -> Option<FlowReport> {
        Some(FlowReport {
            datapath: bytes.u64()?,
            flows: all(bytes, |one| Some((one.u32()?, one.u32()?)))?,
        })
    }
}

impl OptionsReport {
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.u64(self.datapath);
        out.u32(self.port);
        for flow in &self.flows {
            for end in [flow.source, flow.destination] {
                out.extend(mapped(end.ip()).octets());
                out.u16(end.port());
            }
            out.extend(flow.scales.unwrap_or([SCALE_UNKNOWN; 2]));
            out.u16(flow.mss_bytes);
        }
    }

    pub(super) fn read(mut bytes: Input<'_>) -> Option<OptionsReport> {
        Some(OptionsReport {
            datapath: bytes.u64()?,
            port: bytes.u32()?,
            flows: all(bytes, FlowOptions::read)?,
        })
    }
}

impl FlowOptions {
    fn read(bytes: &mut Input<'_>) -> Option<FlowOptions> {
        let mut end = || {
            let address: IpAddr = from_wire(bytes.array()?);
            Some(SocketAddr::new(address, bytes.u16()?))
        };
        let (source, destination) = (end()?, end()?);
        let scales = [bytes.u8()?, bytes.u8()?];
        Some(FlowOptions {
            source,
            destination,
            scales: (!scales.contains(&SCALE_UNKNOWN)).then_some(scales),
            mss_bytes: bytes.u16()?,
        })
    }
}
