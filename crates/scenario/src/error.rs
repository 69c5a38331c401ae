// SPDX-License-Identifier: Apache-2.0
//! What is wrong with a scenario, in one line: where, which key, what is allowed.

use std::fmt;
use std::path::PathBuf;

/// Where a value was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// A line of the file, from 1.
    Line(usize),
    /// The override of this index.
    Override(usize),
    /// A built-in scheme.
    BuiltIn,
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Where it was written.
    pub at: Origin,
    /// The dotted path of the key, empty for the whole document.
    pub key: String,
    /// What is wrong, what is allowed, and the nearest match.
    pub what: String,
}

/// A scenario that was refused. Displays as one line: `FILE:LINE: KEY: WHAT`, or
/// `--set KEY=VALUE: WHAT` for an override, with the number of further problems.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScenarioError {
    /// The file, as given.
    pub file: PathBuf,
    /// The overrides as given, `KEY=VALUE`.
    pub overrides: Vec<String>,
    /// Never empty; in the order of the file's lines, what is missing last.
    pub problems: Vec<Problem>,
}

impl ScenarioError {
    /// One problem as one line.
    pub fn line(&self, problem: &Problem) -> String {
        let Problem { at, key, what } = problem;
        let key = if key.is_empty() {
            String::new()
        } else {
            format!("{key}: ")
        };
        match at {
            Origin::Line(line) => format!("{}:{line}: {key}{what}", self.file.display()),
            Origin::BuiltIn => format!("{}: {key}{what}", self.file.display()),
            Origin::Override(index) => {
                let given = self.overrides.get(*index).map_or("", String::as_str);
                let named = given.split('=').next().unwrap_or("").trim();
                let key = if key == format!("{named}: ") {
                    ""
                } else {
                    &key
                };
                format!("--set {given}: {key}{what}")
            }
        }
    }
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(first) = self.problems.first() {
            f.write_str(&self.line(first))?;
        }
        match self.problems.len() {
            0 | 1 => Ok(()),
            2 => f.write_str(" (and 1 more problem)"),
            n => write!(f, " (and {} more problems)", n - 1),
        }
    }
}

impl std::error::Error for ScenarioError {}

/// `unknown THING "NAME"; allowed: ...; did you mean "..."?`
pub fn unknown(thing: &str, name: &str, allowed: &[&str]) -> String {
    let hint = nearest(name, allowed)
        .map(|near| format!("; did you mean \"{near}\"?"))
        .unwrap_or_default();
    let allowed = match allowed {
        [] => "none".to_owned(),
        _ => allowed.join(", "),
    };
    let name = name.escape_debug();
    format!("unknown {thing} \"{name}\"; allowed: {allowed}{hint}")
}

/// The candidate that differs least from `name`, if it is near enough to be meant.
pub fn nearest<'a>(name: &str, candidates: &[&'a str]) -> Option<&'a str> {
    let length = name.chars().count();
    if length > 100 {
        return None;
    }
    let limit = (length / 3).max(1);
    candidates
        .iter()
        .map(|candidate| (distance(name, candidate), *candidate))
        .min_by_key(|(distance, _)| *distance)
        .filter(|(distance, _)| *distance <= limit)
        .map(|(_, candidate)| candidate)
}

/// Optimal string alignment: insertions, deletions, substitutions and swaps of neighbours that turn
/// `a` into `b`. Letters that differ in case only count nothing.
fn distance(a: &str, b: &str) -> usize {
    let letters = |text: &str| text.to_lowercase().chars().collect::<Vec<_>>();
    let (a, b) = (letters(a), letters(b));
    let mut rows = vec![(0..=b.len()).collect::<Vec<_>>()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let differs = usize::from(a[i - 1] != b[j - 1]);
            let mut least = (rows[i - 1][j - 1] + differs).min(rows[i - 1][j].min(row[j - 1]) + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}
