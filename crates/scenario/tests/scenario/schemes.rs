// SPDX-License-Identifier: Apache-2.0
//! Built-in schemes, schemes of one's own, overrides, layers of TCP.

use std::path::Path;

use penstock_core::definitions;
use penstock_core::scheme::WscaleSource;
use penstock_scenario::units::Time;
use penstock_scenario::{Congestion, Level, Queue, Scenario, Share, builtin_schemes};

use super::{SAMPLE, parse, parse_with};

#[test]
fn the_built_in_schemes_are_listed() {
    let names: Vec<&str> = builtin_schemes().keys().map(String::as_str).collect();
    assert_eq!(
        names,
        [
            "drop-tail",
            "red",
            "red-ecn",
            "dctcp",
            "codel",
            "pie",
            "sfq",
            "drr",
            "fairq",
            "fairq-paper",
            "fairswitch",
            "hscc",
            "hscc-paper",
            "grant",
            "grant-receiver",
            "sicc",
            "sicc-paper",
            "hcf",
            "hcf-paper",
            "hcf-fairq"
        ]
    );
    for (name, scheme) in builtin_schemes() {
        assert!(
            !scheme.title.is_empty() && !scheme.source.is_empty(),
            "{name}"
        );
        let scenario = parse_with("schemes", &format!("[\"{name}\"]")).unwrap();
        assert_eq!(scenario.scheme[name].title, scheme.title);
    }
}

#[test]
fn a_scheme_takes_from_its_base_what_it_does_not_give() {
    let scenario = parse(SAMPLE).unwrap();
    let Queue::Hcf(hcf) = &scenario.scheme["mine"].queue else {
        panic!("{:?}", scenario.scheme["mine"]);
    };
    assert_eq!((hcf.count("bins"), hcf.count("hashes")), (64, 1));
}

#[test]
fn another_kind_replaces_all_of_a_part() {
    let scenario = parse_with("scheme.mine.queue", "{ kind = \"codel\" }").unwrap();
    assert!(matches!(scenario.scheme["mine"].queue, Queue::Codel(_)));
}

#[test]
fn overrides_reach_into_built_in_schemes() {
    let scenario = parse_with("scheme.hscc.window.alpha1", "5 %").unwrap();
    let hscc = &scenario.scheme["hscc"].window;
    let thresholds = [hscc.share("alpha1"), hscc.share("alpha2")];
    assert_eq!(thresholds, [Share(0.05), Share(0.25)]);
}

#[test]
fn the_paper_variant_has_the_printed_parameters() {
    let scenario = parse_with("schemes", "[\"hscc-paper\"]").unwrap();
    let hscc = &scenario.scheme["hscc-paper"].window;
    let thresholds = [hscc.share("alpha1"), hscc.share("alpha2")];
    assert_eq!(thresholds, [Share(0.25), Share(0.5)]);
    assert_eq!(
        (hscc.count("first_flight"), hscc.count("release_step")),
        (0, 0)
    );
}

#[test]
fn a_variant_is_the_paper_but_for_what_it_changes() {
    let scenario = parse_with("schemes", "[\"fairswitch\"]").unwrap();
    let fairswitch = &scenario.scheme["fairswitch"];
    let window = &fairswitch.window;
    assert_eq!(window.share("alpha"), Share(0.25));
    assert_eq!(
        window.time("sample_interval"),
        Some(Time::from_nanos(48_000))
    );
    assert_eq!((window.word("flow_rule"), window.count("floor")), (1, 1));
    let marks = Level::Share(Share(0.25));
    assert!(matches!(&fairswitch.queue, Queue::Threshold(spec) if spec.mark_at == Some(marks)));
    let refused = parse_with("scheme.hscc.window.variant", "fairswitch").unwrap_err();
    let allowed = "unknown value \"fairswitch\"; allowed: default, paper";
    assert!(refused.to_string().contains(allowed), "{refused}");
}

#[test]
fn tcp_is_laid_in_three_layers() {
    let text = format!(
        "{SAMPLE}\n[scheme.dctcp.tcp]\nmin_rto = \"10 ms\"\n[traffic.mice.tcp]\nmax_window = 2\nmin_rto = \"5 ms\"\n"
    );
    let scenario = parse(&text).unwrap();
    let tcp =
        |traffic: &str| scenario.tcp_of(&scenario.scheme["dctcp"], &scenario.traffic[traffic]);
    assert_eq!(tcp("mice").min_rto, Some(Time::from_millis(5)));
    assert_eq!(tcp("mice").max_window, Some(2));
    assert_eq!(tcp("elephants").min_rto, Some(Time::from_millis(10)));
    assert_eq!(tcp("elephants").congestion, Some(Congestion::Dctcp));
    assert_eq!(tcp("elephants").ecn, Some(true));
}

#[test]
fn an_override_is_toml_or_bare_text() {
    for value in ["10 ms", "\"10 ms\"", " 10 ms "] {
        assert_eq!(
            parse_with("tcp.min_rto", value).unwrap().tcp.min_rto,
            Some(Time::from_millis(10))
        );
    }
    assert_eq!(parse_with("seeds", "[4, 9]").unwrap().seeds.list(), [4, 9]);
    assert_eq!(parse(SAMPLE).unwrap().seeds.list(), [1, 2]);
}

/// A dumbbell has a link between its switches, where credit can be too.
#[test]
fn credit_behind_ports_needs_a_switch_with_hosts() {
    let read = |fabric: &str, scheme: &str| {
        let link = "{ rate = \"1 Gb/s\", delay = \"1 us\" }";
        let text = format!(
            "title = \"t\"\nduration = \"1 s\"\nschemes = [\"{scheme}\"]\n[traffic.t]\nkind = \"bulk\"\n\
             from = \"all\"\nto = \"all\"\npairs = \"all\"\n[fabric]\n{}",
            fabric.replace("LINK", link)
        );
        let read = Scenario::parse(&text, Path::new("t.toml"), &[]);
        read.map(drop).map_err(|error| error.to_string())
    };
    let spines = |scheme_at: &str| {
        format!(
            "kind = \"leaf-spine\"\nleaves = 2\nspines = 2\nhosts_per_leaf = 2\nhost_link = LINK\n\
             spine_link = LINK\nscheme_at = [\"{scheme_at}\"]"
        )
    };
    let refused = read(&spines("spine*"), "grant-receiver").unwrap_err();
    let what = "fabric.scheme_at: has no switch with hosts, at which grant-receiver is; allowed: as in \"leaf1\"";
    assert!(refused.ends_with(what), "{refused}");
    read(&spines("spine*"), "grant").unwrap();
    read(&spines("leaf2"), "grant-receiver").unwrap();
    let dumbbell = "kind = \"dumbbell\"\nsenders = 2\nreceivers = 2\naccess = LINK\nbottleneck = LINK\nscheme_at = [\"left\"]";
    read(dumbbell, "grant-receiver").unwrap();
}

/// The enumerations that code distinguishes have the order of the words that `core/` defines.
#[test]
fn words_are_in_the_order_of_the_enumerations() {
    let words = |scheme: &str, key: &str| {
        let param = definitions::of(scheme).param(key).unwrap();
        param.words.iter().map(|word| word.word).collect::<Vec<_>>()
    };
    assert_eq!(words("hcf", "period"), ["dynamic", "fixed", "ordered"]);
    assert_eq!(words("fairq", "counting"), ["exact", "packets"]);
    let sources = WscaleSource::ALL.map(|source| format!("{source:?}").to_lowercase());
    let written = words("window", "wscale_source");
    assert_eq!(
        sources.to_vec(),
        written
            .iter()
            .map(|w| w.replace('-', ""))
            .collect::<Vec<_>>()
    );
}
