// SPDX-License-Identifier: Apache-2.0
//! The seeds of a scenario: a number of them or a list.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};
use serde::{Serialize, Serializer};

/// The seeds to run with, in order. A number n stands for 1, 2, ... n; written as a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seeds(Vec<u64>);

impl Seeds {
    /// The seeds in order.
    pub fn list(&self) -> &[u64] {
        &self.0
    }
}

impl Default for Seeds {
    fn default() -> Seeds {
        Seeds(vec![1])
    }
}

impl<'de> Deserialize<'de> for Seeds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Seeds, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Seeds;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("how many seeds, at least 1, or a list of seeds")
            }
            fn visit_i64<E: Error>(self, count: i64) -> Result<Seeds, E> {
                match u64::try_from(count) {
                    Ok(count @ 1..=100_000) => Ok(Seeds((1..=count).collect())),
                    _ => Err(E::custom(format!("is {count}; allowed: 1 to 100000 seeds"))),
                }
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Seeds, A::Error> {
                let mut seeds = Vec::new();
                while let Some(seed) = seq.next_element()? {
                    seeds.push(seed);
                }
                Ok(Seeds(seeds))
            }
        }
        deserializer.deserialize_any(Reader)
    }
}

impl Serialize for Seeds {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl JsonSchema for Seeds {
    fn schema_name() -> Cow<'static, str> {
        "Seeds".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "How many seeds (1, 2, ...), or a list of seeds.",
            "anyOf": [
                { "type": "integer", "minimum": 1, "maximum": 100_000 },
                { "type": "array", "items": { "type": "integer", "minimum": 0 }, "minItems": 1 },
            ],
        })
    }
}
