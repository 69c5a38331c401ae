// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
use super::common::Fields;
use super::common::functions::credits_left;
use super::{Args, assert_presets, params, replay, state};
use penstock_core::hcf::{Hcf, flow_key};
use penstock_core::{Params, definitions};
use serde_json::{Value, json};
use std::collections::VecDeque;

/// A port and the sizes of the packets in its two queues.
struct Port {
    hcf: Hcf,
    params: Params,
    queues: [VecDeque<u32>; 2],
}

const TEXT: &str = include_str!("../../../../tests/vectors/hcf.jsonl");

fn begin(row: &Value) -> Port {
    let params = params(definitions::of("hcf"), &row["params"]);
    Port {
        hcf: Hcf::new(&params, Args(row).get("seed")),
        params,
        queues: Default::default(),
    }
}

#[test]
fn follows_vectors() {
    let fields = Fields::of("hcf", "hcf_state");
    replay(TEXT, begin, |port, event, a, row| {
        let mut result = Value::Null;
        match event {
            "enqueue" => {
                let size = a.get("size_bytes");
                let queue = port.hcf.on_enqueue(a.get("key"), size);
                queue.inspect(|&q| port.queues[q].push_back(size));
                result = json!(queue.unwrap_or(2));
            }
            "dequeue" => {
                let queue = port.hcf.on_dequeue();
                if let Some(q) = queue {
                    port.hcf.departed(q, port.queues[q].pop_front().unwrap());
                }
                result = json!(queue.unwrap_or(2));
            }
            "flow_key" => {
                let ports = [a.get("source_port"), a.get("destination_port")];
                let ends = [a.get("source"), a.get("destination")];
                let key = flow_key(a.get("seed"), ends[0], ends[1], ports[0], ports[1]);
                result = json!(key);
            }
            "tick" => port.hcf.on_tick(),
            other => panic!("unknown event {other}"),
        }
        let mut stated = row["state"].clone();
        stated.as_object_mut().and_then(|s| s.remove("credits"));
        let mut state = state(&fields, port.hcf.state(), &stated);
        let bins = port.params.field("bins") as u32;
        let left = |bin| credits_left(&port.hcf, &port.params, bin);
        let credits: u32 = (0..bins).map(left).sum();
        state["credits"] = json!(credits);
        (result, state)
    });
}

#[test]
fn default_and_paper_parameters_are_those_of_the_vectors() {
    assert_presets("hcf", TEXT, 20);
}
