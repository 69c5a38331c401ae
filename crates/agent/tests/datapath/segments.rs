// SPDX-License-Identifier: Apache-2.0
//! The segments of a connection.

use super::common::packet::{ACK, SYN, Segment};
use super::port::Port;

pub const SCALE: u8 = 7;

pub fn flows() -> [(&'static str, Segment); 2] {
    [
        ("4", Segment::new("10.0.0.1", "10.0.0.2")),
        ("6", Segment::new("fd00::1", "fd00::2")),
    ]
}

pub fn syn(data: &Segment) -> Segment {
    data.with(|s| {
        (s.flags, s.options) = (SYN, Segment::syn_options(1460, SCALE));
        s.seq = s.seq.wrapping_sub(1);
    })
}

pub fn syn_ack(data: &Segment) -> Segment {
    syn(&data.reversed()).with(|s| {
        s.flags = SYN | ACK;
        (s.seq, s.ack) = (data.ack.wrapping_sub(1), data.seq);
    })
}

/// The receiver's ACK of all that `data` carries.
pub fn ack(data: &Segment) -> Segment {
    data.reversed().with(|s| {
        (s.seq, s.ack) = (data.ack, data.seq.wrapping_add(data.payload as u32));
        s.payload = 0;
    })
}

/// The three packets of a handshake.
pub fn open(port: &Port, scheme: &str, data: &Segment) {
    let [egress, ingress] = ["egress", "ingress"].map(|side| format!("{scheme}_{side}"));
    port.run(&egress, &syn(data).frame());
    port.run(&ingress, &syn_ack(data).frame());
    port.run(&egress, &data.frame());
}
