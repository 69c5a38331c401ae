// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
use super::replay;
use penstock_core::flow_count::{Direction, FlowCounter, FlowEntry, FlowPacket};
use serde_json::json;

#[test]
fn follows_vectors() {
    let text = include_str!("../../../../tests/vectors/flow_count.jsonl");
    replay(
        text,
        |_| (FlowEntry::default(), FlowCounter::default()),
        |(flow, counter), event, a, _| {
            let result = match event {
                "packet" => {
                    let packet = FlowPacket {
                        now_ns: a.get("now_ns"),
                        seq: a.get("seq"),
                        payload: a.get("payload"),
                        mss: a.get("mss"),
                        scale: a.get("scale"),
                        flags: a.get("flags"),
                        direction: [Direction::Data, Direction::Acks][a.get::<usize>("direction")],
                    };
                    flow.on_packet(&packet)
                }
                "expire" => flow.expire(a.get("now_ns"), a.get("idle_ns")),
                "counter_packet" => {
                    let (flags, payload, now) = (a.get("flags"), a.get("payload"), a.get("now_ns"));
                    counter.on_packet(flags, payload, a.flag("is_out"), now) as i32
                }
                "counter_expire" => counter.expire(a.get("now_ns"), a.get("idle_ns")) as i32,
                other => panic!("unknown event {other}"),
            };
            let state = json!({
                "is_counted": u8::from(flow.is_counted()),
                "scale_data": flow.scale(Direction::Data).unwrap_or(255),
                "scale_acks": flow.scale(Direction::Acks).unwrap_or(255),
                "mss": flow.mss(),
            });
            (json!(result), state)
        },
    );
}
