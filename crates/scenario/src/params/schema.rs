// SPDX-License-Identifier: Apache-2.0
//! The JSON Schema of a scheme's parameters.

use penstock_core::definitions::{ABOVE_0, Param, Preset, Unit};
use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value as Json, json};

use super::{Kind, Value};
use crate::quantities::{Buffer, Share};
use crate::units::{Rate, Time};

/// A preset as a reader of the documentation has it: "0.1", "100 us", "the network's RTT (100 us if
/// not known)", "none".
pub fn preset_text(param: &Param, preset: Preset) -> String {
    let text = match Value::of(param.unit, preset) {
        Value::Time(time) => time.to_string(),
        Value::Share(share) => share.0.to_string(),
        Value::Rate(rate) => rate.to_string(),
        Value::Count(count) => count.to_string(),
        Value::Amount(amount) => amount.to_string(),
        Value::Flag(flag) => flag.to_string(),
        Value::Word(place) => param.words[place].word.to_owned(),
    };
    match preset.rtts {
        _ if param.is_optional() => "none".to_owned(),
        0 => text,
        1 => format!("the network's RTT ({text} where it is not known)"),
        rtts => format!("{rtts} of the network's RTTs ({text} where these are not known)"),
    }
}

/// The range as a reader of the documentation has it.
pub fn range_text(param: &Param) -> String {
    let number = |value: f64| match param.unit {
        Unit::Time => Time::from_nanos(value as u64).to_string(),
        Unit::Rate => Rate(value as u64).to_string(),
        _ => value.to_string(),
    };
    match (param.unit, param.min == ABOVE_0) {
        (Unit::Flag, _) => "false, true".to_owned(),
        (Unit::Enum, _) => {
            let words: Vec<&str> = param.words.iter().map(|word| word.word).collect();
            words.join(", ")
        }
        (_, true) => format!("above 0, at most {}", number(param.max)),
        (_, false) => format!("{} to {}", number(param.min), number(param.max)),
    }
}

fn description(param: &Param) -> String {
    let [default, paper] = [param.default, param.paper].map(|preset| preset_text(param, preset));
    let mut text = format!("{}. Default: {default}", param.meaning);
    if param.default != param.paper {
        text += &format!("; paper: {paper}");
    }
    text + "."
}

fn property(param: &Param, generator: &mut SchemaGenerator) -> Json {
    let mut schema = match param.unit {
        Unit::Time => generator.subschema_for::<Time>(),
        Unit::Share | Unit::BufferShare | Unit::BufferLimit => generator.subschema_for::<Share>(),
        Unit::Rate => generator.subschema_for::<Rate>(),
        Unit::Amount => generator.subschema_for::<Buffer>(),
        Unit::Flag => json_schema!({ "type": "boolean" }),
        Unit::Segments | Unit::SegmentBytes | Unit::Count => json_schema!({
            "type": "integer",
            "minimum": param.min,
            "maximum": param.max,
        }),
        Unit::Enum => {
            let words = param.words.iter().map(
                |word| json!({ "const": word.word, "type": "string", "description": word.meaning }),
            );
            json_schema!({ "oneOf": words.collect::<Vec<_>>() })
        }
    };
    schema.insert("description".to_owned(), description(param).into());
    if !param.is_optional() && param.default == param.paper && param.default.rtts == 0 {
        let default = Value::of(param.unit, param.default);
        let json = match default {
            Value::Word(place) => json!(param.words[place].word),
            value => json!(value),
        };
        schema.insert("default".to_owned(), json);
    }
    schema.into()
}

impl Kind {
    /// The schema of its table, without the key `kind`.
    pub(crate) fn schema(&self, generator: &mut SchemaGenerator) -> Schema {
        let mut properties = Map::new();
        if self.definition.is_some() {
            let variant = json!({
                "description": "Whose values parameters have that are not given: those found to \
                    work on real TCP, or as printed.",
                "type": "string",
                "enum": self.variants,
                "default": self.variants[0],
            });
            properties.insert("variant".to_owned(), variant);
        }
        for param in self.params() {
            properties.insert(param.key.to_owned(), property(param, generator));
        }
        json_schema!({
            "description": self.title,
            "type": "object",
            "properties": properties,
            "additionalProperties": false,
        })
    }
}
