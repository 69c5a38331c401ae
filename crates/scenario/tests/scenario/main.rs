// SPDX-License-Identifier: Apache-2.0
//! Scenario files: what is accepted, what is refused, and the error.

#![allow(clippy::unwrap_used)]

mod files;
mod fuzz;
mod graph;
mod messages;
mod names;
mod schemes;
mod units;
mod validator;

use std::path::{Path, PathBuf};

use penstock_scenario::{Scenario, ScenarioError};

/// A scenario with a bit of everything; broken by the tests.
const SAMPLE: &str = include_str!("sample.toml");

fn parse(text: &str) -> Result<Scenario, ScenarioError> {
    Scenario::parse(text, Path::new("sample.toml"), &[])
}

fn parse_with(key: &str, value: &str) -> Result<Scenario, ScenarioError> {
    let overrides = [(key.to_owned(), value.to_owned())];
    Scenario::parse(SAMPLE, Path::new("sample.toml"), &overrides)
}

/// A folder of the repository.
fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(name)
}

/// Files next to scenarios that are none: an experiment's claims, the axes of a grid.
const OTHERS: [&str; 2] = ["claims.toml", "axes.toml"];

/// All scenarios of the repository.
fn scenarios() -> Vec<PathBuf> {
    fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
        let mut entries: Vec<_> = std::fs::read_dir(folder).unwrap().flatten().collect();
        entries.sort_by_key(|entry| entry.path());
        for path in entries.into_iter().map(|entry| entry.path()) {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() {
                walk(&path, found);
            } else if name.ends_with(".toml") && !OTHERS.contains(&&*name) {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    for name in ["scenarios", "papers", "evidence"] {
        walk(&folder(name), &mut found);
    }
    found
}
