// SPDX-License-Identifier: Apache-2.0
//! Whatever is given, it is accepted or refused in one line.

use std::path::Path;

use penstock_scenario::Scenario;
use proptest::prelude::*;

use super::SAMPLE;

/// Refusals are one line that names the file or the override.
fn survives(text: &str, overrides: &[(String, String)]) -> Result<(), TestCaseError> {
    match Scenario::parse(text, Path::new("f.toml"), overrides) {
        Ok(scenario) => {
            let again = Scenario::parse(&scenario.resolved(), Path::new("f.toml"), &[]);
            prop_assert_eq!(again, Ok(scenario));
        }
        Err(error) => {
            let message = error.to_string();
            let is_located = message.starts_with("f.toml:") || message.starts_with("--set ");
            prop_assert!(is_located, "{}", message);
            let is_one_line = !message.trim_end().contains('\n');
            prop_assert!(
                is_one_line || overrides.iter().any(|(_, v)| v.contains('\n')),
                "{}",
                message
            );
        }
    }
    Ok(())
}

fn keys() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(vec![
            "duration",
            "seeds",
            "schemes",
            "fabric",
            "fabric.kind",
            "fabric.senders",
            "fabric.access.rate",
            "fabric.bottleneck.buffer",
            "tcp.min_rto",
            "tcp.mss",
            "traffic",
            "traffic.mice",
            "traffic.mice.flows",
            "traffic.mice.from",
            "traffic.mice.size",
            "traffic.mice.every",
            "traffic.search.load",
            "traffic.search.gaps",
            "traffic.search.bursts",
            "traffic.read.jobs",
            "traffic.read.think",
            "traffic.read.every",
            "traffic.read.clients",
            "traffic.read.pick",
            "traffic.read.stages",
            "traffic.read.connection",
            "measure.ports",
            "measure.from",
            "scheme.mine",
            "scheme.mine.base",
            "scheme.mine.queue.bins",
            "scheme.hscc.window.alpha1",
            "scheme.hscc.window.kind",
            "scheme",
        ])
        .prop_map(str::to_owned),
        "[a-z.]{0,12}",
        ".{0,8}",
    ]
}

fn values() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(vec![
            "0",
            "1",
            "-1",
            "4294967296",
            "9223372036854775807",
            "1e308",
            "nan",
            "inf",
            "true",
            "[]",
            "{}",
            "[1, 2]",
            "10 ms",
            "0 s",
            "1000000 s",
            "1 Gb/s",
            "20 %",
            "fat-tree",
            "{ kind = \"red\" }",
            "senders[3..1]",
            "senders[0..99999999999]",
            "1979-05-27",
            "\"\"",
            "{ kind = \"fat-tree\", k = 4, host_link = { rate = \"1 Gb/s\", delay = \"1 us\" } }",
        ])
        .prop_map(str::to_owned),
        ".{0,12}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn random_text(text in "(?s).{0,200}") {
        survives(&text, &[])?;
    }

    #[test]
    fn random_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        survives(&String::from_utf8_lossy(&bytes), &[])?;
    }

    #[test]
    fn truncated_files(end in 0..SAMPLE.len()) {
        survives(&SAMPLE[..end], &[])?;
    }

    #[test]
    fn files_with_a_hole(start in 0..SAMPLE.len(), length in 1..40usize) {
        let end = (start + length).min(SAMPLE.len());
        survives(&format!("{}{}", &SAMPLE[..start], &SAMPLE[end..]), &[])?;
    }

    #[test]
    fn files_with_a_changed_byte(at in 0..SAMPLE.len(), byte in 0x20..0x7fu8) {
        let mut bytes = SAMPLE.as_bytes().to_vec();
        bytes[at] = byte;
        survives(&String::from_utf8(bytes).unwrap(), &[])?;
    }

    #[test]
    fn overrides(pairs in prop::collection::vec((keys(), values()), 1..4)) {
        survives(SAMPLE, &pairs)?;
    }
}

#[test]
fn deep_nesting() {
    for text in [
        "x=".to_owned() + &"[".repeat(100_000),
        "x=".to_owned() + &"{a=".repeat(100_000),
        "[".repeat(100_000),
        "a.".repeat(50_000) + "b=1",
        "[".to_owned() + &"a.".repeat(50_000) + "b]",
        "x={".to_owned() + &"a.".repeat(50_000) + "b=1}",
    ] {
        survives(&text, &[]).unwrap();
    }
}

#[test]
fn deep_overrides() {
    let deep = "[".repeat(50_000) + &"]".repeat(50_000);
    survives(SAMPLE, &[("seeds".to_owned(), deep)]).unwrap();
    let long = "a.".repeat(100_000) + "b";
    survives(SAMPLE, &[(long, "1".to_owned())]).unwrap();
}
