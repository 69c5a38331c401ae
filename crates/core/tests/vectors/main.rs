// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//! Holds the C code against the golden vectors of `tests/vectors` (see the README there).

#![allow(clippy::unwrap_used)]

mod fairq;
mod flow_count;
mod hcf;
mod hscc;
mod sicc;
mod tcp_rewrite;

use penstock_core::tcp_rewrite::{AckKind, TcpWindow};
use serde_json::{Value, json};

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

    fn pair(&self, name: &str) -> [u32; 2] {
        [0, 1].map(|i| u32::try_from(self.0[name][i].as_u64().unwrap()).unwrap())
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
