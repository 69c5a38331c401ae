// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
use super::replay;
use penstock_core::flow::{Direction, FlowEntry, FlowPacket, Handshake};
use serde_json::json;

#[test]
fn follows_vectors() {
    let text = include_str!("../../../../tests/vectors/flow.jsonl");
    replay(
        text,
        |_| (FlowEntry::default(), Handshake::default()),
        |(flow, handshake), event, a, _| {
            let result = match event {
                "packet" => {
                    let packet = FlowPacket {
                        now_ns: a.get("now_ns"),
                        seq: a.get("seq"),
                        ack: a.get("ack"),
                        payload: a.get("payload"),
                        mss: a.get("mss"),
                        scale: a.get("scale"),
                        flags: a.get("flags"),
                        direction: [Direction::Data, Direction::Acks][a.get::<usize>("direction")],
                        ..FlowPacket::default()
                    };
                    flow.follow(handshake, &packet).flows
                }
                "expire" => flow.expire(a.get("now_ns"), a.get("idle_ns")),
                other => panic!("unknown event {other}"),
            };
            let state = json!({
                "is_counted": u8::from(flow.is_counted()),
                "is_half_open": u8::from(handshake.is_half_open()),
                "scale_data": flow.scale(Direction::Data).unwrap_or(255),
                "scale_acks": flow.scale(Direction::Acks).unwrap_or(255),
                "mss": flow.mss(0),
                "mss_at_port": flow.mss(8960),
            });
            (json!(result), state)
        },
    );
}
