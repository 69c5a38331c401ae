// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
use super::common::Fields;
use super::{assert_presets, params, replay, state, window_json};
use penstock_core::definitions;
use penstock_core::sicc::{SiccPort, SiccShim};
use serde_json::{Value, json};

const TEXT: &str = include_str!("../../../../tests/vectors/sicc.jsonl");

#[test]
fn follows_vectors() {
    let fields = Fields::of("sicc", "sicc_port");
    let begin = |row: &Value| {
        let params = params(definitions::of("sicc"), &row["params"]);
        (SiccPort::new(&params), SiccShim::new(&params))
    };
    replay(TEXT, begin, |(port, shim), event, a, row| {
        let mut result = Value::Null;
        match event {
            "packet" => result = json!(port.on_packet(a.get("flags"), a.get("now_ns")) as u32),
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
        (result, state(&fields, port.state(), &row["state"]))
    });
}

#[test]
fn default_and_paper_parameters_are_those_of_the_vectors() {
    assert_presets("sicc", TEXT, 125_000);
}
