// SPDX-License-Identifier: Apache-2.0
//! Quantities as people write them ("1 Gb/s", "100 us", "125 kB"), read exactly: the digits are
//! never rounded through a float.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, Error, Visitor};
use serde::ser::{Serialize, Serializer};

use super::error::nearest;
use crate::units::{Rate, Time};

pub use crate::units::Buffer;

/// Names of units with what each is worth; the first name of a worth is the one written.
type Units = &'static [(&'static str, u64)];

const TIMES: Units = &[
    ("s", 1_000_000_000_000),
    ("ms", 1_000_000_000),
    ("us", 1_000_000),
    ("ns", 1_000),
    ("ps", 1),
    ("µs", 1_000_000),
    ("min", 60_000_000_000_000),
    ("h", 3_600_000_000_000_000),
];
const RATES: Units = &[
    ("Tb/s", 1_000_000_000_000),
    ("Gb/s", 1_000_000_000),
    ("Mb/s", 1_000_000),
    ("kb/s", 1_000),
    ("b/s", 1),
    ("Tbps", 1_000_000_000_000),
    ("Gbps", 1_000_000_000),
    ("Mbps", 1_000_000),
    ("kbps", 1_000),
    ("bps", 1),
];
const SIZES: Units = &[
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("kB", 1_000),
    ("B", 1),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
];
const BUFFERS: Units = &[
    ("packets", 1),
    ("packet", 1),
    ("B", 1),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
];

/// The largest quantity read (as a time: 13 days), so that sums of a dozen stay within 64 bits.
const LARGEST: u128 = 1 << 60;

/// Largest rate: the simulator's clock has picoseconds, in which it sends a hundred bits.
const FASTEST: Rate = Rate(100_000_000_000_000);

fn names(units: Units) -> Vec<&'static str> {
    units.iter().map(|&(name, _)| name).collect()
}

/// Digits with an optional fraction, as an integer and its power of ten; then what follows.
fn decimal(text: &str) -> Option<(u128, u32, &str)> {
    let end = text
        .find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_'))
        .unwrap_or(text.len());
    let (number, rest) = text.split_at(end);
    let number = number.replace('_', "");
    let (whole, fraction) = number.split_once('.').unwrap_or((&number, ""));
    if whole.is_empty() || fraction.contains('.') {
        return None;
    }
    let mantissa = format!("{whole}{fraction}").parse().ok()?;
    Some((mantissa, u32::try_from(fraction.len()).ok()?, rest.trim()))
}

/// Reads `text` as a number with one of `units`, in multiples of the smallest; also the unit.
fn quantity(text: &str, units: Units) -> Result<(u64, &'static str), String> {
    let allowed = names(units);
    let Some((mantissa, decimals, unit)) = decimal(text.trim()) else {
        let magnitude = text.trim().strip_prefix('-');
        let wrong = match magnitude.and_then(decimal) {
            Some(_) => "is negative",
            None => "is not a number with a unit",
        };
        return Err(format!(
            "\"{text}\" {wrong}; allowed units: {}",
            allowed.join(", ")
        ));
    };
    if unit.is_empty() {
        return Err(needs_unit(units));
    }
    let Some(&(unit, worth)) = units.iter().find(|(name, _)| *name == unit) else {
        let hint = nearest(unit, &allowed)
            .map(|name| format!("; did you mean \"{name}\"?"))
            .unwrap_or_default();
        return Err(format!(
            "unknown unit \"{unit}\"; allowed: {}{hint}",
            allowed.join(", ")
        ));
    };
    let too_large = || {
        let most = LARGEST / u128::from(worth);
        format!("is too large; allowed: at most {most} {unit}")
    };
    let scaled = mantissa
        .checked_mul(u128::from(worth))
        .ok_or_else(too_large)?;
    let divisor = 10u128.checked_pow(decimals).ok_or("has too many digits")?;
    if scaled % divisor != 0 {
        return Err(format!("\"{text}\" is finer than the resolution"));
    }
    match scaled / divisor {
        value if value <= LARGEST => Ok((value as u64, unit)),
        _ => Err(too_large()),
    }
}

fn needs_unit(units: Units) -> String {
    format!("needs a unit; allowed: {}", names(units).join(", "))
}

/// Writes `value` in the largest of the decimal `units` that leaves a whole number.
fn written(value: u64, units: Units) -> String {
    let &(unit, worth) = units
        .iter()
        .find(|(_, worth)| value.is_multiple_of(*worth))
        .unwrap_or(&units[0]);
    format!("{} {unit}", value / worth)
}

/// Bytes: a transfer's length or a packet's size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bytes(pub u64);

/// A fraction of something, `1` for all of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Share(pub f64);

/// A length of a queue: a size, or a share of the port's buffer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Level {
    /// So much.
    Size(Buffer),
    /// Of the buffer.
    Share(Share),
}

impl Level {
    /// The length at a port with this buffer, in packets if its buffer is.
    pub fn of(self, buffer: Buffer) -> Buffer {
        match (self, buffer) {
            (Level::Size(size), _) => size,
            (Level::Share(share), Buffer::Bytes(bytes)) => {
                Buffer::Bytes((bytes as f64 * share.0) as u64)
            }
            (Level::Share(share), Buffer::Packets(packets)) => {
                Buffer::Packets((f64::from(packets) * share.0) as u32)
            }
        }
    }
}

impl Time {
    /// Reads a time such as "100 us" or "1.5ms".
    ///
    /// # Errors
    /// What is wrong and which units are allowed.
    pub fn read(text: &str) -> Result<Time, String> {
        quantity(text, TIMES).map(|(value, _)| Time(value))
    }
}

impl Rate {
    /// Reads a rate such as "1 Gb/s" or "10Gbps".
    ///
    /// # Errors
    /// What is wrong and which units are allowed; a rate of 0 too.
    pub fn read(text: &str) -> Result<Rate, String> {
        match quantity(text, RATES)? {
            (0, _) => Err("must be above 0".to_owned()),
            (value, _) if value > FASTEST.0 => {
                Err(format!("is too large; allowed: at most {FASTEST}"))
            }
            (value, _) => Ok(Rate(value)),
        }
    }
}

impl Bytes {
    /// Reads a size such as "125 kB" or "64 KiB".
    ///
    /// # Errors
    /// What is wrong and which units are allowed.
    pub fn read(text: &str) -> Result<Bytes, String> {
        quantity(text, SIZES).map(|(value, _)| Bytes(value))
    }
}

impl Buffer {
    /// Reads a buffer's size such as "125 kB" or "83 packets".
    ///
    /// # Errors
    /// What is wrong and which units are allowed.
    pub fn read(text: &str) -> Result<Buffer, String> {
        match quantity(text, BUFFERS)? {
            (packets, "packets" | "packet") => u32::try_from(packets)
                .map(Buffer::Packets)
                .map_err(|_| format!("is too large; allowed: at most {} packets", u32::MAX)),
            (bytes, _) => Ok(Buffer::Bytes(bytes)),
        }
    }

    /// Bytes it holds, packets counted as `packet` bytes each.
    pub const fn bytes(self, packet: u64) -> u64 {
        match self {
            Buffer::Bytes(bytes) => bytes,
            Buffer::Packets(packets) => (packets as u64).saturating_mul(packet),
        }
    }
}

impl Share {
    /// Whether it is nothing.
    #[allow(clippy::trivially_copy_pass_by_ref)]
    pub fn is_zero(&self) -> bool {
        self.0 == 0.0
    }

    /// Reads a share such as "20 %".
    ///
    /// # Errors
    /// What is wrong.
    pub fn read(text: &str) -> Result<Share, String> {
        let wrong = || format!("\"{text}\" is not a share; allowed: as in 0.2 or \"20 %\"");
        let (mantissa, decimals, unit) = decimal(text.trim()).ok_or_else(wrong)?;
        // One division of two integers that a float holds exactly is correctly rounded: "20 %" is
        // the same number as 0.2.
        match (unit, decimals, mantissa) {
            ("%", 0..=15, 0..=9_007_199_254_740_992) => {
                Ok(Share(mantissa as f64 / 10f64.powi(decimals as i32 + 2)))
            }
            _ => Err(wrong()),
        }
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&written(self.0, &TIMES[..5]))
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&written(self.0, &RATES[..5]))
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 {
            return f.write_str("0 B");
        }
        f.write_str(&written(self.0, &SIZES[..4]))
    }
}

impl fmt::Display for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Buffer::Bytes(bytes) => Bytes(bytes).fmt(f),
            Buffer::Packets(1) => f.write_str("1 packet"),
            Buffer::Packets(packets) => write!(f, "{packets} packets"),
        }
    }
}

/// `Deserialize`, `Serialize` and `JsonSchema` of a quantity written as text with a unit.
macro_rules! quantity {
    ($type:ident, $units:ident, $name:literal, $example:literal) => {
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<$type, D::Error> {
                struct Reader;
                impl Visitor<'_> for Reader {
                    type Value = $type;
                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str(concat!($name, " as in \"", $example, "\""))
                    }
                    fn visit_str<E: Error>(self, text: &str) -> Result<$type, E> {
                        $type::read(text).map_err(E::custom)
                    }
                    fn visit_i64<E: Error>(self, _: i64) -> Result<$type, E> {
                        Err(E::custom(needs_unit($units)))
                    }
                    fn visit_f64<E: Error>(self, _: f64) -> Result<$type, E> {
                        Err(E::custom(needs_unit($units)))
                    }
                }
                deserializer.deserialize_any(Reader)
            }
        }

        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl JsonSchema for $type {
            fn schema_name() -> Cow<'static, str> {
                stringify!($type).into()
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({
                    "type": "string",
                    "description": concat!($name, " with its unit, as in \"", $example, "\"."),
                    "pattern": format!("^ *[0-9][0-9_]*(\\.[0-9]+)? *({}) *$", names($units).join("|")),
                })
            }
        }
    };
}

quantity!(Time, TIMES, "a time", "100 us");
quantity!(Rate, RATES, "a rate", "1 Gb/s");
quantity!(Bytes, SIZES, "a size", "10 kB");
quantity!(Buffer, BUFFERS, "a buffer's size", "83 packets");

impl<'de> Deserialize<'de> for Share {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Share, D::Error> {
        struct Reader;
        impl Visitor<'_> for Reader {
            type Value = Share;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a share as in 0.2 or \"20 %\"")
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Share, E> {
                Share::read(text).map_err(E::custom)
            }
            fn visit_i64<E: Error>(self, value: i64) -> Result<Share, E> {
                self.visit_f64(value as f64)
            }
            fn visit_f64<E: Error>(self, value: f64) -> Result<Share, E> {
                match value {
                    0.0.. if value.is_finite() => Ok(Share(value)),
                    _ => Err(E::custom("must be 0 or more, as in 0.2 or \"20 %\"")),
                }
            }
        }
        deserializer.deserialize_any(Reader)
    }
}

impl Serialize for Share {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.0)
    }
}

impl JsonSchema for Share {
    fn schema_name() -> Cow<'static, str> {
        "Share".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A share, as in 0.2 or \"20 %\".",
            "anyOf": [
                { "type": "number", "minimum": 0 },
                { "type": "string", "pattern": "^ *[0-9][0-9_]*(\\.[0-9]+)? *% *$" },
            ],
        })
    }
}

impl<'de> Deserialize<'de> for Level {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Level, D::Error> {
        struct Reader;
        impl Visitor<'_> for Reader {
            type Value = Level;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a size as in \"30 kB\", or a share of the buffer as in \"25 %\"")
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Level, E> {
                let level = match text.trim_end().ends_with('%') {
                    true => Share::read(text).map(Level::Share),
                    false => Buffer::read(text).map(Level::Size),
                };
                level.map_err(E::custom)
            }
            fn visit_i64<E: Error>(self, value: i64) -> Result<Level, E> {
                self.visit_f64(value as f64)
            }
            fn visit_f64<E: Error>(self, value: f64) -> Result<Level, E> {
                match value {
                    0.0..=1.0 => Ok(Level::Share(Share(value))),
                    _ => Err(E::custom(needs_unit(BUFFERS))),
                }
            }
        }
        deserializer.deserialize_any(Reader)
    }
}

impl Serialize for Level {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Level::Size(size) => size.serialize(serializer),
            Level::Share(share) => share.serialize(serializer),
        }
    }
}

impl JsonSchema for Level {
    fn schema_name() -> Cow<'static, str> {
        "Level".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A length of a queue, or a share of the port's buffer.",
            "anyOf": [
                generator.subschema_for::<Buffer>(),
                generator.subschema_for::<Share>(),
            ],
        })
    }
}
