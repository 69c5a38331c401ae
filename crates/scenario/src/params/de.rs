// SPDX-License-Identifier: Apache-2.0
//! Reading and writing the table of a scheme's parameters.

use std::fmt;

use penstock_core::definitions::{Param, Unit};
use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, EnumAccess, Error, MapAccess, VariantAccess,
    Visitor,
};
use serde::ser::{Serialize, SerializeMap, Serializer};

use super::{Kind, Params, Value};
use crate::count;

/// Reads the table of a kind, without its key `kind`.
pub(crate) struct Table(pub &'static Kind);

impl<'de> DeserializeSeed<'de> for Table {
    type Value = Params;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Params, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Table {
    type Value = Params;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a table as in { key = value }")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Params, A::Error> {
        let mut params = Params::new(self.0);
        while let Some(key) = map.next_key_seed(Key(self.0))? {
            match self
                .0
                .params()
                .enumerate()
                .find(|(_, param)| param.key == key)
            {
                None => params.variant = map.next_value_seed(Choice(&self.0.variants))?,
                Some((place, param)) => {
                    let words = self.0.words[key].as_slice();
                    params.given[place] = Some(map.next_value_seed(Field { param, words })?);
                }
            }
        }
        Ok(params)
    }
}

/// One of a kind's keys.
struct Key(&'static Kind);

impl<'de> DeserializeSeed<'de> for Key {
    type Value = &'static str;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<&'static str, D::Error> {
        deserializer.deserialize_identifier(self)
    }
}

impl Visitor<'_> for Key {
    type Value = &'static str;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E: Error>(self, key: &str) -> Result<&'static str, E> {
        let known = self.0.keys.iter().find(|known| **known == key);
        known
            .copied()
            .ok_or_else(|| E::unknown_field(key, &self.0.keys))
    }
}

/// The value of a parameter.
struct Field {
    param: &'static Param,
    words: &'static [&'static str],
}

impl<'de> DeserializeSeed<'de> for Field {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        match self.param.unit {
            Unit::Time => Deserialize::deserialize(deserializer).map(Value::Time),
            Unit::Share | Unit::BufferShare | Unit::BufferLimit => {
                Deserialize::deserialize(deserializer).map(Value::Share)
            }
            Unit::Segments | Unit::SegmentBytes | Unit::Count => {
                let range = (self.param.min as u32, self.param.max as u32);
                count::read(deserializer, range).map(Value::Count)
            }
            Unit::Rate => Deserialize::deserialize(deserializer).map(Value::Rate),
            Unit::Amount => Deserialize::deserialize(deserializer).map(Value::Amount),
            Unit::Flag => Deserialize::deserialize(deserializer).map(Value::Flag),
            Unit::Enum => deserializer
                .deserialize_enum("word", self.words, Word(self.words))
                .map(Value::Word),
        }
    }
}

/// The variant.
struct Choice(&'static [&'static str]);

impl<'de> DeserializeSeed<'de> for Choice {
    type Value = usize;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<usize, D::Error> {
        deserializer.deserialize_enum("variant", self.0, Word(self.0))
    }
}

/// One of a list of words, by its place.
pub(crate) struct Word(pub &'static [&'static str]);

impl<'de> DeserializeSeed<'de> for Word {
    type Value = usize;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<usize, D::Error> {
        deserializer.deserialize_identifier(self)
    }
}

impl<'de> Visitor<'de> for Word {
    type Value = usize;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(", "))
    }

    fn visit_str<E: Error>(self, word: &str) -> Result<usize, E> {
        let place = self.0.iter().position(|known| *known == word);
        place.ok_or_else(|| E::unknown_variant(word, self.0))
    }

    fn visit_enum<A: EnumAccess<'de>>(self, access: A) -> Result<usize, A::Error> {
        let (place, rest) = access.variant_seed(self)?;
        rest.unit_variant()?;
        Ok(place)
    }
}

impl Params {
    /// Writes what is given, behind `kind` if the table has one.
    pub(crate) fn write<S: Serializer>(
        &self,
        serializer: S,
        kind: Option<&str>,
    ) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        if let Some(kind) = kind {
            map.serialize_entry("kind", kind)?;
        }
        if self.kind.definition.is_some() {
            map.serialize_entry("variant", self.kind.variants[self.variant])?;
        }
        for (param, value) in self.given() {
            match value {
                None => {}
                Some(Value::Word(place)) => {
                    map.serialize_entry(param.key, self.kind.words[param.key][place])?;
                }
                Some(value) => map.serialize_entry(param.key, &value)?,
            }
        }
        map.end()
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Value::Time(time) => time.serialize(serializer),
            Value::Share(share) => share.serialize(serializer),
            Value::Rate(rate) => rate.serialize(serializer),
            Value::Count(count) => count.serialize(serializer),
            Value::Amount(amount) => amount.serialize(serializer),
            Value::Flag(flag) => flag.serialize(serializer),
            Value::Word(place) => place.serialize(serializer),
        }
    }
}
