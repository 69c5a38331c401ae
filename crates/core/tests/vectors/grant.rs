// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
use super::common::Fields;
use super::{Args, assert_presets, params, replay, state};
use penstock_core::definitions;
use penstock_core::grant::{Grant, GrantAction, GrantOpening, GrantPacket};
use serde_json::{Value, json};

const TEXT: &str = include_str!("../../../../tests/vectors/grant.jsonl");

fn packet(a: &Args<'_>) -> GrantPacket {
    GrantPacket {
        now_ns: a.get("now_ns"),
        seq: a.get("seq"),
        ack: a.get("ack"),
        payload: a.get("payload"),
        ts_val: a.get("ts_val"),
        ts_ecr: a.get("ts_ecr"),
        window: a.get("window"),
        mss: a.get("mss"),
        scale: a.get("scale"),
        flags: a.get("flags"),
        ..GrantPacket::default()
    }
}

fn opening(row: &Value) -> GrantOpening {
    if row.is_null() {
        return GrantOpening::default();
    }
    GrantOpening {
        seq: Args(row).get("seq"),
        window: Args(row).get("window"),
        shown: Args(row).get("shown"),
        by_sender: 1,
    }
}

fn action(action: Option<GrantAction>) -> Value {
    match action {
        Some(a) => json!([a.flow, a.seq, a.ack, a.ts_val, a.ts_ecr, a.window]),
        None => json!([]),
    }
}

#[test]
fn follows_vectors() {
    let port_fields = Fields::of("grant_state", "grant_port");
    let flow_fields = Fields::of("grant_state", "grant_flow");
    let begin = |row: &Value| {
        let params = params(definitions::of("grant"), &row["params"]);
        Grant::new(
            &params,
            Args(row).get("rate_bps"),
            Args(row).flag("never_shrinks"),
        )
    };
    replay(TEXT, begin, |grant, event, a, row| {
        let mut result = Value::Null;
        match event {
            "syn" => {
                let (mss, queue) = (a.get("mss"), a.get("queue"));
                let half_open = a.get("half_open");
                result = json!(grant.syn_window(mss, half_open, queue, a.get("now_ns")));
            }
            "begin" => {
                let flow = grant.begin(&packet(&a), &opening(&a.0["opening"]));
                result = json!(flow.unwrap_or(0));
            }
            "close" => grant.close(a.get("flow")),
            "bytes" => grant.on_bytes(a.get("count"), a.get("now_ns")),
            "ack" => {
                result = json!(grant.on_ack(a.get("flow"), &packet(&a), a.get("queue")));
            }
            "data" => grant.on_data(a.get("flow"), &packet(&a)),
            "next" => result = action(grant.next(a.get("queue"), a.get("now_ns"))),
            "timer" => result = action(grant.on_timer(a.get("queue"), a.get("now_ns"))),
            "learn" => grant.learn(),
            other => panic!("unknown event {other}"),
        }
        let mut stated = row["state"].clone();
        let like = stated.as_object_mut().and_then(|s| s.remove("flow"));
        let mut seen = state(&port_fields, grant.state(), &stated);
        if let Some(like) = like {
            seen["flow"] = state(&flow_fields, grant.flow(a.get("flow")), &like);
        } else if row["args"]["flow"].is_number() {
            assert!(!grant.is_open(a.get("flow")), "the flow is still open");
        }
        (result, seen)
    });
}

#[test]
fn default_parameters_are_those_of_the_vectors() {
    assert_presets("grant", TEXT, 128_000);
}
