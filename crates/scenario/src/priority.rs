// SPDX-License-Identifier: Apache-2.0
//! The priority of a packet, by which queue disciplines classify it (`skb->priority`).

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, Visitor};
use serde::ser::{Serialize, Serializer};

/// The largest index of a map of priorities (`TC_PRIO_MAX` of linux/pkt_sched.h).
const INDEX_MAX: u32 = 15;

/// Either 1 to 15, an index of the map of `prio` and `fq`, or a class such as `1:10`, in which `htb`
/// and other classful queue disciplines put the packet without a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Priority(u32);

impl Priority {
    /// As the kernel has it.
    pub fn as_number(self) -> u32 {
        self.0
    }

    fn read(text: &str) -> Result<Priority, String> {
        let index = || text.parse().ok();
        let class = || {
            let (major, minor) = text.split_once(':')?;
            let [major, minor] = [major, minor].map(|part| u16::from_str_radix(part, 16));
            let class = u32::from(major.ok()?) << 16 | u32::from(minor.ok()?);
            (class > u32::from(u16::MAX)).then_some(class)
        };
        let is_index = |index: &u32| (1..=INDEX_MAX).contains(index);
        let priority = index().filter(is_index).or_else(class);
        priority.map(Priority).ok_or_else(|| {
            format!("is {text}; allowed: 1 to {INDEX_MAX}, or a class of the queue discipline, as in \"1:10\"")
        })
    }
}

impl fmt::Display for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            index @ ..=INDEX_MAX => write!(f, "{index}"),
            class => write!(f, "{:x}:{:x}", class >> 16, class & 0xffff),
        }
    }
}

struct Reader;

impl Visitor<'_> for Reader {
    type Value = Priority;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a priority as in 7 or a class as in \"1:10\"")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Priority, E> {
        Priority::read(text).map_err(E::custom)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Priority, E> {
        self.visit_str(&number.to_string())
    }
}

impl<'de> Deserialize<'de> for Priority {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Priority, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}

impl Serialize for Priority {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            index @ ..=INDEX_MAX => serializer.serialize_u32(index),
            _ => serializer.collect_str(self),
        }
    }
}
