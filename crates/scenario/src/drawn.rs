// SPDX-License-Identifier: Apache-2.0
//! Quantities that are always the same, or drawn from a distribution: "10 kB", "websearch",
//! "file.cdf", { exponential = "10 kB" }, { lognormal = "1 ms", sigma = 2 }.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::path::PathBuf;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{
    Deserialize, DeserializeOwned, Deserializer, Error, IgnoredAny, MapAccess, Visitor,
};
use serde::ser::{Serialize, SerializeMap, Serializer};

use super::error::unknown;
use super::quantities::Bytes;
use crate::units::Time;

/// A quantity, or how it is distributed.
#[derive(Clone, Debug, PartialEq)]
pub enum Drawn<Q> {
    /// Always the same.
    Fixed(Q),
    /// Exponential with this mean.
    Exponential(Q),
    /// The logarithm is normal with deviation `sigma`; half are below `median`.
    Lognormal {
        /// The median.
        median: Q,
        /// Standard deviation of the natural logarithm.
        sigma: f64,
    },
    /// Equally often each value between the two.
    Uniform(Q, Q),
    /// Pareto between the two: P(x > v) falls as v^-shape.
    Pareto {
        /// The least.
        min: Q,
        /// The most.
        max: Q,
        /// The exponent.
        shape: f64,
    },
    /// A built-in one of this name.
    Named(&'static str),
    /// A file of `VALUE CUMULATIVE_PROBABILITY` lines; relative to the scenario's folder.
    File(PathBuf),
}

/// How long transfers are.
pub type Size = Drawn<Bytes>;

/// How long something takes.
pub type Delay = Drawn<Time>;

/// What can be drawn.
pub trait Quantity:
    Copy + PartialOrd + fmt::Display + DeserializeOwned + Serialize + JsonSchema
{
    /// What an error calls it, and an example.
    const NAME: (&'static str, &'static str);
    /// Names of built-in distributions.
    const BUILT_IN: &'static [&'static str];
    /// What a file's first column has.
    const COLUMN: &'static str;
    /// Reads it with its unit.
    fn of_text(text: &str) -> Result<Self, String>;
    /// Whether it is nothing.
    fn is_nothing(self) -> bool;
}

impl Quantity for Bytes {
    const NAME: (&'static str, &'static str) = ("size", "10 kB");
    const BUILT_IN: &'static [&'static str] = super::size::PUBLISHED_SIZES;
    const COLUMN: &'static str = "BYTES";
    fn of_text(text: &str) -> Result<Bytes, String> {
        Bytes::read(text)
    }
    fn is_nothing(self) -> bool {
        self.0 == 0
    }
}

impl Quantity for Time {
    const NAME: (&'static str, &'static str) = ("time", "1 ms");
    const BUILT_IN: &'static [&'static str] = &[];
    const COLUMN: &'static str = "SECONDS";
    fn of_text(text: &str) -> Result<Time, String> {
        Time::read(text)
    }
    fn is_nothing(self) -> bool {
        self == Time::ZERO
    }
}

const ENDINGS: [&str; 3] = [".cdf", ".txt", ".csv"];
const KEYS: [&str; 6] = [
    "exponential",
    "lognormal",
    "sigma",
    "uniform",
    "pareto",
    "shape",
];

impl<Q: Quantity> Drawn<Q> {
    fn read(text: &str) -> Result<Drawn<Q>, String> {
        if let Some(name) = Q::BUILT_IN.iter().find(|name| **name == text) {
            return Ok(Drawn::Named(name));
        }
        if ENDINGS.iter().any(|ending| text.ends_with(ending)) {
            return Ok(Drawn::File(PathBuf::from(text)));
        }
        if text.starts_with(|c: char| c.is_ascii_digit() || c == '-') {
            return Q::of_text(text).map(Drawn::Fixed);
        }
        let mut allowed = Q::BUILT_IN.to_vec();
        allowed.extend(["FILE.cdf", Q::NAME.1]);
        Err(unknown(Q::NAME.0, text, &allowed))
    }

    /// Whether it is always the same.
    pub const fn is_fixed(&self) -> bool {
        matches!(self, Drawn::Fixed(_))
    }

    /// Whether it is always nothing.
    pub fn is_zero(&self) -> bool {
        matches!(self, Drawn::Fixed(value) if value.is_nothing())
    }

    /// The file, if it is in one.
    pub const fn file(&self) -> Option<&PathBuf> {
        match self {
            Drawn::File(path) => Some(path),
            _ => None,
        }
    }

    /// The same, to be completed.
    pub const fn file_mut(&mut self) -> Option<&mut PathBuf> {
        match self {
            Drawn::File(path) => Some(path),
            _ => None,
        }
    }

    /// What cannot be drawn: the key below its own, and why.
    pub(super) fn problem(&self, may_be_zero: bool) -> Option<(&'static str, String)> {
        let positive = |key, value: Q| {
            let what = format!(
                "is 0; allowed: 1 {} and more",
                if Q::NAME.0 == "size" { "B" } else { "ps" }
            );
            value.is_nothing().then_some((key, what))
        };
        let above_0 = |key, value: f64, most: f64| {
            let is_valid = value > 0.0 && value <= most;
            let what = || format!("is {value}; allowed: above 0, at most {most}");
            (!is_valid).then(|| (key, what()))
        };
        match self {
            Drawn::Fixed(_) if may_be_zero => None,
            Drawn::Fixed(value) => positive("", *value),
            Drawn::Exponential(mean) => positive(".exponential", *mean),
            Drawn::Lognormal { median, sigma } => {
                positive(".lognormal", *median).or_else(|| above_0(".sigma", *sigma, 10.0))
            }
            Drawn::Uniform(min, max) => (min > max)
                .then(|| {
                    (
                        ".uniform",
                        format!("{min} is above {max}; allowed: the least, then the most"),
                    )
                })
                .or_else(|| positive(".uniform", *max)),
            Drawn::Pareto { min, max, shape } => (min >= max)
                .then(|| {
                    (
                        ".pareto",
                        format!("{min} is not below {max}; allowed: the least, then the most"),
                    )
                })
                .or_else(|| positive(".pareto", *min))
                .or_else(|| above_0(".shape", *shape, 100.0)),
            Drawn::Named(_) | Drawn::File(_) => None,
        }
    }
}

/// The keys of a table.
struct Table<Q> {
    one: Option<(&'static str, Q)>,
    two: Option<(&'static str, [Q; 2])>,
    sigma: Option<f64>,
    shape: Option<f64>,
}

impl<Q: Quantity> Table<Q> {
    fn drawn<E: Error>(self) -> Result<Drawn<Q>, E> {
        let need = |value: Option<f64>, key: &'static str| {
            value.ok_or_else(|| E::custom(format!("lacks the key {key}")))
        };
        let extra = |given: bool, key: &str| match given {
            true => Err(E::custom(format!("has a key {key} that it does not need"))),
            false => Ok(()),
        };
        match (self.one, self.two) {
            (Some(("lognormal", median)), None) => {
                extra(self.shape.is_some(), "shape")?;
                let sigma = need(self.sigma, "sigma")?;
                Ok(Drawn::Lognormal { median, sigma })
            }
            (Some((_, mean)), None) => {
                extra(self.shape.is_some(), "shape")?;
                extra(self.sigma.is_some(), "sigma")?;
                Ok(Drawn::Exponential(mean))
            }
            (None, Some(("pareto", [min, max]))) => {
                extra(self.sigma.is_some(), "sigma")?;
                let shape = need(self.shape, "shape")?;
                Ok(Drawn::Pareto { min, max, shape })
            }
            (None, Some((_, [min, max]))) => {
                extra(self.shape.is_some(), "shape")?;
                extra(self.sigma.is_some(), "sigma")?;
                Ok(Drawn::Uniform(min, max))
            }
            (None, None) => Err(E::custom(
                "names no distribution; allowed: exponential, lognormal, uniform, pareto",
            )),
            (Some(_), Some(_)) => Err(E::custom("names two distributions; allowed: one")),
        }
    }
}

struct Reader<Q>(PhantomData<Q>);

impl<'de, Q: Quantity> Visitor<'de> for Reader<Q> {
    type Value = Drawn<Q>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, example) = Q::NAME;
        write!(f, "a {name} as in \"{example}\", ")?;
        for name in Q::BUILT_IN {
            write!(f, "{name}, ")?;
        }
        write!(f, "FILE.cdf, {{ exponential = \"{example}\" }}")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Drawn<Q>, E> {
        Drawn::read(text).map_err(E::custom)
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Drawn<Q>, E> {
        Q::of_text("0").map(Drawn::Fixed).map_err(E::custom) // the error
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Drawn<Q>, E> {
        self.visit_i64(0)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Drawn<Q>, A::Error> {
        let mut table = Table {
            one: None,
            two: None,
            sigma: None,
            shape: None,
        };
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "exponential" => table.one = Some(("exponential", map.next_value()?)),
                "lognormal" => table.one = Some(("lognormal", map.next_value()?)),
                "uniform" => table.two = Some(("uniform", pair(&mut map)?)),
                "pareto" => table.two = Some(("pareto", pair(&mut map)?)),
                "sigma" => table.sigma = Some(map.next_value()?),
                "shape" => table.shape = Some(map.next_value()?),
                _ => {
                    map.next_value::<IgnoredAny>()?;
                    return Err(A::Error::custom(unknown("key", &key, &KEYS)));
                }
            }
        }
        table.drawn()
    }
}

fn pair<'de, Q: Quantity, A: MapAccess<'de>>(map: &mut A) -> Result<[Q; 2], A::Error> {
    let values: Vec<Q> = map.next_value()?;
    <[Q; 2]>::try_from(values)
        .map_err(|_| A::Error::custom("needs a list of two: the least and the most"))
}

impl<'de, Q: Quantity> Deserialize<'de> for Drawn<Q> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Drawn<Q>, D::Error> {
        deserializer.deserialize_any(Reader(PhantomData))
    }
}

impl<Q: Quantity> Serialize for Drawn<Q> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = match self {
            Drawn::Fixed(value) => return value.serialize(serializer),
            Drawn::Named(name) => return serializer.serialize_str(name),
            Drawn::File(path) => return path.serialize(serializer),
            Drawn::Exponential(_) | Drawn::Uniform(..) => serializer.serialize_map(Some(1))?,
            Drawn::Lognormal { .. } | Drawn::Pareto { .. } => serializer.serialize_map(Some(2))?,
        };
        match self {
            Drawn::Exponential(mean) => map.serialize_entry("exponential", mean)?,
            Drawn::Uniform(min, max) => map.serialize_entry("uniform", &[min, max])?,
            Drawn::Lognormal { median, sigma } => {
                map.serialize_entry("lognormal", median)?;
                map.serialize_entry("sigma", sigma)?;
            }
            Drawn::Pareto { min, max, shape } => {
                map.serialize_entry("pareto", &[min, max])?;
                map.serialize_entry("shape", shape)?;
            }
            Drawn::Fixed(_) | Drawn::Named(_) | Drawn::File(_) => {}
        }
        map.end()
    }
}

impl<Q: Quantity> JsonSchema for Drawn<Q> {
    fn schema_name() -> Cow<'static, str> {
        match Q::NAME.0 {
            "size" => "Size".into(),
            _ => "Delay".into(),
        }
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let quantity = generator.subschema_for::<Q>();
        let list = serde_json::json!({ "type": "array", "items": quantity, "minItems": 2 });
        let table = |keys: &[(&str, &serde_json::Value)]| {
            let required: Vec<&str> = keys.iter().map(|(key, _)| *key).collect();
            let properties: serde_json::Map<String, serde_json::Value> = keys
                .iter()
                .map(|(key, schema)| ((*key).to_owned(), (*schema).clone()))
                .collect();
            serde_json::json!({
                "type": "object",
                "properties": properties,
                "required": required,
                "additionalProperties": false,
            })
        };
        let one = serde_json::Value::from(quantity.clone());
        let number = serde_json::json!({ "type": "number" });
        let mut any = vec![
            one.clone(),
            serde_json::json!({ "type": "string", "pattern": "\\.(cdf|txt|csv)$" }),
            table(&[("exponential", &one)]),
            table(&[("lognormal", &one), ("sigma", &number)]),
            table(&[("uniform", &list)]),
            table(&[("pareto", &list), ("shape", &number)]),
        ];
        if !Q::BUILT_IN.is_empty() {
            any.insert(1, serde_json::json!({ "enum": Q::BUILT_IN }));
        }
        let (name, example) = Q::NAME;
        let column = Q::COLUMN;
        json_schema!({
            "description": format!(
                "A {name}: fixed (\"{example}\"), a built-in distribution by its name, a file of {column} CUMULATIVE_PROBABILITY lines (.cdf, .txt, .csv; relative to the scenario's folder), exponential with a mean, lognormal with a median and the sigma of the logarithm, uniform, or Pareto between a least and a most with a shape."
            ),
            "anyOf": any,
        })
    }
}
