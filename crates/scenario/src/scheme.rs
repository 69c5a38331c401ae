// SPDX-License-Identifier: Apache-2.0
//! A scheme: queue policy, window policy, controller and the TCP it needs.

use std::sync::LazyLock;

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::de::Failure;
use super::document::{self, Node};
use super::error::{Origin, Problem, unknown};
use super::quantities::Share;
use super::queue::Queue;
use super::tcp::Tcp;
use super::window::{Controller, Window};

/// What every port does and what the hosts run, to be compared with other schemes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Scheme {
    /// The built-in scheme that gives the parts not given here. Default: the one of the same
    /// name, else drop-tail.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// One line on what it does.
    pub title: String,
    /// Where it comes from: a section of a paper, an RFC.
    pub source: String,
    /// Queue policy of every switch port. Default: drop-tail.
    pub queue: Queue,
    /// Window policy of every switch port. Default: none.
    pub window: Window,
    /// Share of the ACKs whose window ports may lower. They flag these, and the shim below each sender
    /// writes the last flagged window of a flow into its other ACKs (FairQ §III-B). Default: ports
    /// lower all windows themselves, without shims.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sampled: Option<Share>,
    /// Controller. Default: none.
    pub controller: Controller,
    /// TCP parameters the scheme needs, over the scenario's.
    #[serde(skip_serializing_if = "Tcp::is_empty")]
    pub tcp: Tcp,
}

const BUILT_IN: &str = include_str!("builtin.toml");

/// The built-in schemes as a document; a test reads it.
pub(super) fn document() -> Result<Node, Problem> {
    document::parse(BUILT_IN).map(|node| node.written_at(Origin::BuiltIn))
}

/// The built-in schemes in the order in which they are listed.
pub fn builtin_schemes() -> &'static IndexMap<String, Scheme> {
    static SCHEMES: LazyLock<IndexMap<String, Scheme>> = LazyLock::new(|| {
        document()
            .and_then(|node| {
                IndexMap::deserialize(&node).map_err(|failure: Failure| failure.problem("scheme"))
            })
            .unwrap_or_else(|problem| unreachable!("builtin.toml: {}", problem.what))
    });
    &SCHEMES
}

/// Puts under `scheme` of the document all schemes it compares or defines, each with the parts of
/// its base. Returns the bases that do not exist.
pub(super) fn complete(root: &mut Node) -> Vec<Problem> {
    let built_in = match document() {
        Ok(built_in) => built_in,
        Err(problem) => return vec![problem],
    };
    let mut unknown_bases = Vec::new();
    let compared = root.get("schemes").map(compared).unwrap_or_default();
    let own = root.get("scheme").cloned();
    let mut schemes = Node::table(root.locate("scheme"));
    for name in compared.iter().chain(own.iter().flat_map(Node::keys)) {
        if schemes.get(name).is_some() {
            continue;
        }
        let own = own.as_ref().and_then(|own| own.get(name));
        let base = own.and_then(|own| own.get("base"));
        let from = match base.and_then(Node::text) {
            Some(from) => from,
            None if built_in.get(name).is_some() => name,
            None => "drop-tail",
        };
        let mut scheme = built_in.get(from).cloned().unwrap_or_else(|| {
            let names: Vec<&str> = built_in.keys().map(String::as_str).collect();
            unknown_bases.push(Problem {
                at: base.map_or(root.at, |base| base.at),
                key: format!("scheme.{name}.base"),
                what: unknown("scheme", from, &names),
            });
            Node::table(root.at)
        });
        match own {
            Some(own) => scheme.merge(own.clone()),
            // Named in `schemes` only, and perhaps wrongly: the check reports it.
            None if from != name => continue,
            None => {}
        }
        schemes.insert(name, scheme);
    }
    if own.is_none_or(|own| own.is_table()) {
        root.insert("scheme", schemes);
    }
    unknown_bases
}

/// The texts of a list.
fn compared(node: &Node) -> Vec<String> {
    node.elements()
        .filter_map(|element| element.text().map(str::to_owned))
        .collect()
}
