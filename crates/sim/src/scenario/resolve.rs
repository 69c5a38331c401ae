// SPDX-License-Identifier: Apache-2.0
//! From text to a scenario: parse, override, complete the schemes, type, check.

use serde::Deserialize;

use super::check::check;
use super::document::{self, Node};
use super::error::{Origin, Problem};
use super::{Scenario, scheme};

/// Reads `text` with `overrides` on top.
pub(super) fn read(text: &str, overrides: &[(String, String)]) -> Result<Scenario, Vec<Problem>> {
    let mut root = document::parse(text).map_err(|problem| vec![problem])?;
    apply(&mut root, overrides)?;
    scheme::complete(&mut root).map_err(|problem| vec![problem])?;
    let scenario = Scenario::deserialize(&root).map_err(|failure| vec![failure.problem("")])?;
    match check(&scenario, &root) {
        problems if problems.is_empty() => Ok(scenario),
        problems => Err(problems),
    }
}

fn apply(root: &mut Node, overrides: &[(String, String)]) -> Result<(), Vec<Problem>> {
    for (index, (key, value)) in overrides.iter().enumerate() {
        let at = Origin::Override(index);
        let problem = |what| {
            vec![Problem {
                at,
                key: key.clone(),
                what,
            }]
        };
        if key.split('.').any(|part| part.trim().is_empty()) {
            let what = "is no key; allowed: as in traffic.mice.flows".to_owned();
            return Err(problem(what));
        }
        root.set(key.trim(), document::parse_value(value), at)
            .map_err(problem)?;
    }
    Ok(())
}
