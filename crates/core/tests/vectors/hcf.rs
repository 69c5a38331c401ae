// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
use super::{Args, replay};
use penstock_core::hcf::{Hcf, HcfParams, HcfPeriod, flow_key};
use serde_json::{Value, json};
use std::collections::VecDeque;

/// A port and the sizes of the packets in its two queues.
struct Port {
    hcf: Hcf,
    queues: [VecDeque<u32>; 2],
}

fn begin(row: &Value) -> Port {
    let p = Args(&row["params"]);
    let params = HcfParams {
        bins: p.get("bins"),
        credits: p.get("credits"),
        capacity_packets: p.pair("capacity_packets"),
        capacity_bytes: p.pair("capacity_bytes"),
        hashes: p.get("hashes"),
        period: [HcfPeriod::Dynamic, HcfPeriod::Fixed, HcfPeriod::Ordered]
            [p.get::<usize>("period")],
        swap: p.get("swap"),
        credits_in_bytes: p.get("credits_in_bytes"),
    };
    match row["case"].as_str() {
        Some("default") => assert_eq!(params, HcfParams::new(20)),
        Some("paper") => assert_eq!(params, HcfParams::paper(20)),
        _ => {}
    }
    let hcf = Hcf::new(params, Args(row).get("seed")).unwrap();
    Port {
        hcf,
        queues: Default::default(),
    }
}

#[test]
fn follows_vectors() {
    let text = include_str!("../../../../tests/vectors/hcf.jsonl");
    replay(text, begin, |port, event, a, _| {
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
                let key = flow_key(a.get("source"), a.get("destination"), ports[0], ports[1]);
                result = json!(key);
            }
            "tick" => port.hcf.on_tick(),
            other => panic!("unknown event {other}"),
        }
        let s = port.hcf.state();
        let credits: u32 = (0..port.hcf.params().bins)
            .map(|bin| port.hcf.credits(bin))
            .sum();
        let state = json!({
            "packets": s.packets, "bytes": s.bytes, "epoch": s.epoch, "high": s.high,
            "credits": credits,
        });
        (result, state)
    });
}
