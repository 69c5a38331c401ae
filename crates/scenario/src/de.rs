// SPDX-License-Identifier: Apache-2.0
//! Types a [`Node`]: a serde deserializer whose errors carry the key's path and origin.
//!
//! Enumerations with content are read from a table with a key `kind`; see [`super::kinds`].

use serde::de::{
    self, DeserializeSeed, Deserializer, EnumAccess, Expected, IntoDeserializer, MapAccess,
    SeqAccess, Unexpected, VariantAccess, Visitor,
};

use super::document::{Node, Value};
use super::error::{Origin, Problem, unknown};

/// The name by which an enumeration asks to be read from a table with a key `kind`.
pub const TAGGED: &str = "kind";

/// What typing failed on, while the path to it is still being gathered (innermost key first).
#[derive(Debug)]
pub struct Failure {
    what: String,
    at: Option<Origin>,
    path: Vec<String>,
}

impl Failure {
    fn new(what: impl Into<String>) -> Failure {
        Failure {
            what: what.into(),
            at: None,
            path: Vec::new(),
        }
    }

    fn at(mut self, at: Origin) -> Failure {
        self.at.get_or_insert(at);
        self
    }

    fn within(mut self, key: &str) -> Failure {
        self.path.push(key.to_owned());
        self
    }

    /// The keys and places in lists that lead to it.
    pub fn path(&self) -> Vec<String> {
        self.path.iter().rev().cloned().collect()
    }

    /// As errors name it, below the dotted path `parent`.
    pub fn problem(mut self, parent: &str) -> Problem {
        if !parent.is_empty() {
            self.path.push(parent.to_owned());
        }
        self.path.reverse();
        Problem {
            at: self.at.unwrap_or(Origin::Line(1)),
            key: self.path.join(".").replace(".[", "["),
            what: self.what,
        }
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for Failure {}

impl de::Error for Failure {
    fn custom<T: std::fmt::Display>(what: T) -> Failure {
        Failure::new(what.to_string())
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Failure {
        let found = match found {
            Unexpected::Str(text) => format!("the text \"{text}\""),
            Unexpected::Signed(n) => format!("the number {n}"),
            Unexpected::Unsigned(n) => format!("the number {n}"),
            Unexpected::Float(n) => format!("the number {n}"),
            Unexpected::Bool(truth) => truth.to_string(),
            Unexpected::Seq => "a list".to_owned(),
            Unexpected::Map => "a table".to_owned(),
            other => other.to_string(),
        };
        Failure::new(format!("is {found}; allowed: {expected}"))
    }

    fn unknown_field(name: &str, allowed: &'static [&'static str]) -> Failure {
        Failure::new(unknown("key", name, allowed))
    }

    fn unknown_variant(name: &str, allowed: &'static [&'static str]) -> Failure {
        Failure::new(unknown("value", name, allowed))
    }

    fn missing_field(name: &'static str) -> Failure {
        Failure::new("is missing").within(name)
    }
}

fn unexpected(node: &Node) -> Unexpected<'_> {
    match &node.value {
        Value::String(text) => Unexpected::Str(text),
        Value::Integer(n) => Unexpected::Signed(*n),
        Value::Float(n) => Unexpected::Float(*n),
        Value::Boolean(truth) => Unexpected::Bool(*truth),
        Value::Array(_) => Unexpected::Seq,
        Value::Table(_) => Unexpected::Map,
        Value::Void => Unexpected::Unit,
    }
}

fn mismatch(node: &Node, expected: &str) -> Failure {
    de::Error::invalid_type(unexpected(node), &expected)
}

/// A whole number up to `high`. Whether 0 is allowed, and a smaller limit, are up to the check.
fn integer(node: &Node, high: i64) -> Result<i64, Failure> {
    let expected = match node.value {
        Value::Integer(n) if (0..=high).contains(&n) => return Ok(n),
        Value::Integer(n) if n > high => format!("a whole number, at most {high}"),
        Value::Integer(_) => "a whole number, not negative".to_owned(),
        _ => "a whole number".to_owned(),
    };
    Err(mismatch(node, &expected).at(node.at))
}

macro_rules! integers {
    ($($method:ident $visit:ident $type:ident $high:expr),* $(,)?) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
            let n = integer(self, $high)?;
            visitor.$visit::<Failure>(n as $type).map_err(|failure| failure.at(self.at))
        }
    )*};
}

impl<'de> Deserializer<'de> for &'de Node {
    type Error = Failure;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        match &self.value {
            Value::String(text) => visitor.visit_borrowed_str(text),
            Value::Integer(n) => visitor.visit_i64(*n),
            Value::Float(n) => visitor.visit_f64(*n),
            Value::Boolean(truth) => visitor.visit_bool(*truth),
            Value::Array(elements) => visitor.visit_seq(Elements(elements.iter().enumerate())),
            Value::Table(table) => visitor.visit_map(Entries {
                entries: table.iter(),
                current: None,
                skip_kind: false,
            }),
            Value::Void => Err(mismatch(self, "a value")),
        }
        .map_err(|failure: Failure| failure.at(self.at))
    }

    integers! {
        deserialize_u8 visit_u8 u8 i64::from(u8::MAX),
        deserialize_u16 visit_u16 u16 i64::from(u16::MAX),
        deserialize_u32 visit_u32 u32 i64::from(u32::MAX),
        deserialize_u64 visit_u64 u64 i64::MAX,
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        match self.value {
            Value::Integer(n) => visitor.visit_f64(n as f64),
            Value::Float(n) => visitor.visit_f64(n),
            _ => Err(mismatch(self, "a number")),
        }
        .map_err(|failure: Failure| failure.at(self.at))
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        match self.value {
            Value::Boolean(truth) => visitor.visit_bool(truth),
            _ => Err(mismatch(self, "true, false").at(self.at)),
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        match &self.value {
            Value::String(text) => visitor.visit_borrowed_str(text),
            _ => Err(mismatch(self, "a text in quotes").at(self.at)),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Failure> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Failure> {
        self.deserialize_map(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        match &self.value {
            Value::Table(_) => self.deserialize_any(visitor),
            _ => Err(mismatch(self, "a table as in { key = value }").at(self.at)),
        }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        match &self.value {
            Value::Array(_) => self.deserialize_any(visitor),
            _ => Err(mismatch(self, "a list as in [a, b]").at(self.at)),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Failure> {
        let allowed = variants.join(", ");
        let name = match &self.value {
            Value::String(text) if name != TAGGED => text,
            Value::Table(_) if name == TAGGED => match self.get("kind") {
                None => {
                    let what = format!("is missing; allowed: {allowed}");
                    return Err(Failure::new(what).within("kind").at(self.at));
                }
                Some(kind) => kind
                    .text()
                    .ok_or_else(|| mismatch(kind, &allowed).within("kind").at(kind.at))?,
            },
            _ if name == TAGGED => {
                let expected = format!("a table as in {{ kind = \"{}\" }}", variants[0]);
                return Err(mismatch(self, &expected).at(self.at));
            }
            _ => return Err(mismatch(self, &allowed).at(self.at)),
        };
        visitor
            .visit_enum(Variant { name, node: self })
            .map_err(|failure| failure.at(self.at))
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        self.deserialize_string(visitor)
    }

    serde::forward_to_deserialize_any! {
        i8 i16 i32 i64 i128 u128 f32 char bytes byte_buf unit unit_struct tuple tuple_struct
        identifier ignored_any
    }
}

struct Elements<'de>(std::iter::Enumerate<std::slice::Iter<'de, Node>>);

impl<'de> SeqAccess<'de> for Elements<'de> {
    type Error = Failure;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Failure> {
        self.0
            .find(|(_, node)| !node.value.is_void())
            .map(|(index, node)| {
                seed.deserialize(node)
                    .map_err(|failure| failure.at(node.at).within(&format!("[{index}]")))
            })
            .transpose()
    }
}

struct Entries<'de> {
    entries: indexmap::map::Iter<'de, String, Node>,
    current: Option<(&'de str, &'de Node)>,
    skip_kind: bool,
}

impl<'de> MapAccess<'de> for Entries<'de> {
    type Error = Failure;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Failure> {
        let skip_kind = self.skip_kind;
        let is_read =
            |key: &str, node: &Node| !(node.value.is_void() || skip_kind && key == "kind");
        let Some((key, node)) = self.entries.find(|(key, node)| is_read(key, node)) else {
            return Ok(None);
        };
        self.current = Some((key, node));
        seed.deserialize(key.as_str().into_deserializer())
            .map(Some)
            .map_err(|failure: Failure| failure.at(node.at).within(key))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Failure> {
        let (key, node) = self
            .current
            .take()
            .ok_or_else(|| Failure::new("has no value"))?;
        seed.deserialize(node)
            .map_err(|failure| failure.at(node.at).within(key))
    }
}

struct Variant<'de> {
    name: &'de str,
    node: &'de Node,
}

impl<'de> EnumAccess<'de> for Variant<'de> {
    type Error = Failure;
    type Variant = &'de Node;

    fn variant_seed<V: DeserializeSeed<'de>>(
        self,
        seed: V,
    ) -> Result<(V::Value, &'de Node), Failure> {
        let located = |failure: Failure| match self.node.get("kind") {
            Some(kind) => failure.at(kind.at).within("kind"),
            None => failure,
        };
        let variant = seed
            .deserialize(self.name.into_deserializer())
            .map_err(located)?;
        Ok((variant, self.node))
    }
}

impl<'de> VariantAccess<'de> for &'de Node {
    type Error = Failure;

    fn unit_variant(self) -> Result<(), Failure> {
        match self.value {
            Value::String(_) => Ok(()),
            _ => Err(mismatch(self, "a text in quotes")),
        }
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Failure> {
        seed.deserialize(Body(self))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, _: V) -> Result<V::Value, Failure> {
        Err(Failure::new("is no list"))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Failure> {
        Body(self).deserialize_any(visitor)
    }
}

/// The table of a variant, without its `kind`.
struct Body<'de>(&'de Node);

impl<'de> Deserializer<'de> for Body<'de> {
    type Error = Failure;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        match &self.0.value {
            Value::Table(table) => visitor
                .visit_map(Entries {
                    entries: table.iter(),
                    current: None,
                    skip_kind: true,
                })
                .map_err(|failure| failure.at(self.0.at)),
            _ => Err(mismatch(self.0, "a table with a key \"kind\"").at(self.0.at)),
        }
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        unit unit_struct newtype_struct seq tuple tuple_struct map struct enum identifier
        ignored_any
    }
}
