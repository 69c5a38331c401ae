// SPDX-License-Identifier: Apache-2.0
//! Well-formed packets of every header stack, as flows send them.

use super::random::Random;

pub const FIN: u8 = 0x01;
pub const SYN: u8 = 0x02;
pub const RST: u8 = 0x04;
pub const ACK: u8 = 0x10;

/// What stands around the inner IP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tunnel {
    None,
    Vxlan,
    Geneve,
}

/// The headers of a flow's packets, outermost first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stack {
    /// VLAN tags of the frame, up to one more than anyone should follow.
    pub tags: usize,
    pub tunnel: Tunnel,
    /// The outer header of a tunnel is IPv6.
    pub is_outer6: bool,
    /// VLAN tags of the frame in the tunnel.
    pub inner_tags: usize,
    pub is6: bool,
}

impl Stack {
    fn any(random: &mut Random) -> Stack {
        Stack {
            tags: random.pick(&[0, 0, 0, 1, 2, 3]),
            tunnel: random.pick(&[Tunnel::None, Tunnel::None, Tunnel::Vxlan, Tunnel::Geneve]),
            is_outer6: random.percent(40),
            inner_tags: random.pick(&[0, 0, 0, 1]),
            is6: random.percent(50),
        }
    }
}

/// One connection; side 0 sends the data, out by the port, side 1 the ACKs.
pub struct Flow {
    pub stack: Stack,
    addresses: [[u8; 16]; 2],
    ports: [u16; 2],
    /// Scale option of each side's SYN.
    scales: [Option<u8>; 2],
    /// Kind and digest of an option in every segment: TCP-MD5 or TCP-AO.
    digest: Option<Vec<u8>>,
    seq: [u32; 2],
    begun: usize,
}

impl Flow {
    pub fn any(random: &mut Random) -> Flow {
        let mut address = || {
            let mut octets = [0; 16];
            octets[..12].copy_from_slice(&[0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
            octets[12..].copy_from_slice(&[10, 0, random.below(4) as u8, random.below(8) as u8]);
            octets
        };
        let addresses = [address(), address()];
        let mut scale = || random.percent(90).then(|| random.below(16) as u8);
        let scales = [scale(), scale()];
        Flow {
            stack: Stack::any(random),
            addresses,
            ports: [random.next() as u16, random.pick(&[80, 443, 5201, 4789])],
            scales,
            digest: random.percent(6).then(|| {
                let kind = random.pick(&[[19, 18], [29, 16]]);
                [&kind[..], &random.bytes(usize::from(kind[1]) - 2)].concat()
            }),
            seq: [random.next() as u32, random.next() as u32],
            begun: 0,
        }
    }

    /// The next packet of the flow, and whether it leaves by the port.
    pub fn packet(&mut self, random: &mut Random) -> (Vec<u8>, bool) {
        let (side, flags, payload) = self.turn(random);
        let mut options = Vec::new();
        if flags & SYN != 0 {
            syn_options(&mut options, self.scales[side], random);
        } else if random.percent(60) {
            options.extend([1, 1, 8, 10]);
            options.extend(random.bytes(8));
        }
        if let Some(digest) = &self.digest
            && options.len() + digest.len() <= 40
        {
            options.extend(digest);
        }
        let segment = self.segment(side, flags, &options, payload, random);
        // A SYN takes one number, or no handshake would be proven.
        let syn = u32::from(flags & SYN != 0 && self.begun <= 2);
        self.seq[side] = self.seq[side].wrapping_add(payload as u32 + syn);
        (self.frame(side, segment, random), side == 0)
    }

    /// What someone else sends who knows the addresses and ports alone: far from the flow's numbers.
    pub fn forged(&mut self, side: usize, random: &mut Random) -> Vec<u8> {
        let own = self.seq;
        // Further than the largest window (RFC 7323 §2.3) in both directions.
        let far = (1 << 30) + (1 << 18);
        for seq in &mut self.seq {
            let distance = far + random.below((1 << 31) - (1 << 20)) as u32;
            *seq = seq.wrapping_add(distance);
        }
        let flags = random.pick(&[SYN, SYN | ACK, RST, RST | ACK, FIN | ACK, ACK]);
        let mut options = Vec::new();
        if flags & SYN != 0 {
            syn_options(&mut options, Some(random.below(15) as u8), random);
        }
        let payload = if flags == ACK { random.below(1400) } else { 0 };
        let segment = self.segment(side, flags, &options, payload, random);
        self.seq = own;
        self.frame(side, segment, random)
    }

    /// Who speaks, with which flags and how many bytes: mostly handshake, then data and ACKs.
    fn turn(&mut self, random: &mut Random) -> (usize, u8, usize) {
        self.begun += 1;
        let opener = usize::from(self.ports[0] & 1 == 1);
        match (self.begun, random.below(100)) {
            (_, 0) => (random.below(2), RST | random.pick(&[0, ACK]), 0),
            (_, 1) => (random.below(2), FIN | ACK, 0),
            (_, 2) => (random.below(2), random.next() as u8, random.below(100)),
            (1, _) | (_, 3) => (opener, SYN, 0),
            (2, _) | (_, 4) => (opener ^ 1, SYN | ACK, 0),
            (3, _) => (opener, ACK, 0),
            (_, 5..50) => (0, ACK, random.below(1400)),
            _ => (1, ACK, random.pick(&[0, 0, 0, 50])),
        }
    }

    fn segment(
        &mut self,
        side: usize,
        flags: u8,
        options: &[u8],
        payload: usize,
        random: &mut Random,
    ) -> Vec<u8> {
        let mut segment = Vec::with_capacity(60 + payload);
        segment.extend(self.ports[side].to_be_bytes());
        segment.extend(self.ports[side ^ 1].to_be_bytes());
        segment.extend(self.seq[side].to_be_bytes());
        segment.extend(self.seq[side ^ 1].to_be_bytes());
        let words = 5 + options.len().div_ceil(4);
        let reserved = if random.percent(20) {
            random.below(16)
        } else {
            0
        };
        segment.push((words << 4 | reserved) as u8);
        segment.push(flags);
        let any = random.next() as u16;
        let window = random.pick(&[0, 1, 63, 502, 4096, 29_200, 65_535, any]);
        segment.extend(window.to_be_bytes());
        segment.extend([0, 0, 0, 0]);
        segment.extend(options);
        segment.resize(words * 4, 0);
        segment.extend((0..payload).map(|at| at as u8));
        segment
    }

    fn frame(&self, side: usize, mut segment: Vec<u8>, random: &mut Random) -> Vec<u8> {
        let stack = self.stack;
        let ends = [&self.addresses[side], &self.addresses[side ^ 1]];
        let (source, destination) = (ends[0], ends[1]);
        put_checksum(&mut segment, 16, 6, stack.is6, source, destination);
        let mut packet = ip(stack.is6, 6, source, destination, segment, random);
        if stack.tunnel == Tunnel::None {
            return ethernet(stack.tags, stack.is6, packet);
        }
        packet = ethernet(stack.inner_tags, stack.is6, packet);
        let (source, destination) = (&[2; 16], &[3; 16]);
        let mut datagram = udp(stack.tunnel, packet, random);
        if stack.is_outer6 || random.percent(50) {
            put_checksum(&mut datagram, 6, 17, stack.is_outer6, source, destination);
        }
        let packet = ip(stack.is_outer6, 17, source, destination, datagram, random);
        ethernet(stack.tags, stack.is_outer6, packet)
    }
}

fn syn_options(options: &mut Vec<u8>, scale: Option<u8>, random: &mut Random) {
    options.extend([2, 4, 5, random.next() as u8]);
    if random.percent(50) {
        options.extend([4, 2, 8, 10]);
        options.extend(random.bytes(8));
    }
    // At any offset: after one, two or three NOPs, or none.
    options.extend(&[1; 3][..random.below(4)]);
    if let Some(scale) = scale {
        options.extend([3, 3, scale]);
    }
}

fn ethernet(tags: usize, is6: bool, packet: Vec<u8>) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
    for tag in 0..tags {
        frame.extend(if tag + 1 < tags {
            [0x88, 0xa8]
        } else {
            [0x81, 0]
        });
        frame.extend([0, 7]);
    }
    frame.extend(if is6 { [0x86, 0xdd] } else { [8, 0] });
    frame.extend(packet);
    frame
}

fn udp(tunnel: Tunnel, frame: Vec<u8>, random: &mut Random) -> Vec<u8> {
    let header = if tunnel == Tunnel::Vxlan {
        vec![8, 0, 0, 0, 0, 0, 9, 0]
    } else {
        let words = random.pick(&[0, 0, 1, 3]);
        let mut header = vec![words as u8, 0, 0x65, 0x58, 0, 0, 9, 0];
        header.extend(random.bytes(words * 4));
        header
    };
    let port: u16 = match tunnel {
        Tunnel::Vxlan => random.pick(&[4789, 8472]),
        _ => 6081,
    };
    let mut datagram = vec![0xc0, 1];
    datagram.extend(port.to_be_bytes());
    datagram.extend(((8 + header.len() + frame.len()) as u16).to_be_bytes());
    datagram.extend([0, 0]);
    datagram.extend(header);
    datagram.extend(frame);
    datagram
}

fn ip(
    is6: bool,
    protocol: u8,
    source: &[u8; 16],
    destination: &[u8; 16],
    payload: Vec<u8>,
    random: &mut Random,
) -> Vec<u8> {
    let traffic_class = random.pick(&[0, 1, 2, 2, 3, 0xb8]);
    if !is6 {
        let words = random.pick(&[0, 0, 0, 0, 1, 10]);
        let length = (20 + words * 4 + payload.len()) as u16;
        let mut packet = vec![0x45 + words as u8, traffic_class];
        packet.extend(length.to_be_bytes());
        let fragment: u16 = random.pick(&[0x4000, 0x4000, 0x4000, 0x4000, 0, 0, 0, 0x2000, 0x00b9]);
        packet.extend([0, 1]);
        packet.extend(fragment.to_be_bytes());
        packet.extend([64, protocol, 0, 0]);
        packet.extend(&source[12..]);
        packet.extend(&destination[12..]);
        packet.resize(packet.len() + words * 4, 1); // NOPs
        let sum = !fold(sum(&packet));
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
        packet.extend(payload);
        return packet;
    }
    let mut extensions: Vec<u8> = Vec::new();
    let kinds: &[u8] = random.pick(&[
        &[],
        &[],
        &[],
        &[0],
        &[60],
        &[43, 60],
        &[44],
        &[0, 60, 60, 60],
    ]);
    for (index, &kind) in kinds.iter().enumerate() {
        let next = kinds.get(index + 1).copied().unwrap_or(protocol);
        let words = if kind == 44 {
            0
        } else {
            random.pick(&[0, 0, 1])
        };
        extensions.extend([next, words as u8]);
        let fill = if kind == 44 {
            [0, random.pick(&[0, 1]), 0, 0, 0, 9]
        } else {
            [1, 4, 0, 0, 0, 0]
        };
        extensions.extend(fill);
        extensions.resize(extensions.len() + words * 8, 0);
    }
    let mut packet = vec![0x60 | traffic_class >> 4, traffic_class << 4, 0, 0];
    packet.extend(((extensions.len() + payload.len()) as u16).to_be_bytes());
    packet.extend([kinds.first().copied().unwrap_or(protocol), 64]);
    packet.extend(source);
    packet.extend(destination);
    packet.extend(extensions);
    packet.extend(payload);
    packet
}

/// The sum of 16-bit words (RFC 1071); an odd byte counts as a word's upper half.
pub fn sum(bytes: &[u8]) -> u64 {
    let words = bytes
        .chunks(2)
        .map(|pair| u64::from(pair[0]) << 8 | u64::from(*pair.get(1).unwrap_or(&0)));
    words.sum()
}

pub fn fold(mut sum: u64) -> u16 {
    while sum >> 16 != 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// Writes the checksum of TCP or UDP with its pseudo-header (RFC 9293 §3.1, RFC 8200 §8.1).
fn put_checksum(
    payload: &mut [u8],
    at: usize,
    protocol: u8,
    is6: bool,
    source: &[u8; 16],
    destination: &[u8; 16],
) {
    let from = if is6 { 0 } else { 12 };
    payload[at..at + 2].fill(0);
    let pseudo = sum(&source[from..]) + sum(&destination[from..]) + u64::from(protocol);
    let total = pseudo + payload.len() as u64 + sum(payload);
    let checksum = match !fold(total) {
        0 if protocol == 17 => 0xffff, // 0 means none
        checksum => checksum,
    };
    payload[at..at + 2].copy_from_slice(&checksum.to_be_bytes());
}
