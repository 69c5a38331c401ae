// SPDX-License-Identifier: Apache-2.0
//! The copy of a SYN, FIN or RST that a switch sends.

use crate::fabric::Mac;
use etherparse::{LaxNetSlice, LaxSlicedPacket, TcpOptionElement, TransportSlice};
use penstock_core::tcp_rewrite::MAX_SCALE;
use std::net::{IpAddr, SocketAddr};

/// One direction of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Flow {
    /// Where it comes from.
    pub source: SocketAddr,
    /// Where it goes.
    pub destination: SocketAddr,
}

impl Flow {
    /// The other direction.
    pub fn reverse(self) -> Flow {
        Flow {
            source: self.destination,
            destination: self.source,
        }
    }
}

/// A SYN, FIN or RST.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The addresses of Ethernet: source and destination.
    pub macs: (Mac, Mac),
    /// The direction that it is of.
    pub flow: Flow,
    /// TCP's flags, as on the wire.
    pub flags: u8,
    /// Sequence number.
    pub seq: u32,
    /// What it acknowledges, where its flags have ACK.
    pub ack: u32,
    /// MSS, of the options of a SYN.
    pub mss: Option<u16>,
    /// Window scale, likewise.
    pub scale: Option<u8>,
}

/// The bytes of a packet that a copy needs: Ethernet with two tags, IPv6, and TCP with all options.
pub const COPY_BYTES: u16 = 14 + 8 + 40 + 60;

impl Segment {
    /// The segment in a frame, from Ethernet on; `None` if it is no TCP over IP, or a fragment.
    pub fn read(frame: &[u8]) -> Option<Segment> {
        // A copy is cut: its length is shorter than IP's.
        let packet = LaxSlicedPacket::from_ethernet(frame).ok()?;
        let Some(TransportSlice::Tcp(tcp)) = packet.transport else {
            return None;
        };
        let (source, destination): (IpAddr, IpAddr) = match packet.net? {
            LaxNetSlice::Ipv4(ip) => {
                let ip = ip.header();
                (ip.source_addr().into(), ip.destination_addr().into())
            }
            LaxNetSlice::Ipv6(ip) => {
                let ip = ip.header();
                (ip.source_addr().into(), ip.destination_addr().into())
            }
            LaxNetSlice::Arp(_) => return None,
        };
        let (mut mss, mut scale) = (None, None);
        for option in tcp.options_iterator().map_while(Result::ok) {
            match option {
                TcpOptionElement::MaximumSegmentSize(bytes) => mss = Some(bytes),
                TcpOptionElement::WindowScale(shift) => scale = Some(shift.min(MAX_SCALE)),
                _ => (),
            }
        }
        Some(Segment {
            macs: (Mac::at(frame, 6)?, Mac::at(frame, 0)?),
            flow: Flow {
                source: SocketAddr::new(source, tcp.source_port()),
                destination: SocketAddr::new(destination, tcp.destination_port()),
            },
            flags: tcp.slice()[13],
            seq: tcp.sequence_number(),
            ack: tcp.acknowledgment_number(),
            mss,
            scale,
        })
    }
}
