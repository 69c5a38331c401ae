// SPDX-License-Identifier: Apache-2.0
//! Types a document, and finds all that fails: what failed is left out, and the rest typed again.

use serde::de::DeserializeOwned;

use super::document::{self, Node, Value};
use super::error::{Origin, Problem};

/// More than anyone reads at once.
const MOST: usize = 50;

/// What may stand for a missing value, so that the others are typed: the first that fits.
const SAMPLES: [&str; 8] = [
    "\"1 s\"",
    "\"1 kB\"",
    "\"1 Gb/s\"",
    "1",
    "[]",
    "{}",
    "{ rate = \"1 Gb/s\", delay = \"1 us\" }",
    "{ kind = \"leaf-spine\", leaves = 1, spines = 1, hosts_per_leaf = 1, \
       host_link = { rate = \"1 Gb/s\", delay = \"1 us\" }, spine_link = { rate = \"1 Gb/s\", delay = \"1 us\" } }",
];

/// A document as `T` and all that failed. Where something optional failed, it has its default; where
/// something required did, a sample, if one fits: what has the failures in it is not to be believed.
pub fn typed<T: DeserializeOwned>(root: &Node) -> (Option<T>, Vec<Problem>) {
    let mut failure = match T::deserialize(root) {
        Ok(value) => return (Some(value), Vec::new()),
        Err(failure) => failure,
    };
    let mut rest = root.clone();
    let mut problems = Vec::new();
    while problems.len() < MOST {
        let path = failure.path();
        let is_void = rest.at_mut(&path).map(|node| node.value.is_void());
        if is_void != Some(true) {
            problems.push(failure.problem(""));
        }
        let can_go_on = match is_void {
            Some(false) => leave_out(&mut rest, &path),
            _ => fill::<T>(&mut rest, &path) || leave_out(&mut rest, parent(&path)),
        };
        if !can_go_on {
            break;
        }
        failure = match T::deserialize(&rest) {
            Ok(value) => return (Some(value), problems),
            Err(failure) => failure,
        };
    }
    (None, problems)
}

/// What cannot be without the value at `path`.
fn parent(path: &[String]) -> &[String] {
    &path[..path.len().saturating_sub(1)]
}

/// Whether there was anything to leave out; the whole document cannot be.
fn leave_out(root: &mut Node, path: &[String]) -> bool {
    match root.at_mut(path) {
        Some(node) if !path.is_empty() && !node.value.is_void() => {
            node.value = Value::Void;
            true
        }
        _ => false,
    }
}

/// Puts the sample that fits at the missing `path`, if there is one.
fn fill<T: DeserializeOwned>(root: &mut Node, path: &[String]) -> bool {
    let Some((key, parents)) = path.split_last() else {
        return false;
    };
    SAMPLES.iter().any(|sample| {
        let node = Node {
            value: document::parse_value(sample),
            at: Origin::Line(1),
        };
        let mut filled = root.clone();
        let Some(parent) = filled.at_mut(parents) else {
            return false;
        };
        parent.insert(key, node);
        let fits = match T::deserialize(&filled) {
            Ok(_) => true,
            Err(failure) => !failure.path().starts_with(path),
        };
        if fits {
            *root = filled;
        }
        fits
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scenario;

    fn keys(text: &str) -> (bool, Vec<String>) {
        let root = document::parse(text).unwrap_or_else(|problem| panic!("{}", problem.what));
        let (value, problems) = typed::<Scenario>(&root);
        (
            value.is_some(),
            problems.into_iter().map(|each| each.key).collect(),
        )
    }

    const FABRIC: &str = "kind = \"dumbbell\"\nsenders = 2\nreceivers = 1\n\
        access = { rate = \"1 Gb/s\", delay = \"1 us\" }\nbottleneck = { rate = \"1 Gb/s\", delay = \"1 us\" }\n";

    #[test]
    fn what_is_missing_hides_nothing() {
        let (is_typed, keys) = keys("[tcp]\nsack = 1\n[fabric]\nkind = \"dumbbell\"\n");
        assert!(is_typed);
        assert_eq!(
            keys,
            [
                "tcp.sack",
                "fabric.senders",
                "fabric.receivers",
                "fabric.access",
                "fabric.bottleneck",
                "title",
                "duration",
                "schemes",
                "traffic"
            ]
        );
    }

    #[test]
    fn a_list_keeps_its_numbers() {
        let text = "title = 1\nduration = \"1 s\"\nschemes = [\"dctcp\", 2, \"sfq\", 4]\ntraffic = {}\n[fabric]\n";
        let (is_typed, keys) = keys(&format!("{text}{FABRIC}"));
        assert!(is_typed);
        assert_eq!(keys, ["title", "schemes[1]", "schemes[3]"]);
    }

    #[test]
    fn what_is_optional_has_its_default() {
        let text = "title = \"a\"\nduration = \"1 s\"\nschemes = [\"dctcp\"]\ntraffic = {}\nseeds = \"a\"\n[tcp]\nsak = true\n[fabric]\n";
        assert_eq!(
            keys(&format!("{text}{FABRIC}")),
            (true, vec!["seeds".to_owned(), "tcp.sak".to_owned()])
        );
    }
}
