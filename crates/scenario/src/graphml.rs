// SPDX-License-Identifier: Apache-2.0
//! The edges of a GraphML file: what of XML such files use. Nodes are called by their `label` where no
//! other node has the same, else by their `id`; an edge's rate is its `LinkSpeedRaw` (Internet Topology Zoo), `rate`,
//! `bandwidth` or `capacity`, its delay its `delay` or `latency`.

use std::collections::HashMap;

use super::graph::Edge;
use crate::units::{Rate, Time};

/// A tag: its name, its attributes, and the text behind it.
struct Tag<'a> {
    name: &'a str,
    attributes: HashMap<&'a str, String>,
    text: &'a str,
}

/// The edges of the text of a file.
pub fn edges(text: &str) -> Result<Vec<Edge>, String> {
    let mut edges: Vec<Edge> = Vec::new();
    let mut keys: HashMap<String, String> = HashMap::new();
    let mut labels: Vec<(String, String)> = Vec::new();
    let mut is_in_edge = false;
    let mut is_in_node = false;
    let mut has_graph = false;
    for tag in tags(text)? {
        let given = |key: &str| {
            let value = tag.attributes.get(key).cloned();
            value.ok_or_else(|| format!("an element <{}> has no {key}", tag.name))
        };
        match tag.name {
            "graph" => has_graph = true,
            "key" => {
                keys.insert(given("id")?, given("attr.name").unwrap_or_default());
            }
            "edge" => {
                (is_in_edge, is_in_node) = (true, false);
                let ends = [given("source")?, given("target")?].map(|id| plain(&id));
                edges.push(Edge {
                    ends,
                    rate: None,
                    delay: None,
                });
            }
            "node" => {
                (is_in_edge, is_in_node) = (false, true);
                let id = plain(&given("id")?);
                labels.push((id.clone(), id));
            }
            "/edge" | "/node" => (is_in_edge, is_in_node) = (false, false),
            "data" if is_in_node => {
                let key = given("key")?;
                let is_label = keys.get(&key).unwrap_or(&key).eq_ignore_ascii_case("label");
                if let (true, Some((_, label))) = (is_label, labels.last_mut()) {
                    *label = plain(&decoded(tag.text.trim()));
                }
            }
            "data" if is_in_edge => {
                let key = given("key")?;
                let name = keys.get(&key).unwrap_or(&key).to_ascii_lowercase();
                let value = decoded(tag.text.trim());
                let Some(edge) = edges.last_mut() else {
                    continue;
                };
                let [from, to] = edge.ends.each_ref().map(|end| end.escape_debug());
                let of = |what| format!("the edge {from} to {to}: {what}");
                match name.as_str() {
                    "linkspeedraw" | "rate" | "bandwidth" | "capacity" => {
                        edge.rate = Some(rate(&value).map_err(of)?);
                    }
                    "delay" | "latency" => edge.delay = Some(Time::read(&value).map_err(of)?),
                    _ => {}
                }
            }
            _ => {}
        }
    }
    if !has_graph {
        return Err("is no GraphML: it has no element <graph>".to_owned());
    }
    let names = names(&labels);
    for name in edges.iter_mut().flat_map(|edge| &mut edge.ends) {
        if let Some(label) = names.get(name.as_str()) {
            *name = (*label).to_owned();
        }
    }
    // The Topology Zoo lists cables of several years twice.
    let mut seen = std::collections::HashSet::new();
    edges.retain(|Edge { ends: [a, b], .. }| {
        a != b && seen.insert((a.min(b).clone(), a.max(b).clone()))
    });
    Ok(edges)
}

/// The labels of nodes, by their ids, as far as they name one node only.
fn names(labels: &[(String, String)]) -> HashMap<&str, &str> {
    let names_one = |label: &str| {
        let named = labels
            .iter()
            .filter(|(id, its)| id == label || its == label);
        !label.is_empty() && named.count() == 1
    };
    let pairs = labels
        .iter()
        .map(|(id, label)| (id.as_str(), label.as_str()));
    pairs.filter(|(_, label)| names_one(label)).collect()
}

/// A rate with its unit, or a number of bits per second.
fn rate(text: &str) -> Result<Rate, String> {
    match text.parse::<f64>() {
        Ok(bps) if (1.0..1e15).contains(&bps) => Ok(Rate(bps as u64)),
        _ => Rate::read(text),
    }
}

/// A name as scenarios have it.
fn plain(id: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    id.chars()
        .map(|c| if is_plain(c) { c } else { '_' })
        .collect()
}

fn tags(text: &str) -> Result<Vec<Tag<'_>>, String> {
    let mut tags = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find('<') {
        rest = &rest[at + 1..];
        if let Some(comment) = rest.strip_prefix("!--") {
            let end = comment.find("-->").ok_or("a comment does not end")?;
            rest = &comment[end + 3..];
            continue;
        }
        let end = rest.find('>').ok_or("an element does not end")?;
        let (inside, behind) = (&rest[..end], &rest[end + 1..]);
        rest = behind;
        if inside.starts_with(['?', '!']) {
            continue;
        }
        let inside = inside.trim_end_matches('/').trim();
        let name_end = inside.find(char::is_whitespace).unwrap_or(inside.len());
        let (name, attributes) = inside.split_at(name_end);
        tags.push(Tag {
            name,
            attributes: self::attributes(attributes)?,
            text: &behind[..behind.find('<').unwrap_or(behind.len())],
        });
    }
    Ok(tags)
}

fn attributes(mut text: &str) -> Result<HashMap<&str, String>, String> {
    let mut found = HashMap::new();
    while let Some((name, rest)) = text.split_once('=') {
        let rest = rest.trim_start();
        let quote = rest.chars().next().filter(|c| ['"', '\''].contains(c));
        let called = || name.trim().escape_debug();
        let quote = quote.ok_or_else(|| format!("the attribute {} has no quotes", called()))?;
        let (value, behind) = rest[1..]
            .split_once(quote)
            .ok_or_else(|| format!("the attribute {} does not end", called()))?;
        found.insert(name.trim(), decoded(value));
        text = behind;
    }
    Ok(found)
}

fn decoded(text: &str) -> String {
    let entities = [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&apos;", "'"),
        ("&amp;", "&"),
    ];
    let decode = |text: String, (entity, character): (&str, &str)| text.replace(entity, character);
    entities.into_iter().fold(text.to_owned(), decode)
}
