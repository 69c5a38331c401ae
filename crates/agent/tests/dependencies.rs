// SPDX-License-Identifier: Apache-2.0
//! The arrows between the workspace's crates, as ARCHITECTURE.md draws them: penstockd links no
//! simulator, and there is no circle. And the map at the beginning of each crate.

#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use toml::Table;

/// Each crate with the crates of the workspace that it may use, each of them above it in this list.
const ARROWS: [(&str, &[&str]); 10] = [
    ("penstock-core", &[]),
    ("penstock-linux", &[]),
    ("penstock-sdn", &[]),
    ("penstock-cni", &["penstock-linux"]),
    ("penstock-scenario", &["penstock-core"]),
    (
        "penstock-controller",
        &[
            "penstock-core",
            "penstock-linux",
            "penstock-scenario",
            "penstock-sdn",
        ],
    ),
    ("penstock-sim", &["penstock-core", "penstock-scenario"]),
    (
        "penstockd",
        &[
            "penstock-core",
            "penstock-linux",
            "penstock-sdn",
            "penstock-scenario",
        ],
    ),
    (
        "penstock-loadgen",
        &["penstock-linux", "penstock-scenario", "penstock-sim"],
    ),
    ("penstock-python", &["penstock-scenario", "penstock-sim"]),
];

/// Dependencies on other crates of the workspace in a manifest, those of tests left out.
fn dependencies(manifest: &Table, names: &BTreeSet<String>) -> BTreeSet<String> {
    let targets = manifest.get("target").and_then(|target| target.as_table());
    let of_targets = targets.into_iter().flat_map(|target| target.values());
    let tables = of_targets
        .filter_map(|target| target.as_table())
        .chain([manifest])
        .flat_map(|table| ["dependencies", "build-dependencies"].map(|key| table.get(key)));
    let used = tables.flatten().filter_map(|table| table.as_table());
    let used = used.flat_map(|table| table.keys().cloned());
    used.filter(|name| names.contains(name)).collect()
}

#[test]
fn crates_use_only_those_above_them() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let manifests: BTreeMap<String, Table> = std::fs::read_dir(crates)
        .unwrap()
        .filter_map(|folder| {
            std::fs::read_to_string(folder.unwrap().path().join("Cargo.toml")).ok()
        })
        .map(|text| {
            let manifest: Table = text.parse().unwrap();
            let name = manifest["package"]["name"].as_str().unwrap().to_owned();
            (name, manifest)
        })
        .collect();
    let names: BTreeSet<String> = manifests.keys().cloned().collect();
    let listed = ARROWS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(
        names, listed,
        "a crate is not in the list above, or is gone"
    );
    let mut above = BTreeSet::new();
    for (name, allowed) in ARROWS {
        let used = dependencies(&manifests[name], &names);
        let allowed: BTreeSet<String> = allowed.iter().map(|name| (*name).to_owned()).collect();
        assert!(allowed.is_subset(&above), "{name}: an arrow upward");
        assert_eq!(used, allowed, "{name}");
        above.insert(name.to_owned());
    }
}

#[test]
fn the_map_of_a_crate_names_its_modules() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for folder in std::fs::read_dir(crates).unwrap() {
        let source = folder.unwrap().path().join("src");
        let roots = ["lib.rs", "main.rs"].map(|name| std::fs::read_to_string(source.join(name)));
        let Some(text) = roots.into_iter().find_map(Result::ok) else {
            continue;
        };
        let map: Vec<&str> = text
            .lines()
            .take_while(|line| line.starts_with("//"))
            .collect();
        let map = map.join("\n").to_lowercase().replace("!`", "`");
        let modules = text.lines().filter_map(|line| {
            let line = line.strip_prefix("pub ").unwrap_or(line);
            line.strip_prefix("mod ")?.strip_suffix(';')
        });
        for module in modules {
            let is_named = map.contains(&format!("`{module}`"));
            assert!(is_named, "{}: {module} is not in the map", source.display());
        }
    }
}
