// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//! Compares the C code with the golden vectors of `tests/vectors` (see the README there).

#![allow(clippy::unwrap_used)]

#[path = "../common/mod.rs"]
mod common;
mod flow;
mod flow_counter;
mod grant;
mod hcf;
mod schemes;
mod segment;
mod sicc;
mod tcp_rewrite;

use penstock_core::Params;
use penstock_core::definitions::{self, Definition};
use penstock_core::tcp_rewrite::{AckKind, TcpWindow};
use serde_json::{Map, Value, json};

/// The numbers of one JSON object.
struct Args<'a>(&'a Value);

impl Args<'_> {
    fn get<T: TryFrom<i64>>(&self, name: &str) -> T
    where
        T::Error: std::fmt::Debug,
    {
        let number = self.0[name]
            .as_i64()
            .unwrap_or_else(|| panic!("no {name} in {}", self.0));
        T::try_from(number).unwrap()
    }

    fn flag(&self, name: &str) -> bool {
        self.get::<u8>(name) == 1
    }

    fn scale(&self, name: &str) -> Option<u8> {
        Some(self.get(name)).filter(|&scale| scale != 255)
    }

    fn kind(&self) -> AckKind {
        [AckKind::Later, AckKind::First, AckKind::Syn][self.get::<usize>("kind")]
    }
}

fn window_json(out: TcpWindow) -> Value {
    json!({"window": out.window, "changed": u8::from(out.changed), "floored": u8::from(out.floored)})
}

/// Parameters by the names of their fields in C.
fn params(definition: &'static Definition, fields: &Value) -> Params {
    let mut params = Params::new(definition, 0);
    for (name, value) in fields.as_object().unwrap() {
        match value {
            Value::Array(values) => values.iter().enumerate().for_each(|(index, value)| {
                params.set_field(&format!("{name}[{index}]"), value.as_u64().unwrap());
            }),
            value => params.set_field(name, value.as_u64().unwrap()),
        }
    }
    params
}

/// The fields of a state that `like` names.
fn state(fields: &common::Fields, bytes: &[u8], like: &Value) -> Value {
    let field = |name: &String, like: &Value| match like {
        Value::Array(elements) => (0..elements.len())
            .map(|index| fields.get(bytes, name, index))
            .collect(),
        _ => json!(fields.get(bytes, name, 0)),
    };
    let named = like.as_object().into_iter().flatten();
    Value::Object(
        named
            .map(|(name, like)| (name.clone(), field(name, like)))
            .collect::<Map<_, _>>(),
    )
}

/// Replays one file: `begin` makes an object of a case line, `step` gives result and state.
fn replay<S>(
    text: &str,
    begin: impl Fn(&Value) -> S,
    step: impl Fn(&mut S, &str, Args<'_>, &Value) -> (Value, Value),
) {
    let mut subject = None;
    for (number, line) in text.lines().enumerate() {
        let row: Value = serde_json::from_str(line).unwrap();
        let Some(event) = row["event"].as_str() else {
            subject = Some(begin(&row));
            continue;
        };
        let (result, state) = step(subject.as_mut().unwrap(), event, Args(&row["args"]), &row);
        assert_eq!(
            (&result, &state),
            (&row["result"], &row["state"]),
            "line {}: {line}",
            number + 1
        );
    }
    assert!(subject.is_some(), "an empty file proves nothing");
}

/// The variant of a scheme with a name; `None` if it has none of it.
fn variant(definition: &'static Definition, name: &str, buffer: u32) -> Option<Params> {
    let variant = definition.variants.iter().find(|each| each.name == name)?;
    let mut params = Params::paper(definition, buffer);
    for (key, value) in &variant.changes {
        params.set(key, *value).unwrap();
    }
    Some(params)
}

/// A case named `default`, `paper` or as a variant has the parameters of that name, as far as it
/// gives them.
fn assert_presets(name: &str, text: &str, buffer: u32) {
    let definition = definitions::of(name);
    for line in text.lines() {
        let row: Value = serde_json::from_str(line).unwrap();
        let preset = match row["case"].as_str() {
            Some("default") => Params::new(definition, buffer),
            Some("paper") => Params::paper(definition, buffer),
            Some(name) => match variant(definition, name, buffer) {
                Some(params) => params,
                None => continue,
            },
            None => continue,
        };
        let golden = params(definition, &row["params"]);
        for name in row["params"].as_object().unwrap().keys() {
            if row["params"][name].is_array() {
                for index in 0..2 {
                    let name = format!("{name}[{index}]");
                    assert_eq!(golden.field(&name), preset.field(&name), "{name}");
                }
            } else {
                assert_eq!(golden.field(name), preset.field(name), "{name}");
            }
        }
    }
}
