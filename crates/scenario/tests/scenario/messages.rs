// SPDX-License-Identifier: Apache-2.0
//! Errors of refused scenarios: the exact lines.

use std::path::Path;

use penstock_scenario::Scenario;

use super::{SAMPLE, parse, parse_with};

/// `(what is replaced in the sample, by what, the message)`; `FOLDER` stands for the current one.
const BROKEN: &[(&str, &str, &str)] = &include!("broken.in");

/// `(key, value, the message)`.
const OVERRIDES: &[(&str, &str, &str)] = &include!("overrides.in");

#[test]
fn broken_files() {
    let folder = std::env::current_dir().unwrap();
    for (from, to, message) in BROKEN {
        let broken = SAMPLE.replacen(from, to, 1);
        assert_ne!(broken, SAMPLE, "{from}");
        match parse(&broken) {
            Ok(_) => panic!("accepted: {to}"),
            Err(error) => {
                let line = error
                    .to_string()
                    .replace(folder.to_str().unwrap(), "FOLDER");
                assert_eq!(&line, message);
            }
        }
    }
}

#[test]
fn broken_overrides() {
    for (key, value, message) in OVERRIDES {
        match parse_with(key, value) {
            Ok(_) => panic!("accepted: {key}={value}"),
            Err(error) => assert_eq!(&error.to_string(), message),
        }
    }
}

/// A table of traffic whose only entry is wrong is not empty.
#[test]
fn a_wrong_traffic_is_an_entry() {
    let before = SAMPLE.find("[traffic.").unwrap();
    let head = SAMPLE[..before].replace(", \"mine\"", "");
    let only = "[traffic.mice]\nkind = \"incats\"\nflows = 1\n";
    let line = |text: &str| parse(text).unwrap_err().to_string();
    let wrong = line(&format!("{head}{only}"));
    assert!(
        wrong.contains("traffic.mice.kind: unknown value \"incats\"") && !wrong.contains("more"),
        "{wrong}"
    );
    let empty = line(&format!("{head}[traffic]\n"));
    assert!(empty.contains("traffic: has no entry"), "{empty}");
}

#[test]
fn all_problems_come_at_once() {
    let broken = SAMPLE
        .replacen("senders = 80", "senders = \"80\"", 1)
        .replacen("min_rto = \"200 ms\"", "min_rto = 200\nsack = 1", 1)
        .replacen("\"drop-tail\", \"hscc\"", "\"droptail\", 7", 1)
        .replacen("flows = 60", "flow = 60", 1)
        .replacen("[measure]", "[measure]\nqueue_every = \"1 ps\"", 1);
    let error = parse(&broken).unwrap_err();
    let keys: Vec<&str> = error.problems.iter().map(|each| &*each.key).collect();
    assert_eq!(
        keys,
        [
            "schemes[1]",
            "fabric.senders",
            "tcp.min_rto",
            "tcp.sack",
            "traffic.mice.flow"
        ]
    );
    assert!(error.to_string().ends_with("(and 4 more problems)"));
}

/// What is wrong with values is found next to wrong types, but not in the same table, where it may
/// follow from a default.
#[test]
fn types_do_not_hide_values() {
    let broken = SAMPLE
        .replacen("min_rto = \"200 ms\"", "min_rto = 200\nmss = 9", 1)
        .replacen("\"drop-tail\", \"hscc\"", "\"droptail\", \"hscc\"", 1);
    let overrides = [("seeds".to_owned(), "many".to_owned())];
    let error = Scenario::parse(&broken, Path::new("sample.toml"), &overrides).unwrap_err();
    let keys: Vec<&str> = error.problems.iter().map(|each| &*each.key).collect();
    assert_eq!(keys, ["schemes[0]", "tcp.min_rto", "seeds"]);
}

/// Next to a count out of range other sections are checked, but not what depends on it.
#[test]
fn counts_do_not_hide_values() {
    let broken = SAMPLE
        .replacen("senders = 80", "senders = -4", 1)
        .replacen("min_rto = \"200 ms\"", "mss = 9", 1)
        .replacen("flows = 60", "flows = 0", 1);
    let error = parse(&broken).unwrap_err();
    let keys: Vec<&str> = error.problems.iter().map(|each| &*each.key).collect();
    assert_eq!(keys, ["fabric.senders", "tcp.mss", "traffic.mice.flows"]);
}
