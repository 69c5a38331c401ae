// SPDX-License-Identifier: Apache-2.0
//! Which hosts a traffic runs between: "senders", "senders[0..20]", "rack1[3]", "host7", lists of
//! these.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};
use serde::ser::{Serialize, Serializer};

use super::error::unknown;
use super::fabric::Fabric;

/// Names of hosts in an error.
const SHOWN: usize = 8;

/// Hosts, in the order given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selector {
    /// Names of groups and hosts, groups with a slice or without.
    pub terms: Vec<String>,
}

impl Selector {
    /// The indices of the hosts meant, in order.
    ///
    /// # Errors
    /// An unknown name or a slice beyond the group.
    pub fn resolve(&self, fabric: &Fabric) -> Result<Vec<usize>, String> {
        let groups = fabric.groups();
        let mut hosts = Vec::new();
        for term in &self.terms {
            let (name, slice) = parts(term)?;
            match (groups.get(name), slice) {
                (Some(group), None) => hosts.extend(group.clone()),
                (Some(group), Some(slice)) => {
                    let range = range(slice, group.len()).ok_or_else(|| {
                        format!(
                            "\"{term}\" is no slice; allowed: as in \"{name}[0..{}]\"",
                            group.len()
                        )
                    })?;
                    if range.start >= range.end {
                        return Err(format!("\"{term}\" is empty"));
                    }
                    if range.end > group.len() {
                        return Err(format!(
                            "\"{term}\": there are {} {}",
                            group.len(),
                            label(name)
                        ));
                    }
                    hosts.extend(group.start + range.start..group.start + range.end);
                }
                (None, _) => match host(fabric, name) {
                    Some(index) if slice.is_none() => hosts.push(index),
                    Some(_) => return Err(format!("\"{term}\": one host has no slice")),
                    None => {
                        let names = allowed(fabric);
                        let names: Vec<&str> = names.iter().map(String::as_str).collect();
                        return Err(unknown("hosts", name, &names));
                    }
                },
            }
        }
        match hosts.is_empty() {
            true => Err("names no host".to_owned()),
            false => Ok(hosts),
        }
    }
}

/// "senders" for the group of that name, "hosts in rack1" for one of a row.
fn label(name: &str) -> String {
    match name {
        "senders" | "receivers" => name.to_owned(),
        "all" => "hosts".to_owned(),
        _ => format!("hosts in {name}"),
    }
}

/// The groups, and the hosts' prefix with its range.
fn allowed(fabric: &Fabric) -> Vec<String> {
    let mut names: Vec<String> = fabric.groups().into_keys().collect();
    if names.len() > 12 {
        names.truncate(11);
        names.push("...".to_owned());
    }
    match fabric {
        Fabric::Dumbbell(f) => {
            names.push(format!("sender1 to sender{}", f.senders));
            names.push(format!("receiver1 to receiver{}", f.receivers));
        }
        Fabric::Graph(f) => names.extend(f.net.hosts.iter().take(SHOWN).cloned()),
        _ => names.push(format!("host1 to host{}", fabric.host_count())),
    }
    names
}

/// The index of the host called `name`.
fn host(fabric: &Fabric, name: &str) -> Option<usize> {
    let number = |prefix: &str, count: u64| {
        let n: u64 = name.strip_prefix(prefix)?.parse().ok()?;
        (1..=count).contains(&n).then(|| n as usize - 1)
    };
    match fabric {
        Fabric::Dumbbell(f) => number("sender", f.senders.into())
            .or_else(|| number("receiver", f.receivers.into()).map(|i| i + f.senders as usize)),
        Fabric::Graph(f) => f.net.hosts.iter().position(|host| host == name),
        _ => number("host", fabric.host_count()),
    }
}

/// The name and what stands in brackets.
fn parts(term: &str) -> Result<(&str, Option<&str>), String> {
    match term.trim().split_once('[') {
        None => Ok((term.trim(), None)),
        Some((name, rest)) => match rest.strip_suffix(']') {
            Some(slice) => Ok((name.trim(), Some(slice.trim()))),
            None => Err(format!("\"{term}\" lacks its closing bracket")),
        },
    }
}

/// "3", "0..20", "20..", "..20" of a group of `len`.
fn range(slice: &str, len: usize) -> Option<Range<usize>> {
    let Some((start, end)) = slice.split_once("..") else {
        let index: usize = slice.parse().ok()?;
        return Some(index..index.checked_add(1)?);
    };
    let bound = |text: &str, open: usize| match text.trim() {
        "" => Some(open),
        number => number.parse().ok(),
    };
    Some(bound(start, 0)?..bound(end, len)?)
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.terms.join(", "))
    }
}

impl<'de> Deserialize<'de> for Selector {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Selector, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Selector;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("hosts as in \"senders[0..20]\", or a list of these")
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Selector, E> {
                Ok(Selector {
                    terms: vec![text.to_owned()],
                })
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Selector, A::Error> {
                let mut terms = Vec::new();
                while let Some(term) = seq.next_element()? {
                    terms.push(term);
                }
                Ok(Selector { terms })
            }
        }
        deserializer.deserialize_any(Reader)
    }
}

impl Serialize for Selector {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.terms.as_slice() {
            [term] => serializer.serialize_str(term),
            terms => terms.serialize(serializer),
        }
    }
}

impl JsonSchema for Selector {
    fn schema_name() -> Cow<'static, str> {
        "Hosts".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "Hosts: a group (\"all\", \"senders\", \"receivers\", \"rack1\", \"leaf1\", \"pod1\", \"pod1-edge1\"), a slice of one (\"senders[0..20]\", counted from 0, its end left out), a host (\"sender1\", \"host7\"), or a list of these.",
            "anyOf": [
                { "type": "string" },
                { "type": "array", "items": { "type": "string" }, "minItems": 1 },
            ],
        })
    }
}
