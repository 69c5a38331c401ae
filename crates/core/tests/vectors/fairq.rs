// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
use super::{Args, replay, window_json};
use penstock_core::fairq::{Fairq, FairqParams};
use serde_json::{Value, json};

fn params(p: Args<'_>) -> FairqParams {
    FairqParams {
        interval_ns: p.get("interval_ns"),
        buffer_bytes: p.get("buffer_bytes"),
        alpha_q16: p.get("alpha_q16"),
        intervals: p.get("intervals"),
        mss_bytes: p.get("mss_bytes"),
        paths: p.get("paths"),
        shares_slow_start: p.get("shares_slow_start"),
        floor_segments: p.get("floor_segments"),
        first_floor_segments: p.get("first_floor_segments"),
        averaged: p.get("averaged"),
        counting: 0,
    }
}

#[test]
fn follows_vectors() {
    let text = include_str!("../../../../tests/vectors/fairq.jsonl");
    let begin = |row: &Value| Fairq::new(params(Args(&row["params"]))).unwrap();
    replay(text, begin, |port, event, a, _| {
        let mut result = Value::Null;
        match event {
            "flow" => port.on_flow(a.get("delta")),
            "data" => port.on_data(a.get("payload_bytes")),
            "sample" => port.on_sample(a.get("queue_bytes")),
            "interval" => port.on_tick(a.get("queue_bytes")),
            "ack" => {
                let (scale, mss) = (a.scale("scale"), a.get("mss_bytes"));
                result = window_json(port.on_ack(a.get("window"), scale, mss, a.kind()));
            }
            other => panic!("unknown event {other}"),
        }
        let s = port.state();
        let state = json!({
            "window_q8": s.window_q8, "gamma_q8": s.gamma_q8, "flows": s.flows,
            "mss_bytes": s.mss_bytes, "ticks": s.ticks, "in_slow_start": u8::from(s.in_slow_start),
        });
        (result, state)
    });
}

#[test]
fn default_parameters_are_those_of_the_vectors() {
    let text = include_str!("../../../../tests/vectors/fairq.jsonl");
    for line in text.lines() {
        let row: Value = serde_json::from_str(line).unwrap();
        match row["case"].as_str() {
            // The vectors were made when a quarter of the buffer was the default target.
            Some("default") => assert_eq!(
                FairqParams {
                    alpha_q16: 16384,
                    ..FairqParams::new(125000)
                },
                params(Args(&row["params"]))
            ),
            Some("paper") => assert_eq!(
                FairqParams {
                    counting: 0,
                    ..FairqParams::paper(125000)
                },
                params(Args(&row["params"]))
            ),
            _ => {}
        }
    }
}
