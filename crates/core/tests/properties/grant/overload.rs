// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//! A port with more to do than it can, for the properties that follow flows over time.

use super::super::with;
use super::{MSS, RATE_BPS, SCALE, View};
use penstock_core::flow::flag;
use penstock_core::{Grant, GrantOpening, GrantPacket, Params};

/// A port under more load of new messages than it can carry, and a sender for each flow.
pub struct Overload {
    pub grant: Grant,
    pub params: Params,
    pub now_ns: u64,
    pub passed: u64,
    pub next_seq: std::collections::HashMap<u32, u32>,
}

impl Overload {
    pub fn new(changes: &[(&str, u64)]) -> Overload {
        let params = with("grant", 128_000, changes);
        Overload {
            grant: Grant::new(&params, RATE_BPS, false),
            params,
            now_ns: 0,
            passed: 0,
            next_seq: Default::default(),
        }
    }

    /// A request passes while the queue is full: it has to wait.
    pub fn ask(&mut self) -> u32 {
        self.ask_at(1_000_000)
    }

    /// A request passes, and is granted credit at once if that and `queue_bytes` fit the budget.
    pub fn ask_at(&mut self, queue_bytes: u32) -> u32 {
        let request = GrantPacket {
            now_ns: self.now_ns,
            payload: 100,
            window: 60_000,
            scale: SCALE,
            mss: MSS as u16,
            flags: flag::ACK,
            ..GrantPacket::default()
        };
        let flow = self
            .grant
            .begin(&request, &GrantOpening::default())
            .unwrap();
        self.next_seq.insert(flow, 0);
        self.grant.on_ack(flow, &request, queue_bytes);
        flow
    }

    /// A flow that waits, of which `bytes` have passed already.
    pub fn ask_amid(&mut self, bytes: u32) -> u32 {
        let flow = self.ask();
        self.send(flow, bytes, false);
        flow
    }

    /// `bytes` of a flow pass, in segments; the last ends its message if `is_end`.
    pub fn send(&mut self, flow: u32, bytes: u32, is_end: bool) {
        let mut left = bytes;
        while left > 0 {
            let payload = left.min(MSS);
            left -= payload;
            let seq = self.next_seq[&flow];
            let is_last = is_end && left == 0;
            let packet = GrantPacket {
                now_ns: self.now_ns,
                seq,
                payload,
                mss: MSS as u16,
                flags: flag::ACK | if is_last { flag::FIN } else { 0 },
                ..GrantPacket::default()
            };
            self.grant.on_data(flow, &packet);
            self.now_ns += 40_000;
            self.passed += u64::from(payload);
            self.next_seq.insert(flow, seq + payload);
        }
    }

    /// The next grant, to a flow whose sender uses it at once.
    pub fn next(&mut self) -> u32 {
        let action = self.grant.next(0, self.now_ns);
        action.expect("room in an empty queue").flow
    }

    /// A granted flow sends: one of long messages its whole credit, another all that it has. Bytes.
    pub fn use_grant(&mut self, view: &View, flow: u32, is_long: bool) -> u32 {
        let bytes = match is_long {
            true => view.flow(&self.grant, flow, "credit") as u32,
            false => 5000,
        };
        self.send(flow, bytes, !is_long);
        if !is_long {
            self.grant.close(flow);
        }
        bytes
    }
}
