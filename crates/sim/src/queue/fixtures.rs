// SPDX-License-Identifier: Apache-2.0
//! Packets and ports of the tests.

use super::Arrival;
use crate::packet::{FlowId, Packet, flag};
use penstock_scenario::units::Time;

/// A full-sized data packet (1500 bytes) without ECN.
pub fn data(flow: u32) -> Packet {
    sized(flow, 0, 1500)
}

/// The same of an ECN-capable flow.
pub fn ect(flow: u32) -> Packet {
    Packet {
        flags: flag::ACK | flag::ECT,
        ..data(flow)
    }
}

/// A packet of `size` bytes on the wire, distinguished from others by `seq`.
pub fn sized(flow: u32, seq: u32, size: u16) -> Packet {
    Packet {
        flow: FlowId(flow),
        seq,
        ack: 0,
        ts_val: 0,
        ts_ecr: 0,
        options: 0,
        payload: size - 40,
        window: 0,
        flags: flag::ACK,
        header: 40,
        hop: 0,
    }
}

/// A busy 1 Gb/s port with `waiting` full-sized packets waiting.
pub fn port(waiting: u32) -> Arrival {
    let now = Time::from_secs(1);
    Arrival {
        now,
        backlog_bytes: u64::from(waiting) * 1500,
        backlog_packets: waiting,
        free_at: Time(now.0 + u64::from(waiting) * 12_000_000),
    }
}
