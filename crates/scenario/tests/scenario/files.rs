// SPDX-License-Identifier: Apache-2.0
//! The scenarios of the repository parse, and parse to the same when resolved.

use std::path::Path;

use penstock_scenario::{Scenario, json_schema};

use super::validator::violation;
use super::{SAMPLE, parse, scenarios};

fn read(path: &Path) -> Scenario {
    let text = std::fs::read_to_string(path).unwrap();
    Scenario::parse(&text, path, &[]).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn every_scenario_is_accepted_and_equals_itself_resolved() {
    let paths = scenarios();
    assert!(paths.len() > 15, "found {paths:?}");
    for path in paths {
        let scenario = read(&path);
        let resolved = scenario.resolved();
        let again = Scenario::parse(&resolved, Path::new("elsewhere/resolved.toml"), &[])
            .unwrap_or_else(|error| panic!("{}: {error}\n{resolved}", path.display()));
        assert_eq!(again, scenario, "{}", path.display());
        assert_eq!(again.resolved(), resolved, "{}", path.display());
    }
}

#[test]
fn every_scenario_obeys_the_schema() {
    let schema: serde_json::Value = serde_json::from_str(&json_schema()).unwrap();
    for path in scenarios() {
        let text = std::fs::read_to_string(&path).unwrap();
        for text in [text, read(&path).resolved()] {
            let value: toml::Value = toml::from_str(&text).unwrap();
            let value = serde_json::to_value(value).unwrap();
            assert_eq!(
                violation(&schema, &schema, &value),
                None,
                "{}",
                path.display()
            );
        }
    }
}

#[test]
fn the_schema_refuses_unknown_keys_and_missing_units() {
    let schema: serde_json::Value = serde_json::from_str(&json_schema()).unwrap();
    for (from, to) in [
        ("flows = 60", "flow = 60"),
        ("min_rto = \"200 ms\"", "min_rto = 200"),
        ("title = \"Sample\"", ""),
        ("kind = \"incast\"", "kind = \"incst\""),
        ("bins = 64", "kind = \"hcf\", bin = 64"),
    ] {
        let broken = SAMPLE.replace(from, to);
        assert_ne!(broken, SAMPLE);
        let value: toml::Value = toml::from_str(&broken).unwrap();
        let value = serde_json::to_value(value).unwrap();
        assert!(violation(&schema, &schema, &value).is_some(), "{to}");
    }
}

#[test]
fn every_key_of_the_schema_is_described() {
    let schema: serde_json::Value = serde_json::from_str(&json_schema()).unwrap();
    let definitions = schema["$defs"].as_object().unwrap();
    let mut keys = 0;
    for (name, definition) in definitions {
        let variants = definition["oneOf"].as_array().cloned().unwrap_or_default();
        for object in variants.iter().chain([definition]) {
            let Some(properties) = object["properties"].as_object() else {
                continue;
            };
            for (key, property) in properties.iter().filter(|(key, _)| *key != "kind") {
                keys += 1;
                assert!(
                    property["description"].is_string(),
                    "{name}.{key} has no description"
                );
            }
        }
    }
    assert!(keys > 100, "only {keys} keys");
}

#[test]
fn the_sample_is_accepted() {
    parse(SAMPLE).unwrap_or_else(|error| panic!("{error}"));
}

/// A burst of a short run does not fall between two samples.
#[test]
fn short_runs_sample_their_queues_more_often_and_very_long_ones_less() {
    let every = |duration: &str, measure: &str| {
        let text = format!(
            "title = \"a\"\nduration = \"{duration}\"\nschemes = [\"drop-tail\"]\n[fabric]\nkind = \"dumbbell\"\n\
             senders = 1\nreceivers = 1\naccess = {{ rate = \"1 Gb/s\", delay = \"1 us\" }}\n\
             bottleneck = {{ rate = \"1 Gb/s\", delay = \"1 us\" }}\n\
             [traffic.t]\nkind = \"bulk\"\nfrom = \"senders\"\nto = \"receivers\"\n{measure}"
        );
        let scenario = Scenario::parse(&text, Path::new("a.toml"), &[]).unwrap();
        scenario.measure.queue_every.to_string()
    };
    assert_eq!(every("5 s", ""), "1 ms");
    assert_eq!(every("200 ms", "[measure]\n"), "1 ms");
    assert_eq!(every("60 ms", ""), "300 us");
    assert_eq!(every("10 us", ""), "1 us");
    assert_eq!(every("300 h", ""), "10800 us");
    assert_eq!(
        every("10 ms", "[measure]\nqueue_every = \"2 ms\"\n"),
        "2 ms"
    );
}
