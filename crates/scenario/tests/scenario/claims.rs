// SPDX-License-Identifier: Apache-2.0
//! The papers' claims name schemes, traffic, ports and runs that their scenario has.

use std::collections::HashSet;
use std::path::Path;

use penstock_scenario::Scenario;
use toml::{Table, Value};

use super::folder;

fn overrides(run: &Value) -> Vec<(String, String)> {
    let set = run.get("set").and_then(Value::as_table);
    set.into_iter()
        .flatten()
        .map(|(key, value)| (key.clone(), value.to_string()))
        .collect()
}

fn check_measure(measure: &Value, scenario: &Scenario, id: &str) {
    let text = |key: &str| measure.get(key).and_then(Value::as_str);
    let scheme = text("scheme").unwrap();
    assert!(
        scenario.schemes.iter().any(|name| name == scheme),
        "{id}: {scheme}"
    );
    match (text("group"), text("port")) {
        (Some(group), None) => assert!(scenario.traffic.contains_key(group), "{id}: {group}"),
        (None, Some(port)) => {
            let is_measured = scenario.measure.selects(&scenario.fabric, port);
            assert_eq!(is_measured, Some(true), "{id}: {port}");
        }
        _ => panic!("{id}: neither group nor port, or both"),
    }
    assert!(text("field").is_some(), "{id}: no field");
}

fn check(experiment: &Path) -> usize {
    let read = |name: &str| std::fs::read_to_string(experiment.join(name)).unwrap();
    let claims: Table = read("claims.toml").parse().unwrap();
    let no_runs = Table::new();
    let runs = claims
        .get("runs")
        .map_or(&no_runs, |runs| runs.as_table().unwrap());
    let file = experiment.join("scenario.toml");
    let text = read("scenario.toml");
    for (name, run) in runs {
        let run = Scenario::parse(&text, &file, &overrides(run));
        assert!(
            run.is_ok(),
            "{}, {name}: {}",
            file.display(),
            run.unwrap_err()
        );
    }
    let scenario = Scenario::parse(&text, &file, &[]).unwrap();
    let mut ids = HashSet::new();
    for claim in claims["claim"].as_array().unwrap() {
        let id = claim["id"].as_str().unwrap();
        let name = experiment.file_name().unwrap().to_str().unwrap();
        assert!(
            id.starts_with(&format!("{name}.")) && ids.insert(id),
            "{id}"
        );
        let run = claim.get("run").and_then(Value::as_str);
        assert_eq!(run.is_some(), !runs.is_empty(), "{id}");
        assert!(run.is_none_or(|run| runs.contains_key(run)), "{id}");
        for key in ["text", "where", "published", "relation"] {
            assert!(claim.get(key).is_some(), "{id}: no {key}");
        }
        check_measure(&claim["measure"], &scenario, id);
        if claim["against"].is_table() {
            check_measure(&claim["against"], &scenario, id);
        }
    }
    ids.len()
}

#[test]
fn claims_fit_their_scenario() {
    let experiments = [
        "sicc-4", "sicc-5", "sicc-6", "sicc-7", "hcf-4", "hcf-5", "hscc-4",
    ];
    let claims: usize = experiments
        .iter()
        .map(|name| check(&folder("papers").join(name)))
        .sum();
    assert!(claims >= 52, "only {claims} claims");
}
