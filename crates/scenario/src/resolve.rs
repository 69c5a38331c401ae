// SPDX-License-Identifier: Apache-2.0
//! From text to a scenario: parse, override, complete the schemes, type, check.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::check::check;
use super::document::{self, Node};
use super::error::{Origin, Problem, unknown};
use super::typing::typed;
use super::{Controller, Fabric, Measure, Queue, Scenario, Traffic, graph, scheme};

/// More keys in a path than any scenario has.
const DEEPEST: usize = 16;

/// Reads `text` with `overrides` on top. Files are looked for in `folder`.
pub(super) fn read(
    text: &str,
    folder: &Path,
    overrides: &[(String, String)],
) -> Result<Scenario, Vec<Problem>> {
    let mut root = document::parse(text).map_err(|problem| vec![problem])?;
    let mut problems = apply(&mut root, overrides).err().unwrap_or_default();
    let unknown_bases = scheme::complete(&mut root);
    let (scenario, failures) = typed::<Scenario>(&root);
    // A scheme whose base is unknown lacks what it would have from there.
    let is_of_base = |each: &Problem| {
        let mut schemes = unknown_bases
            .iter()
            .map(|base| base.key.trim_end_matches("base"));
        schemes.any(|scheme| each.key.starts_with(scheme))
    };
    problems.extend(failures.into_iter().filter(|each| !is_of_base(each)));
    problems.extend(unknown_bases.iter().cloned());
    let Some(mut scenario) = scenario else {
        return Err(in_order(problems));
    };
    complete(&mut scenario, folder);
    if !is_given(&root, "measure", "queue_every") {
        scenario.measure.queue_every = Measure::queue_every(scenario.duration);
    }
    let others = check(&scenario, &root);
    let failed: HashSet<String> = problems.iter().map(section).collect();
    problems.extend(
        others
            .into_iter()
            .filter(|each| is_sure(&section(each), &failed)),
    );
    if problems.is_empty() {
        Ok(scenario)
    } else {
        Err(in_order(problems))
    }
}

fn is_given(root: &Node, section: &str, key: &str) -> bool {
    let table = root.get(section);
    table.and_then(|table| table.get(key)).is_some()
}

/// The first part of a problem's key, or the first two where it is in a traffic or a scheme.
fn section(problem: &Problem) -> String {
    let mut parts = problem.key.split(['.', '[']);
    let first = parts.next().unwrap_or_default();
    match (first, parts.next()) {
        ("traffic" | "scheme", Some(name)) => format!("{first}.{name}"),
        _ => first.to_owned(),
    }
}

/// Whether what a check found in a section is in the file, and does not come from what stands for a
/// value that `failed`: in the same section, or in one that it is compared with.
fn is_sure(section: &str, failed: &HashSet<String>) -> bool {
    let first = section.split('.').next().unwrap_or_default();
    let compared: &[&str] = match first {
        "traffic" => &["duration", "fabric", "traffic"],
        "measure" => &["duration", "fabric", "traffic", "traffic."],
        "until" => &["traffic", "traffic."],
        "scheme" => &["tcp", "scheme"],
        "schemes" => &["scheme", "scheme."],
        _ => &[],
    };
    !failed.contains(section)
        && !failed.iter().any(|name| {
            let is_within = |key: &&str| key.ends_with('.') && name.starts_with(*key);
            compared.iter().any(|key| name == key || is_within(key))
        })
}

/// In the order of the file's lines; what is missing comes last, as a key that is misspelt is often the cause.
fn in_order(mut problems: Vec<Problem>) -> Vec<Problem> {
    problems.sort_by_key(|problem| (problem.what.starts_with("is missing"), problem.at));
    problems
}

pub(super) fn apply(root: &mut Node, overrides: &[(String, String)]) -> Result<(), Vec<Problem>> {
    let mut problems = Vec::new();
    for (index, (key, value)) in overrides.iter().enumerate() {
        let at = Origin::Override(index);
        if let Err(what) = apply_one(root, key, value, at) {
            let key = key.clone();
            problems.push(Problem { at, key, what });
        }
    }
    if problems.is_empty() {
        Ok(())
    } else {
        Err(problems)
    }
}

fn apply_one(root: &mut Node, key: &str, value: &str, at: Origin) -> Result<(), String> {
    let is_path = key.split('.').all(|part| !part.trim().is_empty());
    if !is_path || key.split('.').count() > DEEPEST {
        return Err("has an empty part, or too many; allowed: as in traffic.mice.flows".to_owned());
    }
    if let Some(what) = unknown_entry(root, key) {
        return Err(what);
    }
    root.set(key.trim(), document::parse_value(value), at)
}

/// An override below a traffic or a scheme that does not exist is a slip: it could not make one.
fn unknown_entry(root: &Node, key: &str) -> Option<String> {
    let mut parts = key.trim().split('.');
    let (section, name) = (parts.next()?, parts.next()?);
    parts.next()?;
    let mut known: Vec<&str> = match section {
        "traffic" => Vec::new(),
        "scheme" => scheme::builtin_schemes()
            .keys()
            .map(String::as_str)
            .collect(),
        _ => return None,
    };
    known.extend(
        root.get(section)
            .into_iter()
            .flat_map(Node::keys)
            .map(String::as_str),
    );
    (!known.contains(&name)).then(|| unknown(section, name, &known))
}

/// Writes out what depends on other values, and files by their full path, so that the scenario
/// means the same wherever it is saved.
fn complete(scenario: &mut Scenario, folder: &Path) {
    let full = |path: &mut PathBuf| {
        let joined = folder.join(&path);
        *path = std::path::absolute(&joined).unwrap_or(joined);
    };
    for traffic in scenario.traffic.values_mut() {
        if let Traffic::Trace(trace) = traffic {
            full(&mut trace.file);
        }
        traffic.files_mut().into_iter().for_each(full);
    }
    if let Fabric::Graph(graph) = &mut scenario.fabric {
        // A file that cannot be read stays, for the check to report.
        if let Some(file) = &mut graph.file {
            full(file);
            if let Ok(edges) = graph::read(file) {
                graph.edges.extend(edges);
                graph.file = None;
            }
        }
        let _ = graph.find();
    }
    for scheme in scenario.scheme.values_mut() {
        if scheme.window.scheme().is_some() {
            scheme.window.complete();
        }
        if let Queue::Hcf(hcf) = &mut scheme.queue {
            hcf.complete();
        }
        if let Controller::Sicc(sicc) = &mut scheme.controller {
            sicc.complete();
        }
    }
}
