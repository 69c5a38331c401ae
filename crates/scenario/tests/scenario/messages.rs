// SPDX-License-Identifier: Apache-2.0
//! Errors of refused scenarios: the exact lines.

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
