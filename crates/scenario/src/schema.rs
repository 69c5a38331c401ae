// SPDX-License-Identifier: Apache-2.0
//! The JSON Schema of scenario files, made from the structs.

use serde_json::Value;

use super::Scenario;

/// JSON Schema, draft 2020-12, of scenario files.
pub fn json_schema() -> String {
    let mut schema = Value::from(schemars::schema_for!(Scenario));
    for part in ["Queue", "Window", "Controller"] {
        allow_base(&mut schema["$defs"][part]);
    }
    serde_json::to_string_pretty(&schema).unwrap_or_else(|error| unreachable!("{error}"))
}

/// A part of a scheme may leave its kind to the scheme's base, and may then fit several kinds.
fn allow_base(part: &mut Value) {
    let mut kinds = part["oneOf"].take();
    for kind in kinds.as_array_mut().into_iter().flatten() {
        if let Some(required) = kind["required"].as_array_mut() {
            required.retain(|key| key != "kind");
        }
    }
    if let Some(part) = part.as_object_mut() {
        part.remove("oneOf");
        part.insert("anyOf".to_owned(), kinds);
    }
}
