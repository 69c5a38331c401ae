// SPDX-License-Identifier: Apache-2.0
use super::*;
use std::collections::{HashMap, HashSet};

fn reading(interface: &str) -> Reading {
    let mut reading = Reading {
        interface: interface.to_owned(),
        scheme: "fairq".to_owned(),
        depth: vec![0; 33],
        heartbeat_age_s: 0.25,
        drops: Some(118),
        ..Reading::default()
    };
    reading.config.stale_ns = 1_000_000_000;
    reading.config.buffer_bytes = 131_072;
    reading.state.generation = 1;
    reading.state.window_bytes = 2_920;
    reading.counters.egress_bytes = 1 << 40;
    reading.counters.acks_rewritten = 12_430;
    reading.counters.passed[6] = 3;
    for (bucket, ms) in [(0, 5), (3, 2), (17, 4), (32, 1)] {
        reading.depth[bucket] = ms;
    }
    reading
}

/// The value of a sample, by its whole name with labels.
fn value(text: &str, sample: &str) -> Option<f64> {
    text.lines()
        .find_map(|line| line.strip_prefix(sample)?.strip_prefix(' ')?.parse().ok())
}

#[test]
fn names_follow_the_conventions() {
    let text = encode(vec![reading("eth1"), reading("eth\"2")], 1).unwrap();
    let of = |name: &str| {
        value(
            &text,
            &format!("{name}{{interface=\"eth1\",scheme=\"fairq\"}}"),
        )
    };
    assert_eq!(of("penstock_egress_bytes_total"), Some((1u64 << 40) as f64));
    assert_eq!(of("penstock_acks_rewritten_total"), Some(12_430.0));
    assert_eq!(of("penstock_window_bytes"), Some(2_920.0));
    assert_eq!(of("penstock_heartbeat_age_seconds"), Some(0.25));
    assert_eq!(of("penstock_acting"), Some(1.0));
    assert_eq!(of("penstock_qdisc_drops_total"), Some(118.0));
    assert_eq!(value(&text, "penstock_unreadable_ports"), Some(1.0));
    assert!(text.contains("interface=\"eth\\\"2\""), "{text}");
    let stale =
        "penstock_passed_packets_total{interface=\"eth1\",scheme=\"fairq\",reason=\"stale\"}";
    assert_eq!(value(&text, stale), Some(3.0));
}

#[test]
fn a_stale_port_does_not_act_and_has_no_window() {
    let mut stale = reading("eth1");
    stale.heartbeat_age_s = 1.5;
    let text = encode(vec![stale], 0).unwrap();
    assert!(
        text.contains("penstock_acting{interface=\"eth1\",scheme=\"fairq\"} 0"),
        "{text}"
    );
    assert!(!text.contains("penstock_window_bytes{"));
}

/// A port with Grant, whose flows waited so often, by bucket.
fn granting(waits: Vec<u64>) -> Reading {
    let mut granting = reading("eth1");
    granting.credit = Some(crate::attach::grant::Status {
        side: "port",
        rate_bps: 1_000_000_000,
        outstanding_bytes: 0,
        waiting: 0,
        active: 0,
        short_openers: 0.0,
        waits,
        sizes: vec![0; 16],
        counters: Default::default(),
    });
    granting
}

#[test]
fn waits_for_grants_are_a_histogram() {
    let mut waits = vec![0; 16];
    (waits[0], waits[5], waits[15]) = (7, 2, 1);
    let text = encode(vec![granting(waits), reading("eth2")], 0).unwrap();
    let of = |sample: &str| value(&text, &format!("penstock_credit_wait_seconds_{sample}"));
    let labels = "interface=\"eth1\",scheme=\"fairq\"";
    assert_eq!(of(&format!("count{{{labels}}}")), Some(10.0));
    let bucket = |bound: &str| of(&format!("bucket{{le=\"{bound}\",{labels}}}"));
    assert_eq!(bucket("0.000032768"), Some(7.0), "{text}");
    assert_eq!(bucket("0.001048576"), Some(9.0));
    assert_eq!(bucket("+Inf"), Some(10.0));
    assert!(!text.contains("credit_wait_seconds_count{interface=\"eth2\""));
}

#[test]
fn a_canary_has_both_sides() {
    let text = encode(vec![reading("eth1")], 0).unwrap();
    assert!(!text.contains("side="), "none without a canary");
    let mut canary = reading("eth1");
    canary.policy.canary = Some(0.1);
    canary.sides[0].acks_rewritten = 7;
    canary.sides[1].egress_bytes = 9;
    let text = encode(vec![canary], 0).unwrap();
    let of = |name: &str, side: &str| {
        let labels = format!("interface=\"eth1\",scheme=\"fairq\",side=\"{side}\"");
        value(&text, &format!("penstock_canary_{name}{{{labels}}}"))
    };
    assert_eq!(
        of("acks_rewritten_total", "controlled"),
        Some(7.0),
        "{text}"
    );
    assert_eq!(of("acks_rewritten_total", "held_out"), Some(0.0));
    assert_eq!(of("egress_bytes_total", "held_out"), Some(9.0));
    let share = "penstock_canary_share{interface=\"eth1\",scheme=\"fairq\"}";
    assert_eq!(value(&text, share), Some(0.1));
}

#[test]
fn the_histogram_is_cumulative_and_whole() {
    let text = encode(vec![reading("eth1")], 0).unwrap();
    let bucket = |le: &str| {
        let labels = format!("le=\"{le}\",interface=\"eth1\",scheme=\"fairq\"");
        value(
            &text,
            &format!("penstock_queue_peak_bytes_bucket{{{labels}}}"),
        )
    };
    assert_eq!(bucket("1023.0"), Some(7.0), "{text}");
    assert_eq!(bucket("65535.0"), Some(7.0));
    assert_eq!(bucket("131071.0"), Some(11.0));
    assert_eq!(bucket("+Inf"), Some(12.0));
    let labels = "{interface=\"eth1\",scheme=\"fairq\"}";
    assert_eq!(
        value(&text, &format!("penstock_queue_peak_bytes_count{labels}")),
        Some(12.0)
    );
}

/// A sample's name and labels; panics where it departs from the ABNF of OpenMetrics 1.0.
fn sample(line: &str) -> (String, String) {
    let (series, number) = line.rsplit_once(' ').expect("a sample has a value");
    number.parse::<f64>().expect("a value is a number");
    let (name, labels) = match series.split_once('{') {
        Some((name, labels)) => (name, labels.strip_suffix('}').expect("labels end with }")),
        None => (series, ""),
    };
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    assert!(
        name.chars().all(is_name) && !name.starts_with(|c: char| c.is_ascii_digit()),
        "{line}"
    );
    let mut rest = labels;
    while !rest.is_empty() {
        let (label, value) = rest.split_once("=\"").expect("a label has a quoted value");
        assert!(
            label.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'),
            "{line}"
        );
        let mut escaped = false;
        let end = value.find(|c: char| {
            let ends = c == '"' && !escaped;
            escaped = c == '\\' && !escaped;
            ends
        });
        rest = &value[end.expect("a label's value ends") + 1..];
        rest = rest.strip_prefix(',').unwrap_or(rest);
    }
    (name.to_owned(), labels.to_owned())
}

/// What a strict reader of OpenMetrics 1.0 refuses, is refused here.
#[test]
fn the_text_is_strict_openmetrics() {
    let text = encode(vec![reading("eth1"), reading("eth2")], 0).unwrap();
    let body = text.strip_suffix("# EOF\n").expect("ends with # EOF");
    let mut types: HashMap<String, String> = HashMap::new();
    let mut current = String::new();
    let mut seen = HashSet::new();
    for line in body.lines() {
        if let Some(descriptor) = line.strip_prefix("# ") {
            let words: Vec<&str> = descriptor.splitn(3, ' ').collect();
            match words[0] {
                "HELP" => current = words[1].to_owned(),
                "TYPE" => {
                    assert!(
                        ["counter", "gauge", "histogram"].contains(&words[2]),
                        "{line}"
                    );
                    let other = types.insert(words[1].to_owned(), words[2].to_owned());
                    assert_eq!(other, None, "{line}: a family in two places");
                }
                "UNIT" => assert!(words[1].ends_with(&format!("_{}", words[2])), "{line}"),
                _ => panic!("{line}: neither HELP, TYPE nor UNIT"),
            }
            assert_eq!(words[1], current, "descriptors of a family stand together");
            continue;
        }
        let (name, labels) = sample(line);
        let kind = types.get(&current).expect("TYPE before samples");
        let suffix = name
            .strip_prefix(&current)
            .expect("samples follow their family");
        let allowed: &[&str] = match kind.as_str() {
            "counter" => &["_total"],
            "histogram" => &["_bucket", "_sum", "_count"],
            _ => &[""],
        };
        assert!(allowed.contains(&suffix), "{line}");
        assert!(seen.insert((name, labels)), "{line}: twice");
    }
    assert!(types.len() > 25 && seen.len() > 100);
    assert!(types.keys().all(|name| name.starts_with("penstock_")));
}

/// Alerts and dashboard ask for metrics that exist, and every alert has a place in the runbook.
#[test]
fn alerts_and_dashboard_name_what_is_exported() {
    let mut all = granting(vec![0; 16]);
    all.policy.canary = Some(0.1);
    let text = encode(vec![all], 0).unwrap();
    let read = |path: &str| {
        let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../..")
            .join(path);
        std::fs::read_to_string(file).unwrap()
    };
    let [alerts, dashboard, runbook] = [
        "packaging/monitoring/alerts.yml",
        "packaging/monitoring/dashboard.json",
        "docs/runbook.md",
    ]
    .map(read);
    let mut named = HashSet::new();
    for part in format!("{alerts}{dashboard}").split("penstock_").skip(1) {
        let end = part
            .find(|c: char| !c.is_ascii_lowercase() && c != '_')
            .unwrap();
        named.insert(format!("penstock_{}", &part[..end]));
    }
    assert!(named.len() > 10, "{named:?}");
    for name in &named {
        let samples = [format!("\n{name}{{"), format!("\n{name} ")];
        assert!(
            samples.iter().any(|sample| text.contains(sample)),
            "{name} is not exported"
        );
    }
    let of_alerts: Vec<_> = alerts
        .lines()
        .filter_map(|line| line.trim().strip_prefix("- alert: "))
        .collect();
    assert!(!of_alerts.is_empty());
    for alert in of_alerts {
        assert!(runbook.contains(&format!("\n## {alert}\n")), "{alert}");
        assert!(
            alerts.contains(&format!("runbook.md#{}\n", alert.to_lowercase())),
            "{alert}"
        );
    }
    let dashboard: serde_json::Value = serde_json::from_str(&dashboard).unwrap();
    assert!(
        dashboard["panels"]
            .as_array()
            .is_some_and(|panels| panels.len() > 5)
    );
}
