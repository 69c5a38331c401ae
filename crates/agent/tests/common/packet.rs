// SPDX-License-Identifier: Apache-2.0
//! Packets as they are on the wire, with all checksums: what a test gives to the programs, and,
//! built again with another window, the very bytes that it expects back.

use std::net::IpAddr;

#[allow(unused_imports, reason = "each test uses a part")]
pub use penstock_core::flow::flag::{ACK, FIN, PSH, RST, SYN};

const TCP: u8 = 6;
const UDP: u8 = 17;

/// A TCP segment in an IP packet; addresses of both ends decide the version.
#[derive(Clone, Debug)]
pub struct Segment {
    pub source: IpAddr,
    pub destination: IpAddr,
    pub source_port: u16,
    pub destination_port: u16,
    pub seq: u32,
    pub ack: u32,
    pub flags: u8,
    /// The four reserved bits above the flags.
    pub reserved: u8,
    pub window: u16,
    /// TCP options; a multiple of four bytes.
    pub options: Vec<u8>,
    pub payload: usize,
    /// IPv4 options; a multiple of four bytes.
    pub ip_options: Vec<u8>,
    /// IPv6 extension headers: type and total bytes, a multiple of eight.
    pub extensions: Vec<(u8, usize)>,
    pub ecn: u8,
    pub dscp: u8,
}

impl Segment {
    pub fn new(source: &str, destination: &str) -> Segment {
        Segment {
            source: source.parse().unwrap(),
            destination: destination.parse().unwrap(),
            source_port: 40000,
            destination_port: 80,
            seq: 1000,
            ack: 2000,
            flags: ACK,
            reserved: 0,
            window: 0xffff,
            options: Vec::new(),
            payload: 0,
            ip_options: Vec::new(),
            extensions: Vec::new(),
            ecn: 0,
            dscp: 0,
        }
    }

    /// A SYN's usual options.
    pub fn syn_options(mss: u16, scale: u8) -> Vec<u8> {
        let [high, low] = mss.to_be_bytes();
        vec![2, 4, high, low, 1, 3, 3, scale]
    }

    /// The same flow from its other end.
    pub fn reversed(&self) -> Segment {
        let mut other = self.clone();
        std::mem::swap(&mut other.source, &mut other.destination);
        std::mem::swap(&mut other.source_port, &mut other.destination_port);
        other
    }

    pub fn with(&self, change: impl FnOnce(&mut Segment)) -> Segment {
        let mut other = self.clone();
        change(&mut other);
        other
    }

    /// The TCP segment, its checksum in place.
    fn tcp(&self) -> Vec<u8> {
        let mut tcp = Vec::new();
        tcp.extend(self.source_port.to_be_bytes());
        tcp.extend(self.destination_port.to_be_bytes());
        tcp.extend(self.seq.to_be_bytes());
        tcp.extend(self.ack.to_be_bytes());
        let words = (20 + self.options.len()) / 4;
        tcp.push((words as u8) << 4 | self.reserved);
        tcp.push(self.flags);
        tcp.extend(self.window.to_be_bytes());
        tcp.extend([0; 4]);
        tcp.extend(&self.options);
        tcp.extend((0..self.payload).map(|i| i as u8));
        let sum = pseudo_checksum(self.source, self.destination, TCP, &tcp);
        tcp[16..18].copy_from_slice(&sum.to_be_bytes());
        tcp
    }

    fn traffic_class(&self) -> u8 {
        self.dscp << 2 | self.ecn
    }

    /// The IP packet.
    pub fn ip(&self) -> Vec<u8> {
        let tcp = self.tcp();
        match self.source {
            IpAddr::V4(_) => ipv4(self, TCP, &self.ip_options, &tcp),
            IpAddr::V6(_) => ipv6(self, TCP, &self.extensions, &tcp),
        }
    }

    /// The Ethernet frame.
    pub fn frame(&self) -> Vec<u8> {
        ethernet(self.source, &[], &self.ip())
    }
}

/// An Ethernet frame around an IP packet, with VLAN tags (protocol, identifier) from the outside.
pub fn ethernet(version: IpAddr, tags: &[(u16, u16)], ip: &[u8]) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
    for (protocol, identifier) in tags {
        frame.extend(protocol.to_be_bytes());
        frame.extend(identifier.to_be_bytes());
    }
    let protocol: u16 = if version.is_ipv4() { 0x0800 } else { 0x86dd };
    frame.extend(protocol.to_be_bytes());
    frame.extend(ip);
    frame
}

/// VXLAN around a frame, as an IP packet to a UDP port, of `outer`'s addresses.
pub fn vxlan(
    outer: &Segment,
    port: u16,
    network: u32,
    has_checksum: bool,
    frame: &[u8],
) -> Vec<u8> {
    let mut header = vec![8, 0, 0, 0];
    header.extend((network << 8).to_be_bytes());
    tunnel(outer, port, &header, has_checksum, frame)
}

/// Geneve (UDP port 6081) with so many bytes of options.
pub fn geneve(
    outer: &Segment,
    network: u32,
    options: usize,
    has_checksum: bool,
    frame: &[u8],
) -> Vec<u8> {
    let mut header = vec![(options / 4) as u8, 0, 0x65, 0x58];
    header.extend((network << 8).to_be_bytes());
    header.extend(vec![0; options]);
    tunnel(outer, 6081, &header, has_checksum, frame)
}

fn tunnel(outer: &Segment, port: u16, header: &[u8], has_checksum: bool, frame: &[u8]) -> Vec<u8> {
    let length = (8 + header.len() + frame.len()) as u16;
    let mut udp = Vec::new();
    udp.extend(50000_u16.to_be_bytes());
    udp.extend(port.to_be_bytes());
    udp.extend(length.to_be_bytes());
    udp.extend([0; 2]);
    udp.extend(header);
    udp.extend(frame);
    if has_checksum {
        let sum = match pseudo_checksum(outer.source, outer.destination, UDP, &udp) {
            0 => 0xffff,
            sum => sum,
        };
        udp[6..8].copy_from_slice(&sum.to_be_bytes());
    }
    match outer.source {
        IpAddr::V4(_) => ipv4(outer, UDP, &[], &udp),
        IpAddr::V6(_) => ipv6(outer, UDP, &[], &udp),
    }
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

fn ipv4(packet: &Segment, protocol: u8, options: &[u8], payload: &[u8]) -> Vec<u8> {
    let words = (20 + options.len()) / 4;
    let total = (20 + options.len() + payload.len()) as u16;
    let mut ip = vec![0x40 | words as u8, packet.traffic_class()];
    ip.extend(total.to_be_bytes());
    ip.extend([0, 1, 0x40, 0, 64, protocol, 0, 0]);
    ip.extend(octets(packet.source));
    ip.extend(octets(packet.destination));
    ip.extend(options);
    let sum = checksum(&ip);
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
    ip.extend(payload);
    ip
}

fn ipv6(packet: &Segment, protocol: u8, extensions: &[(u8, usize)], payload: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    for (i, (_, bytes)) in extensions.iter().enumerate() {
        let next = extensions.get(i + 1).map_or(protocol, |(kind, _)| *kind);
        let mut extension = vec![next, (bytes / 8 - 1) as u8, 1, 0];
        // Padding to the end (RFC 8200 §4.2).
        extension[3] = 0;
        extension.resize(*bytes, 0);
        body.extend(extension);
    }
    body.extend(payload);
    let first = extensions.first().map_or(protocol, |(kind, _)| *kind);
    let class = packet.traffic_class();
    let mut ip = vec![0x60 | class >> 4, class << 4, 0, 0];
    ip.extend((body.len() as u16).to_be_bytes());
    ip.extend([first, 64]);
    ip.extend(octets(packet.source));
    ip.extend(octets(packet.destination));
    ip.extend(body);
    ip
}

fn pseudo_checksum(source: IpAddr, destination: IpAddr, protocol: u8, segment: &[u8]) -> u16 {
    let mut all = octets(source);
    all.extend(octets(destination));
    all.extend((segment.len() as u32).to_be_bytes());
    all.extend([0, 0, 0, protocol]);
    all.extend(segment);
    checksum(&all)
}

/// The Internet checksum (RFC 1071).
pub fn checksum(bytes: &[u8]) -> u16 {
    let mut sum = 0_u32;
    for pair in bytes.chunks(2) {
        sum += u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
    }
    while sum >> 16 > 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}
