// SPDX-License-Identifier: Apache-2.0
//! What a copy of a segment shows.

use crate::{flow, mac};
use etherparse::{PacketBuilder, TcpOptionElement};
use penstock_controller::segment::{COPY_BYTES, Flow, Segment};
use proptest::prelude::*;
use std::net::SocketAddr;

fn copy(flow: Flow, flags: u8, options: &[TcpOptionElement]) -> Vec<u8> {
    let (source, destination) = (flow.source, flow.destination);
    let ends = (mac(101), mac(201));
    let builder = PacketBuilder::ethernet2(ends.0.0, ends.1.0);
    let octets = |address: SocketAddr| match address.ip() {
        std::net::IpAddr::V4(ip) => ip.octets(),
        std::net::IpAddr::V6(_) => panic!("IPv4 here"),
    };
    let builder = builder.ipv4(octets(source), octets(destination), 64).tcp(
        source.port(),
        destination.port(),
        1,
        1000,
    );
    let builder = if flags & 2 != 0 {
        builder.syn()
    } else {
        builder.fin()
    };
    let builder = if flags & 16 != 0 {
        builder.ack(5)
    } else {
        builder
    };
    let builder = builder.options(options).expect("options fit");
    let mut bytes = Vec::new();
    builder.write(&mut bytes, &[0; 500]).expect("a frame");
    bytes.truncate(COPY_BYTES.into());
    bytes
}

#[test]
fn a_copy_has_what_the_guests_agree_on() {
    let options = [
        TcpOptionElement::MaximumSegmentSize(1460),
        TcpOptionElement::Timestamp(1, 2),
        TcpOptionElement::WindowScale(7),
    ];
    let segment = Segment::read(&copy(flow(1), 2 | 16, &options)).expect("TCP");
    let expected = Segment {
        macs: (mac(101), mac(201)),
        flow: flow(1),
        flags: 2 | 16,
        seq: 1,
        ack: 5,
        mss: Some(1460),
        scale: Some(7),
    };
    assert_eq!(segment, expected);
    let fin = Segment::read(&copy(flow(1), 1, &[])).expect("TCP");
    assert_eq!((fin.flags, fin.mss, fin.scale), (1, None, None));
}

proptest! {
    #[test]
    fn any_frame_is_read_or_not(mut bytes in proptest::collection::vec(any::<u8>(), 0..140), ip in any::<bool>()) {
        let _ = Segment::read(&bytes);
        if bytes.len() > 60 && ip {
            bytes[12..15].copy_from_slice(&[8, 0, 0x45]);
            bytes[23] = 6;
            let _ = Segment::read(&bytes);
        }
    }
}
