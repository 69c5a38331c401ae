// SPDX-License-Identifier: Apache-2.0
//! How long transfers are: "10 kB", "websearch", "datamining", "file.cdf", { exponential = "10 kB" }.

use std::borrow::Cow;
use std::fmt;
use std::path::PathBuf;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};

use super::error::unknown;
use super::quantities::Bytes;

/// The length of a transfer, or how lengths are distributed.
#[derive(Clone, Debug, PartialEq)]
pub enum Size {
    /// Always the same.
    Fixed(Bytes),
    /// Exponential with this mean.
    Exponential(Bytes),
    /// WebSearch (DCTCP paper).
    WebSearch,
    /// DataMining (VL2 paper).
    DataMining,
    /// A file of `BYTES CUMULATIVE_PROBABILITY` lines; relative to the scenario's folder.
    File(PathBuf),
}

const ENDINGS: [&str; 3] = [".cdf", ".txt", ".csv"];

impl Size {
    fn read(text: &str) -> Result<Size, String> {
        match text {
            "websearch" => Ok(Size::WebSearch),
            "datamining" => Ok(Size::DataMining),
            _ if ENDINGS.iter().any(|ending| text.ends_with(ending)) => {
                Ok(Size::File(PathBuf::from(text)))
            }
            _ if text.starts_with(|c: char| c.is_ascii_digit()) => {
                Bytes::read(text).map(Size::Fixed)
            }
            _ if text.starts_with('-') => Bytes::read(text).map(Size::Fixed), // the error
            _ => Err(unknown(
                "size",
                text,
                &["websearch", "datamining", "FILE.cdf", "10 kB"],
            )),
        }
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Size;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "a size as in \"10 kB\", websearch, datamining, FILE.cdf, { exponential = \"10 kB\" }",
        )
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Size, E> {
        Size::read(text).map_err(E::custom)
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Size, E> {
        Bytes::read("0").map(Size::Fixed).map_err(E::custom)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Size, A::Error> {
        const KEYS: &[&str] = &["exponential"];
        let mut mean = None;
        while let Some(key) = map.next_key::<String>()? {
            if key == "exponential" {
                mean = Some(map.next_value()?);
            } else {
                map.next_value::<IgnoredAny>()?;
                return Err(A::Error::custom(unknown("key", &key, KEYS)));
            }
        }
        mean.map(Size::Exponential)
            .ok_or_else(|| A::Error::missing_field("exponential"))
    }
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Size, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}

impl Serialize for Size {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Size::Fixed(bytes) => bytes.serialize(serializer),
            Size::WebSearch => serializer.serialize_str("websearch"),
            Size::DataMining => serializer.serialize_str("datamining"),
            Size::File(path) => path.serialize(serializer),
            Size::Exponential(mean) => {
                let mut map = serializer.serialize_map(Some(1))?;
                map.serialize_entry("exponential", mean)?;
                map.end()
            }
        }
    }
}

impl JsonSchema for Size {
    fn schema_name() -> Cow<'static, str> {
        "Size".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "Length of a transfer: fixed (\"10 kB\"), \"websearch\" (DCTCP paper), \"datamining\" (VL2 paper), a file of BYTES CUMULATIVE_PROBABILITY lines (.cdf, .txt, .csv; relative to the scenario's folder), or exponential with a mean.",
            "anyOf": [
                generator.subschema_for::<Bytes>(),
                { "enum": ["websearch", "datamining"] },
                { "type": "string", "pattern": "\\.(cdf|txt|csv)$" },
                {
                    "type": "object",
                    "properties": { "exponential": generator.subschema_for::<Bytes>() },
                    "required": ["exponential"],
                    "additionalProperties": false,
                },
            ],
        })
    }
}
