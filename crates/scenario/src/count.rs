// SPDX-License-Identifier: Apache-2.0
//! Counts, each with the range that its field names: `#[serde(with = "Hosts")]` reads it, and gives
//! the JSON Schema its bounds.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserializer, Error, Visitor};
use serde::ser::{Serialize, Serializer};

/// Hosts, switches, racks: more than a million no run could hold.
pub(super) type Hosts = Within<1, 1_000_000>;
/// Hosts, of which there may be none.
pub(super) type HostsOrNone = Within<0, 1_000_000>;
/// Transfers, jobs, epochs: more than ten million no run could hold.
pub(super) type Transfers = Within<1, 10_000_000>;
/// Machines that hosts are on: on one alone nothing would be sent.
pub(super) type Machines = Within<2, 1_000_000>;
/// Ports of a switch in a fat-tree.
pub(super) type Ports = Within<2, 64>;
/// Recorded packets: some 100 bytes each in memory, and as much in the run's folder.
pub(super) type Recorded = Within<1, 1_000_000>;
/// Bits by which a window is scaled (RFC 7323 §2.3).
pub(super) type Shift = Within<0, 14>;
/// Bins that flows are hashed to: as many as Linux's SFQ can have.
pub(super) type Bins = Within<1, 65_536>;
/// What only its type bounds.
pub(super) type Many = Within<1, { u32::MAX }>;
/// The same, of which there may be none.
pub(super) type ManyOrNone = Within<0, { u32::MAX }>;

/// A whole number from `MIN` to `MAX`.
pub(super) struct Within<const MIN: u32, const MAX: u32>;

/// A type that holds a count.
pub(super) trait Holds {
    /// The value that stands for `count`.
    fn holding(count: u32) -> Self;
}

impl Holds for u32 {
    fn holding(count: u32) -> u32 {
        count
    }
}

impl Holds for Option<u32> {
    fn holding(count: u32) -> Option<u32> {
        Some(count)
    }
}

impl Holds for Option<u8> {
    fn holding(count: u32) -> Option<u8> {
        u8::try_from(count).ok()
    }
}

impl<const MIN: u32, const MAX: u32> Within<MIN, MAX> {
    /// The largest count.
    pub const MOST: u32 = MAX;

    /// Reads a count.
    pub fn deserialize<'de, T: Holds, D: Deserializer<'de>>(from: D) -> Result<T, D::Error> {
        read(from, (MIN, MAX)).map(T::holding)
    }

    /// Writes it as it is.
    pub fn serialize<T: Serialize, S: Serializer>(count: &T, to: S) -> Result<S::Ok, S::Error> {
        count.serialize(to)
    }
}

impl<const MIN: u32, const MAX: u32> JsonSchema for Within<MIN, MAX> {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        format!("From{MIN}To{MAX}").into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "integer", "minimum": MIN, "maximum": MAX })
    }
}

/// Reads a whole number from the first to the second of `range`.
pub(super) fn read<'de, D: Deserializer<'de>>(from: D, range: (u32, u32)) -> Result<u32, D::Error> {
    from.deserialize_any(Range(range))
}

struct Range((u32, u32));

impl Visitor<'_> for Range {
    type Value = u32;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (least, most) = self.0;
        write!(f, "a whole number from {least} to {most}")
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<u32, E> {
        let (least, most) = self.0;
        let in_range = u32::try_from(number).ok();
        in_range
            .filter(|count| (least..=most).contains(count))
            .ok_or_else(|| E::custom(format!("is {number}; allowed: {least} to {most}")))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<u32, E> {
        self.visit_i64(i64::try_from(number).unwrap_or(i64::MAX))
    }
}
