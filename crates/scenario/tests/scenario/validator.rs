// SPDX-License-Identifier: Apache-2.0
//! As much of JSON Schema as the schema of scenarios uses; any other keyword fails the test.

use serde_json::{Map, Value};

/// Keywords that only describe.
const NOTES: [&str; 8] = [
    "$schema",
    "$defs",
    "title",
    "description",
    "default",
    "format",
    "examples",
    "pattern",
];

/// What is wrong with `value`, the first thing only.
pub fn violation(root: &Value, schema: &Value, value: &Value) -> Option<String> {
    let Value::Object(keywords) = schema else {
        return (schema == &Value::Bool(false)).then(|| format!("{value} is not allowed"));
    };
    keywords
        .iter()
        .filter(|(keyword, _)| !NOTES.contains(&keyword.as_str()))
        .find_map(|(keyword, rule)| broken(root, keywords, keyword, rule, value))
}

fn broken(
    root: &Value,
    schema: &Map<String, Value>,
    keyword: &str,
    rule: &Value,
    value: &Value,
) -> Option<String> {
    let fits = |schema: &Value| violation(root, schema, value).is_none();
    let count = || {
        rule.as_array()
            .unwrap()
            .iter()
            .filter(|schema| fits(schema))
            .count()
    };
    let holds = match keyword {
        "$ref" => {
            let name = rule.as_str().unwrap().strip_prefix("#/$defs/").unwrap();
            return violation(root, &root["$defs"][name], value);
        }
        "type" => match rule {
            Value::Array(types) => types.iter().any(|name| is_type(name, value)),
            name => is_type(name, value),
        },
        "enum" => rule.as_array().unwrap().contains(value),
        "const" => rule == value,
        "minimum" => value.as_f64().is_none_or(|n| n >= rule.as_f64().unwrap()),
        "maximum" => value.as_f64().is_none_or(|n| n <= rule.as_f64().unwrap()),
        "minItems" => value
            .as_array()
            .is_none_or(|a| a.len() as u64 >= rule.as_u64().unwrap()),
        "anyOf" => count() > 0,
        "oneOf" => count() == 1,
        "required" => value.as_object().is_none_or(|object| {
            let mut names = rule.as_array().unwrap().iter();
            names.all(|name| object.contains_key(name.as_str().unwrap()))
        }),
        "items" => {
            return value
                .as_array()?
                .iter()
                .find_map(|item| violation(root, rule, item));
        }
        "properties" => {
            return value.as_object()?.iter().find_map(|(key, item)| {
                violation(root, rule.get(key)?, item).map(|what| format!("{key}: {what}"))
            });
        }
        "additionalProperties" => {
            let known = schema.get("properties").and_then(Value::as_object);
            return value.as_object()?.iter().find_map(|(key, item)| {
                let is_known = known.is_some_and(|known| known.contains_key(key));
                let what = violation(root, rule, item).filter(|_| !is_known);
                what.map(|what| format!("{key}: {what}"))
            });
        }
        other => panic!("the schema uses {other}, which this validator does not know"),
    };
    (!holds).then(|| format!("{value} breaks {keyword}: {rule}"))
}

fn is_type(name: &Value, value: &Value) -> bool {
    match name.as_str().unwrap() {
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "null" => value.is_null(),
        other => panic!("type {other}"),
    }
}
