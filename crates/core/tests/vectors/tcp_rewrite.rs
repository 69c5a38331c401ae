// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
use super::common::functions::{checksum_update, checksum_update_byte, lower_window};
use super::{replay, window_json};
use penstock_core::tcp_rewrite::*;
use serde_json::{Value, json};

#[test]
fn follows_vectors() {
    let text = include_str!("../../../../tests/vectors/tcp_rewrite.jsonl");
    replay(
        text,
        |_| Edge::default(),
        |edge, event, a, row| {
            let result = match event {
                "lower_window" => {
                    let (limit, floor) = (a.get("limit_bytes"), a.get("floor_bytes"));
                    window_json(lower_window(
                        a.get("window"),
                        a.scale("scale"),
                        limit,
                        floor,
                    ))
                }
                "keep_edge" => {
                    let (window, scale) = (a.get("window"), a.scale("scale"));
                    let wanted = lower_window(window, scale, a.get("limit_bytes"), 1448);
                    window_json(edge.keep(a.get("ack"), window, scale, wanted))
                }
                "checksum_update" => {
                    json!(checksum_update(
                        a.get("checksum"),
                        a.get("old"),
                        a.get("new")
                    ))
                }
                "checksum_update_byte" => {
                    let (old, new) = (a.get("old"), a.get("new"));
                    json!(checksum_update_byte(
                        a.get("checksum"),
                        a.get("offset"),
                        old,
                        new
                    ))
                }
                "reserved_put_scale" => json!(reserved_put_scale(a.get("word"), a.get("scale"))),
                "reserved_scale" => json!(reserved_scale(a.get("word"))),
                "reserved_clear" => json!(reserved_clear(a.get("word"))),
                "window12_put" => json!(window12_put(a.get("window"), a.get("scale"))),
                "window12_scale" => json!(window12_scale(a.get("field"))),
                "window12_window" => json!(window12_window(a.get("field"))),
                "unify_window" => json!(unify_window(
                    a.get("window"),
                    a.get("own"),
                    a.get("network")
                )),
                other => panic!("unknown event {other}"),
            };
            let state = row
                .get("state")
                .map_or(Value::Null, |_| json!({"edge": edge.seq()}));
            (result, state)
        },
    );
}
