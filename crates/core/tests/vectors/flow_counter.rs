// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
use super::replay;
use penstock_core::FlowCounter;
use serde_json::{Value, json};

#[test]
fn follows_vectors() {
    let text = include_str!("../../../../tests/vectors/flow_counter.jsonl");
    replay(
        text,
        |_| FlowCounter::default(),
        |counter, event, a, _| {
            let flows = match event {
                "packet" => {
                    let (flags, payload, now) = (a.get("flags"), a.get("payload"), a.get("now_ns"));
                    counter.on_packet(flags, payload, a.flag("is_out"), now)
                }
                "expire" => counter.expire(a.get("now_ns"), a.get("idle_ns")),
                other => panic!("unknown event {other}"),
            };
            (json!(flows), Value::Null)
        },
    );
}
