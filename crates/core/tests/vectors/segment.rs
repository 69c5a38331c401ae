// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
use super::replay;
use penstock_core::PortSegments;
use serde_json::{Value, json};

#[test]
fn follows_vectors() {
    let text = include_str!("../../../../tests/vectors/segment.jsonl");
    replay(
        text,
        |_| PortSegments::default(),
        |port, event, a, _| {
            assert_eq!(event, "data");
            port.on_data(a.get("size_bytes"), a.flag("is_full"), a.get("now_ns"));
            (Value::Null, json!({"bytes": port.bytes}))
        },
    );
}
