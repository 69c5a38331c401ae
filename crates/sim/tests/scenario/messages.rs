// SPDX-License-Identifier: Apache-2.0
//! What a refused scenario is told: the exact lines.

use super::{SAMPLE, parse, parse_with};

/// `(what is replaced in the sample, by what, the message)`.
const BROKEN: &[(&str, &str, &str)] = &include!("broken.in");

/// `(key, value, the message)`.
const OVERRIDES: &[(&str, &str, &str)] = &include!("overrides.in");

#[test]
fn broken_files() {
    for (from, to, message) in BROKEN {
        let broken = SAMPLE.replacen(from, to, 1);
        assert_ne!(broken, SAMPLE, "{from}");
        match parse(&broken) {
            Ok(_) => println!("ACCEPTED {to}"),
            Err(error) => println!("{error}"),
        }
    }
}

#[test]
fn broken_overrides() {
    for (key, value, message) in OVERRIDES {
        match parse_with(key, value) {
            Ok(_) => println!("ACCEPTED {key}={value}"),
            Err(error) => println!("{error}"),
        }
    }
}
