// SPDX-License-Identifier: Apache-2.0
//! Messages of a switch, byte by byte.

use penstock_controller::openflow::kind;
use penstock_controller::rules::ALL_ROUTES;

/// A segment of TCP between two of few hosts, as the beginning of a frame.
#[allow(dead_code)] // by those tests that need it
pub fn segment(from: u8, to: u8, port: u16, flags: u8) -> Vec<u8> {
    let mut frame = vec![0; 60];
    frame[..12].copy_from_slice(&[2, 0, 0, 0, 0, to, 2, 0, 0, 0, 0, from]);
    frame[12..15].copy_from_slice(&[8, 0, 0x45]);
    frame[16..18].copy_from_slice(&[0, 46]);
    frame[23] = 6;
    frame[26..34].copy_from_slice(&[10, 0, 0, from, 10, 0, 0, to]);
    frame[34..36].copy_from_slice(&port.to_be_bytes());
    frame[46] = 6 << 4;
    frame[47] = flags;
    frame
}

/// A message of OpenFlow 1.3.
pub fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = (body.len() as u16 + 8).to_be_bytes();
    [&[4, kind, length[0], length[1], 0, 0, 0, 1], body].concat()
}

/// HELLO, the switch's number, its role, and ports 1 to 3.
pub fn greeting(datapath: u64) -> Vec<u8> {
    let features = [
        &datapath.to_be_bytes()[..],
        &[0, 0, 0, 0, 2, 0, 0, 0],
        &[0; 8],
    ]
    .concat();
    let role = [&[0, 0, 0, 1][..], &[0; 12]].concat();
    let ports = (1u32..4).flat_map(|number| [&number.to_be_bytes()[..], &[0; 60]].concat());
    let ports: Vec<u8> = [0, 13, 0, 0, 0, 0, 0, 0].into_iter().chain(ports).collect();
    [
        message(kind::HELLO, &[]),
        message(kind::FEATURES_REPLY, &features),
        message(kind::ROLE_REPLY, &role),
        message(kind::MULTIPART_REPLY, &ports),
    ]
    .concat()
}

/// A copy of a packet that came by a port, as the rule for this reason makes it.
#[allow(dead_code)] // by those tests that need it
pub fn copy(reason: u8, port: u32, data: &[u8]) -> Vec<u8> {
    let cookie = ALL_ROUTES.1 | u64::from(reason);
    let body = [
        &[0xff; 4][..],
        &(data.len() as u16).to_be_bytes(),
        &[0, 0],
        &cookie.to_be_bytes(),
        &[0, 1, 0, 12, 0x80, 0, 0, 4],
        &port.to_be_bytes(),
        &[0; 6],
        data,
    ]
    .concat();
    message(kind::PACKET_IN, &body)
}
