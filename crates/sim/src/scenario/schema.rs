// SPDX-License-Identifier: Apache-2.0
//! The JSON Schema of scenario files, made from the structs.

use super::Scenario;

/// JSON Schema, draft 2020-12, of scenario files.
pub fn json_schema() -> String {
    let schema = schemars::schema_for!(Scenario);
    serde_json::to_string_pretty(&schema).unwrap_or_else(|error| unreachable!("{error}"))
}
