// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
use super::{Args, replay, window_json};
use penstock_core::sicc::{SiccParams, SiccPort, SiccShim};
use serde_json::{Value, json};

fn begin(row: &Value) -> (SiccPort, SiccShim) {
    let p = Args(&row["params"]);
    let params = SiccParams {
        interval_ns: p.get("interval_ns"),
        duration_ns: p.get("duration_ns"),
        buffer_bytes: p.get("buffer_bytes"),
        alpha1_q16: p.get("alpha1_q16"),
        alpha2_q16: p.get("alpha2_q16"),
        initial_window_segments: p.get("initial_window_segments"),
        mss_bytes: p.get("mss_bytes"),
        floor_segments: p.get("floor_segments"),
        off_needs_both: p.get("off_needs_both"),
    };
    match row["case"].as_str() {
        Some("default") => assert_eq!(params, SiccParams::new(125000)),
        Some("paper") => assert_eq!(params, SiccParams::paper(125000)),
        _ => {}
    }
    (
        SiccPort::new(params).unwrap(),
        SiccShim::new(params).unwrap(),
    )
}

#[test]
fn follows_vectors() {
    let text = include_str!("../../../../tests/vectors/sicc.jsonl");
    replay(text, begin, |(port, shim), event, a, _| {
        let mut result = Value::Null;
        match event {
            "packet" => port.on_packet(a.get("flags")),
            "interval" => {
                result = json!(port.on_interval(a.get("queue_bytes"), a.get("now_ns")) as u32);
            }
            "pair_on" => shim.on(a.get("mss_bytes"), a.scale("scale"), a.get("now_ns")),
            "pair_off" => shim.off(),
            "pair_ack" => {
                let (scale, now) = (a.scale("scale"), a.get("now_ns"));
                result = window_json(shim.on_ack(a.get("window"), scale, a.kind(), now));
            }
            other => panic!("unknown event {other}"),
        }
        let s = port.state();
        let state = json!({"beta": s.beta, "queue_q8": s.queue_q8, "is_on": u8::from(s.is_on)});
        (result, state)
    });
}
