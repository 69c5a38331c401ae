// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//! Every window scheme against the file of its name.

use super::common::Fields;
use super::{Args, assert_presets, params, replay, state, window_json};
use penstock_core::definitions::{self, Definition};
use penstock_core::{Params, WindowScheme};
use serde_json::{Value, json};
use std::ffi::c_void;

// FairQ's three parts of a tick.
unsafe extern "C" {
    fn core_fairq_on_sent(s: *mut c_void, p: *const c_void, total_bytes: u64, now_ns: u64);
    fn core_fairq_on_sample(s: *mut c_void, queue_bytes: u32);
    fn core_fairq_on_interval(s: *mut c_void, p: *const c_void, queue_bytes: u32);
}

/// A port: the scheme, its parameters, its flows.
type Port = (WindowScheme, Params, u32);

fn text_of(definition: &Definition) -> String {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/vectors");
    std::fs::read_to_string(format!("{folder}/{}.jsonl", definition.name))
        .unwrap_or_else(|error| panic!("the golden vectors of {}: {error}", definition.name))
}

fn step(port: &mut Port, event: &str, a: &Args<'_>) -> Value {
    let (scheme, params, flows) = port;
    match event {
        "flow" => {
            *flows = flows.saturating_add_signed(a.get("delta"));
            scheme.on_flows(*flows);
        }
        "mss" => scheme.on_mss(a.get("mss_bytes")),
        "queue" => scheme.on_queue(a.get("queue_bytes"), a.get("now_ns")),
        "tick" => scheme.on_tick(a.get("queue_bytes"), a.get("total_bytes"), a.get("now_ns")),
        "ack" => {
            let now = a.0["now_ns"].as_u64().unwrap_or(0);
            let (scale, mss) = (a.scale("scale"), a.get("mss_bytes"));
            return window_json(scheme.on_ack(a.get("window"), scale, mss, a.kind(), now));
        }
        "drops" => {
            let (queue, packet) = (a.get("queue_bytes"), a.get("packet_bytes"));
            return json!(scheme.drops(queue, packet, a.flag("is_control")) as u8);
        }
        // SAFETY: the scheme is FairQ, whose file alone has these, and C keeps no pointer.
        "sample" => unsafe {
            core_fairq_on_sample(scheme.state_mut().as_mut_ptr().cast(), a.get("queue_bytes"));
        },
        // SAFETY: as above.
        "sent" => unsafe {
            core_fairq_on_sent(
                scheme.state_mut().as_mut_ptr().cast(),
                params.bytes().as_ptr().cast(),
                a.get("total_bytes"),
                a.get("now_ns"),
            );
        },
        // SAFETY: as above.
        "interval" => unsafe {
            core_fairq_on_interval(
                scheme.state_mut().as_mut_ptr().cast(),
                params.bytes().as_ptr().cast(),
                a.get("queue_bytes"),
            );
        },
        other => panic!("unknown event {other}"),
    }
    Value::Null
}

#[test]
fn follow_vectors() {
    for definition in definitions::window_schemes() {
        let name = definition.name;
        let fields = Fields::of(name, &format!("{name}_state"));
        let begin = |row: &Value| {
            let params = params(definition, &row["params"]);
            (WindowScheme::new(&params), params, 0)
        };
        replay(&text_of(definition), begin, |port, event, a, row| {
            let result = step(port, event, &a);
            let mut stated = row["state"].clone();
            let derived = stated.as_object_mut().and_then(|s| s.remove("is_clamping"));
            let mut state = state(&fields, port.0.state(), &stated);
            if derived.is_some() {
                let now = row["now_ns"].as_u64().unwrap();
                state["is_clamping"] = json!(u8::from(port.0.is_clamping(now)));
            }
            (result, state)
        });
    }
}

#[test]
fn default_and_paper_parameters_are_those_of_the_vectors() {
    for definition in definitions::window_schemes() {
        assert_presets(definition.name, &text_of(definition), 125_000);
    }
}
