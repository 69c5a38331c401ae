// SPDX-License-Identifier: Apache-2.0
//! The parameters of a scheme as a scenario gives them. Keys, units, ranges, defaults and meanings
//! are those of `core/`: one type holds the parameters of any scheme, and none is named here.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::quantities::{Buffer, Share};
use crate::units::{Rate, Time};
use penstock_core::ParamError;
use penstock_core::definitions::{self, Definition, Param, Preset, Unit};

mod de;
mod schema;

pub(super) use de::{Table, Word};
pub use schema::{preset_text, range_text};

/// A packet where buffers in packets and in bytes are converted, bytes.
pub const FULL_PACKET: u64 = 1500;

/// The nearest 32-bit number.
pub fn saturated(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

impl Buffer {
    /// Bytes it holds, packets counted as [`FULL_PACKET`], at most 4 GiB.
    pub fn as_bytes(self) -> u32 {
        saturated(self.bytes(FULL_PACKET))
    }
}

/// Variants that every scheme has: what real TCP was found to need, and as printed.
const VARIANTS: [&str; 2] = ["default", "paper"];

/// A value of a parameter, in its unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// A time.
    Time(Time),
    /// A share of something.
    Share(Share),
    /// Bits per second.
    Rate(Rate),
    /// A number, of segments or of anything else.
    Count(u32),
    /// Packets or bytes.
    Amount(Buffer),
    /// Yes or no.
    Flag(bool),
    /// One of the parameter's words, by its place.
    Word(usize),
}

impl Value {
    /// A preset in the unit of its parameter.
    fn of(unit: Unit, preset: Preset) -> Value {
        let count = preset.value as u32;
        match unit {
            Unit::Time => Value::Time(Time::from_nanos(preset.value as u64)),
            Unit::Rate => Value::Rate(Rate(preset.value as u64)),
            Unit::Share | Unit::BufferShare | Unit::BufferLimit => {
                Value::Share(Share(preset.value))
            }
            Unit::Segments | Unit::SegmentBytes | Unit::Count => Value::Count(count),
            Unit::Amount => Value::Amount(Buffer::Packets(count)),
            Unit::Flag => Value::Flag(count == 1),
            Unit::Enum => Value::Word(count as usize),
        }
    }

    /// The number as `core/` takes it.
    pub fn number(self) -> f64 {
        match self {
            Value::Time(time) => time.as_nanos() as f64,
            Value::Share(share) => share.0,
            Value::Rate(rate) => rate.0 as f64,
            Value::Count(count) => count.into(),
            Value::Amount(Buffer::Packets(packets)) => packets.into(),
            Value::Amount(Buffer::Bytes(bytes)) => saturated(bytes).into(),
            Value::Flag(flag) => u8::from(flag).into(),
            Value::Word(place) => place as f64,
        }
    }
}

/// What a table of a scenario may hold: the keys of one scheme.
#[derive(Debug)]
pub struct Kind {
    /// As `kind` of the table has it.
    pub name: &'static str,
    /// One line.
    pub title: &'static str,
    /// The scheme; `None` for no window scheme.
    pub definition: Option<&'static Definition>,
    /// What the caller does for every window scheme, if it is one or none.
    common: Option<&'static Definition>,
    variants: Vec<&'static str>,
    keys: Vec<&'static str>,
    words: HashMap<&'static str, Vec<&'static str>>,
}

impl Kind {
    fn new(
        name: &'static str,
        title: &'static str,
        definition: Option<&'static Definition>,
        common: Option<&'static Definition>,
    ) -> Kind {
        let mut kind = Kind {
            name,
            title,
            definition,
            common,
            variants: VARIANTS.to_vec(),
            keys: Vec::new(),
            words: HashMap::new(),
        };
        let words = |param: &Param| param.words.iter().map(|word| word.word).collect();
        let variant = definition.map(|_| "variant");
        let named = definition.into_iter().flat_map(|scheme| &scheme.variants);
        kind.variants.extend(named.map(|variant| variant.name));
        kind.keys = variant
            .into_iter()
            .chain(kind.params().map(|param| param.key))
            .collect();
        kind.words = kind
            .params()
            .map(|param| (param.key, words(param)))
            .collect();
        kind
    }

    fn of_definition(name: &str, common: Option<&'static Definition>) -> Kind {
        let definition = definitions::of(name);
        Kind::new(definition.name, definition.title, Some(definition), common)
    }

    /// The scheme's parameters, then the common ones.
    pub fn params(&self) -> impl Iterator<Item = &'static Param> {
        let parts = self.definition.into_iter().chain(self.common);
        parts.flat_map(|definition| &definition.params)
    }

    fn place(&self, key: &str) -> Option<usize> {
        self.params().position(|param| param.key == key)
    }
}

/// The window schemes of `core/`, behind `none`, and credit.
pub fn window_kinds() -> &'static [Kind] {
    static KINDS: LazyLock<Vec<Kind>> = LazyLock::new(|| {
        let common = Some(definitions::of("window"));
        let none = Kind::new("none", "ACKs pass as they are", None, common);
        let schemes = definitions::window_schemes();
        let credit = Kind::of_definition("grant", common);
        std::iter::once(none)
            .chain(schemes.map(|scheme| Kind::of_definition(scheme.name, common)))
            .chain([credit])
            .collect()
    });
    &KINDS
}

pub(super) fn sicc() -> &'static Kind {
    static KIND: LazyLock<Kind> = LazyLock::new(|| Kind::of_definition("sicc", None));
    &KIND
}

pub(super) fn hcf() -> &'static Kind {
    static KIND: LazyLock<Kind> = LazyLock::new(|| Kind::of_definition("hcf", None));
    &KIND
}

/// The parameters of one scheme: those given, the others by the variant.
#[derive(Clone, Debug)]
pub struct Params {
    kind: &'static Kind,
    /// The place in `Kind::variants`.
    variant: usize,
    given: Vec<Option<Value>>,
}

impl PartialEq for Params {
    fn eq(&self, other: &Params) -> bool {
        self.kind.name == other.kind.name
            && (self.variant, &self.given) == (other.variant, &other.given)
    }
}

impl Params {
    /// None given.
    pub fn new(kind: &'static Kind) -> Params {
        Params {
            kind,
            variant: 0,
            given: vec![None; kind.params().count()],
        }
    }

    /// The keys they may have.
    pub fn kind(&self) -> &'static Kind {
        self.kind
    }

    /// Each parameter with its value, if one is given or written out.
    pub fn given(&self) -> impl Iterator<Item = (&'static Param, Option<Value>)> {
        self.kind.params().zip(self.given.iter().copied())
    }

    fn preset(&self, param: &Param) -> Preset {
        let named = || {
            let variants = &self.kind.definition?.variants;
            variants.get(self.variant.checked_sub(VARIANTS.len())?)
        };
        match (self.variant, named()) {
            (0, _) => param.default,
            (_, Some(variant)) => variant.preset(param),
            (_, None) => param.paper,
        }
    }

    /// A parameter's value; `None` if there is none unless it is given. A time by the network's
    /// RTT, where this is not known, is its default.
    fn value(&self, key: &str, rtt: Option<Time>) -> Option<Value> {
        let kind = self.kind;
        let place = kind
            .place(key)
            .unwrap_or_else(|| panic!("{} has no parameter {key}", kind.name));
        let param = kind.params().nth(place)?;
        let preset = || {
            let preset = self.preset(param);
            match rtt {
                _ if param.is_optional() => None,
                Some(rtt) if preset.rtts > 0 => {
                    Some(Value::Time(Time(u64::from(preset.rtts) * rtt.0)))
                }
                _ => Some(Value::of(param.unit, preset)),
            }
        };
        self.given[place].or_else(preset)
    }

    /// Writes out what depends on the variant, but times that the network's RTT gives.
    pub(super) fn complete(&mut self) {
        let presets: Vec<Option<Value>> = self
            .kind
            .params()
            .map(|param| {
                let is_written = !param.is_optional() && self.preset(param).rtts == 0;
                is_written.then(|| Value::of(param.unit, self.preset(param)))
            })
            .collect();
        for (given, preset) in self.given.iter_mut().zip(presets) {
            *given = given.or(preset);
        }
    }

    /// A time; `None` if there is none unless it is given.
    ///
    /// # Panics
    /// There is no such parameter, as with all that follow.
    pub fn time(&self, key: &str) -> Option<Time> {
        self.value(key, None).map(|value| match value {
            Value::Time(time) => time,
            other => unreachable!("{key}: {other:?}"),
        })
    }

    /// A share.
    pub fn share(&self, key: &str) -> Share {
        match self.value(key, None) {
            Some(Value::Share(share)) => share,
            other => unreachable!("{key}: {other:?}"),
        }
    }

    /// A rate; `None` if there is none unless it is given.
    pub fn rate(&self, key: &str) -> Option<Rate> {
        self.value(key, None).map(|value| match value {
            Value::Rate(rate) => rate,
            other => unreachable!("{key}: {other:?}"),
        })
    }

    /// A number.
    pub fn count(&self, key: &str) -> u32 {
        match self.value(key, None) {
            Some(Value::Count(count)) => count,
            other => unreachable!("{key}: {other:?}"),
        }
    }

    /// Yes or no.
    pub fn flag(&self, key: &str) -> bool {
        match self.value(key, None) {
            Some(Value::Flag(flag)) => flag,
            other => unreachable!("{key}: {other:?}"),
        }
    }

    /// One of a parameter's words, by its place.
    pub fn word(&self, key: &str) -> usize {
        match self.value(key, None) {
            Some(Value::Word(place)) => place,
            other => unreachable!("{key}: {other:?}"),
        }
    }

    /// As the algorithm takes them, for a port whose buffer is so large (bytes, or packets for
    /// HCF); `rtt` is that of the network, if it is known.
    ///
    /// # Errors
    /// A value outside its range.
    ///
    /// # Panics
    /// There is no window scheme.
    pub fn core(
        &self,
        buffer: u32,
        rtt: Option<Time>,
    ) -> Result<penstock_core::Params, ParamError> {
        let definition = self.kind.definition.unwrap_or_else(|| panic!("no scheme"));
        self.set(
            penstock_core::Params::new(definition, buffer),
            definition,
            rtt,
        )
    }

    /// What is common to all window schemes, as `struct window_params` of `core/window.h`.
    ///
    /// # Errors
    /// A value outside its range.
    ///
    /// # Panics
    /// It is no window scheme.
    pub fn common(&self) -> Result<penstock_core::Params, ParamError> {
        let common = self
            .kind
            .common
            .unwrap_or_else(|| panic!("{}", self.kind.name));
        self.set(penstock_core::Params::new(common, 0), common, None)
    }

    fn set(
        &self,
        mut core: penstock_core::Params,
        definition: &'static Definition,
        rtt: Option<Time>,
    ) -> Result<penstock_core::Params, ParamError> {
        let own = definition
            .params
            .iter()
            .filter(|param| param.field.is_some());
        for param in own {
            match self.value(param.key, rtt) {
                Some(value @ Value::Amount(Buffer::Bytes(_))) => {
                    core.set_in_bytes(param.key, value.number())?;
                }
                Some(value) => core.set(param.key, value.number())?,
                None => {}
            }
        }
        Ok(core)
    }
}
