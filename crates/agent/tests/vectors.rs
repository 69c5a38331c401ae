// SPDX-License-Identifier: Apache-2.0
//! The golden vectors (`tests/vectors`) through core/ as the kernel runs it: checked by the
//! verifier, compiled by its JIT, called by BPF_PROG_TEST_RUN. Needs root.

#![allow(clippy::unwrap_used)]

#[allow(warnings)]
mod skel {
    include!(concat!(env!("OUT_DIR"), "/vectors.skel.rs"));
}

#[path = "../../core/tests/common/fields.rs"]
mod fields;

use fields::Fields;
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{Object, ProgramInput};
use penstock_core::Params;
use penstock_core::definitions::{self, Definition};
use serde_json::{Value, json};
use skel::{VectorsSkelBuilder, types};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::mem::MaybeUninit;

/// The global data of the programs, shared with the kernel, and the programs.
struct Kernel<'obj> {
    data: *mut types::bss,
    object: &'obj Object,
}

impl Kernel<'_> {
    /// The data as the programs left it.
    fn read(&self) -> types::bss {
        // SAFETY: mapped as long as the object lives; nothing else writes while no program runs.
        unsafe { self.data.read_volatile() }
    }

    fn write(&mut self, change: impl FnOnce(&mut types::bss)) {
        let mut data = self.read();
        change(&mut data);
        // SAFETY: as in `read`.
        unsafe { self.data.write_volatile(data) }
    }

    fn run(&self, file: &str, event: &str) {
        let name = format!("run_{file}_{event}");
        let program = self.object.progs_mut().find(|p| p.name() == name.as_str());
        let program = program.unwrap_or_else(|| panic!("no program {name}"));
        let output = program.test_run(ProgramInput::default()).unwrap();
        assert_eq!(output.return_value, 0, "{name}");
    }
}

/// Copies numbers of a JSON object into fields of the same names.
macro_rules! fill {
    ($target:expr, $json:expr, [$($field:ident),+ $(,)?]) => {{
        let numbers = $json.as_object().unwrap();
        for name in numbers.keys() {
            assert!([$(stringify!($field)),+].contains(&name.as_str()), "{name} is not known");
        }
        $(if let Some(number) = numbers.get(stringify!($field)) {
            $target.$field = number.as_i64().unwrap() as _;
        })+
    }};
}

macro_rules! numbers {
    ($source:expr, [$($field:ident),+]) => {
        json!({$(stringify!($field): $source.$field),+})
    };
}

fn fill_arguments(args: &mut types::arguments, row: &Value) {
    *args = types::arguments::default();
    fill!(
        args,
        row["args"],
        [
            ack,
            bytes,
            checksum,
            delta,
            destination,
            destination_port,
            direction,
            field,
            flags,
            floor_bytes,
            idle_ns,
            is_control,
            is_full,
            is_out,
            key,
            kind,
            limit_bytes,
            mss,
            mss_bytes,
            network,
            new,
            now_ns,
            offset,
            old,
            own,
            packet_bytes,
            payload,
            queue,
            queue_bytes,
            scale,
            seed,
            seq,
            size_bytes,
            source,
            source_port,
            total_bytes,
            window,
            word,
        ]
    );
    if let Some(now) = row["now_ns"].as_u64() {
        args.now_ns = now;
    }
}

fn window_of(data: &types::bss) -> Value {
    numbers!(data.rewritten, [window, changed, floored])
}

/// Replays one file: `begin` prepares a case, `after` finishes an event, `state` returns the state,
/// as far as the row has it.
fn replay(
    file: &str,
    text: &str,
    begin: impl Fn(&mut Kernel<'_>, &Value),
    after: impl Fn(&mut Kernel<'_>, &Value),
    state: impl Fn(&Kernel<'_>, &Value) -> Value,
) {
    let mut memory = MaybeUninit::uninit();
    let open = VectorsSkelBuilder::default().open(&mut memory).unwrap();
    let mut loaded = open
        .load()
        .expect("the kernel takes the programs; loading them needs root and BTF");
    let data: *mut types::bss = loaded.maps.bss_data.take().unwrap();
    let object = libbpf_rs::skel::Skel::object(&loaded);
    let mut kernel = Kernel { data, object };
    let mut events = 0;
    for (number, line) in text.lines().enumerate() {
        let row: Value = serde_json::from_str(line).unwrap();
        let Some(event) = row["event"].as_str() else {
            // SAFETY: plain integers.
            kernel.write(|data| *data = unsafe { std::mem::zeroed() });
            begin(&mut kernel, &row);
            continue;
        };
        kernel.write(|data| {
            fill_arguments(&mut data.args, &row);
            data.result = i64::MIN;
            data.rewritten = types::tcp_window {
                window: 1,
                changed: 255,
                floored: 255,
            };
        });
        kernel.run(file, event);
        let data = kernel.read();
        let result = match &row["result"] {
            Value::Null => Value::Null,
            Value::Object(_) => window_of(&data),
            _ => json!(data.result),
        };
        after(&mut kernel, &row);
        let state = if row["state"].is_null() {
            Value::Null
        } else {
            state(&kernel, &row["state"])
        };
        assert_eq!(
            (&result, &state),
            (&row["result"], &row["state"]),
            "{file}, line {}: {line}",
            number + 1
        );
        events += 1;
    }
    assert!(events > 0, "an empty file proves nothing");
}

#[test]
fn tcp_rewrite() {
    let text = include_str!("../../../tests/vectors/tcp_rewrite.jsonl");
    replay(
        "tcp_rewrite",
        text,
        |_, _| {},
        |_, _| {},
        |kernel, _| {
            let edge = kernel.read().edge;
            json!({"edge": (edge.is_known != 0).then_some(edge.seq)})
        },
    );
}

#[test]
fn flow() {
    let text = include_str!("../../../tests/vectors/flow.jsonl");
    let run = |kernel: &mut Kernel<'_>, _: &Value| kernel.run("flow", "state");
    replay(
        "flow",
        text,
        |_, _| {},
        run,
        |kernel, _| {
            numbers!(
                kernel.read().derived,
                [
                    is_counted,
                    is_half_open,
                    scale_data,
                    scale_acks,
                    mss,
                    mss_at_port
                ]
            )
        },
    );
}

#[test]
fn segment() {
    let text = include_str!("../../../tests/vectors/segment.jsonl");
    replay(
        "segment",
        text,
        |_, _| {},
        |_, _| {},
        |kernel, _| numbers!(kernel.read().segments, [bytes]),
    );
}

#[test]
fn flow_counter() {
    let text = include_str!("../../../tests/vectors/flow_counter.jsonl");
    replay(
        "flow_counter",
        text,
        |_, _| {},
        |_, _| {},
        |_, _| Value::Null,
    );
}

/// The struct of a scheme's parameters, by the names of its fields.
fn scheme_params(definition: &'static Definition, fields: &Value) -> Params {
    let mut params = Params::new(definition, 0);
    for (name, value) in fields.as_object().unwrap() {
        params.set_field(name, value.as_u64().unwrap());
    }
    params
}

/// Every window scheme of `core/schemes.h` against the file of its name.
#[test]
fn window_schemes() {
    for definition in definitions::window_schemes() {
        let name = definition.name;
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/vectors");
        let text = std::fs::read_to_string(format!("{folder}/{name}.jsonl")).unwrap();
        let fields = Fields::of(name, &format!("{name}_state"));
        let begin = |kernel: &mut Kernel<'_>, row: &Value| {
            let params = scheme_params(definition, &row["params"]);
            kernel.write(|data| {
                let all = std::ptr::from_mut(&mut data.params).cast::<u8>();
                let bytes = params.bytes();
                // SAFETY: the struct of the scheme is at its offset in that of all.
                unsafe {
                    let target = all.add(definition.offset);
                    target.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
                }
            });
            kernel.run(name, "init");
        };
        let finish = |kernel: &mut Kernel<'_>, _: &Value| kernel.run(name, "state");
        replay(name, &text, begin, finish, |kernel, like| {
            let data = kernel.read();
            let field = |field: &String| match field.as_str() {
                "is_clamping" => json!(data.derived.is_clamping),
                field => json!(fields.get(&data.state, field, 0)),
            };
            let named = like.as_object().unwrap().keys();
            Value::Object(named.map(|name| (name.clone(), field(name))).collect())
        });
    }
}

#[test]
fn sicc() {
    let text = include_str!("../../../tests/vectors/sicc.jsonl");
    let begin = |kernel: &mut Kernel<'_>, row: &Value| {
        kernel.write(|data| {
            fill!(
                data.sicc_params,
                row["params"],
                [
                    interval_ns,
                    duration_ns,
                    buffer_bytes,
                    alpha1_q16,
                    alpha2_q16,
                    initial_window_segments,
                    mss_bytes,
                    floor_segments,
                    off_needs_both,
                    off_always,
                    on_when_old,
                    at_once,
                    counts,
                    options_of,
                    expires,
                    pair_scale,
                    rounds_down
                ]
            );
        });
    };
    replay(
        "sicc",
        text,
        begin,
        |_, _| {},
        |kernel, _| numbers!(kernel.read().sicc, [beta, queue_q8, is_on]),
    );
}

#[test]
fn hcf() {
    let text = include_str!("../../../tests/vectors/hcf.jsonl");
    // The sizes of the packets in the two queues.
    let queues = RefCell::new([VecDeque::new(), VecDeque::new()]);
    let begin = |kernel: &mut Kernel<'_>, row: &Value| {
        queues.take();
        let pair = |name| [0, 1].map(|i| row["params"][name][i].as_u64().unwrap() as u32);
        let mut scalars = row["params"].clone();
        for name in ["capacity_packets", "capacity_bytes"] {
            scalars.as_object_mut().unwrap().remove(name);
        }
        kernel.write(|data| {
            let params = &mut data.hcf_params;
            fill!(
                params,
                scalars,
                [
                    bins,
                    credits,
                    hashes,
                    period,
                    swap,
                    credits_in_bytes,
                    drop,
                    low_keeps_credits
                ]
            );
            params.capacity_packets = pair("capacity_packets");
            params.capacity_bytes = pair("capacity_bytes");
            data.args.seed = row["seed"].as_u64().unwrap();
        });
        kernel.run("hcf", "init");
    };
    let after = |kernel: &mut Kernel<'_>, row: &Value| {
        let mut queues = queues.borrow_mut();
        let queue = row["result"].as_u64().unwrap_or(2) as usize;
        match row["event"].as_str().unwrap() {
            "enqueue" if queue < 2 => {
                queues[queue].push_back(row["args"]["size_bytes"].as_u64().unwrap());
            }
            "dequeue" if queue < 2 => {
                let size = queues[queue].pop_front().unwrap();
                kernel.write(|data| (data.args.queue, data.args.size_bytes) = (queue as u64, size));
                kernel.run("hcf", "departed");
            }
            _ => {}
        }
        kernel.run("hcf", "state");
    };
    replay("hcf", text, begin, after, |kernel, _| {
        let data = kernel.read();
        let mut state = numbers!(data.hcf, [packets, bytes, epoch, high]);
        state["credits"] = json!(data.derived.credits);
        state
    });
}
