// SPDX-License-Identifier: Apache-2.0
//! A scheme in place of another, or of one that is half gone; one that cannot be attached leaves the old one.

use penstockd::attach::grant;
use penstockd::port::Side;
use penstockd::port::pins::link_pin;

use super::lab::stream::Stream;
use super::lab::{PORT, PortLab};
use super::{FAIRQ, HSCC};

#[test]
fn a_scheme_changes_under_load_without_a_reset() {
    let lab = PortLab::new();
    lab.ok(&FAIRQ);
    let stream = Stream::start(&lab);
    let (maps, mut before) = (lab.identity(), lab.status());
    let port = penstockd::port::PinsArg::at(lab.pins()).open(PORT).unwrap();
    let generation = port.config().unwrap().generation;
    // Nothing of the scheme changes: its state goes on, under newly loaded programs.
    lab.ok(&FAIRQ);
    assert_eq!(port.config().unwrap().generation, generation);
    for (step, scheme) in ["hscc", "fairq-paper", "observe", "hscc-paper"]
        .iter()
        .enumerate()
    {
        lab.ok(&["attach", PORT, "--scheme", scheme, "--buffer", "64 kB"]);
        stream.goes_on();
        let now = lab.status();
        assert_eq!(now["scheme"], scheme.trim_end_matches("-paper"));
        assert_ne!(
            now["hooks"]["egress"]["ours"],
            before["hooks"]["egress"]["ours"]
        );
        let packets = |status: &serde_json::Value| status["counters"]["egress_packets"].as_u64();
        assert!(packets(&now) > packets(&before), "{before} {now}");
        assert_eq!(
            port.config().unwrap().generation,
            generation + 1 + step as u32
        );
        before = now;
    }
    assert_eq!(lab.identity(), maps, "the flows stay counted");
    lab.ok(&["detach", PORT]);
    stream.goes_on();
    stream.stop();
}

/// A step after the programs' fails: Grant's go on.
#[test]
fn a_replacement_that_fails_late_silences_no_grant() {
    let lab = PortLab::new();
    let grant = ["attach", PORT, "--scheme", "grant", "--rate", "1 Gb/s"];
    lab.ok(&[&grant[..], &["--buffer", "128 kB"]].concat());
    let obstacle = lab.port_folder().join("hcf_link");
    std::fs::create_dir(&obstacle).unwrap();
    let line = lab.refused(&FAIRQ);
    assert!(line.contains("eth1 stays as it was"), "{line}");
    let credit = grant::status(&lab.port_folder()).unwrap();
    assert_eq!(credit.map(|credit| credit.rate_bps), Some(1_000_000_000));
    assert_eq!(lab.status()["scheme"], "grant");
    std::fs::remove_dir(&obstacle).unwrap();
    lab.ok(&FAIRQ);
    lab.ok(&["detach", PORT]);
}

/// As a detach that is killed between the two sides leaves it, or another tool.
#[test]
fn a_link_that_was_detached_is_replaced() {
    let lab = PortLab::new();
    let attach = [&FAIRQ[..], &["--stale", "60 s"]].concat();
    lab.ok(&attach);
    for sides in [&Side::BOTH[..1], &Side::BOTH[1..], &Side::BOTH] {
        for side in sides {
            let pin = link_pin(&lab.port_folder(), *side);
            libbpf_rs::Link::open(pin).unwrap().detach().unwrap();
        }
        if let [_] = sides {
            let words = lab.ok(&["status", PORT, "--for", "1 ms"]);
            assert!(words.contains("attached at one side only"), "{words}");
        }
        lab.ok(&attach);
        assert_eq!(lab.status()["acting"], true, "{sides:?}");
    }
    lab.ok(&["detach", PORT]);
    assert!(!lab.pins().exists());
}

/// The last step fails: what was there is attached again, by the same programs.
#[test]
fn a_replacement_that_fails_leaves_what_was_there() {
    let lab = PortLab::new();
    for hook in ["tcx", "clsact"] {
        let options = ["--hook", hook, "--stale", "60 s"];
        lab.ok(&[&FAIRQ[..], &options].concat());
        let stream = Stream::start(&lab);
        let (before, maps) = (lab.status(), lab.identity());
        let config = || format!("{:?}", lab.agent().port(PORT).config().unwrap());
        let running = config();
        let obstacle = lab.port_folder().join("program_ingress_new");
        std::fs::create_dir(&obstacle).unwrap();
        let line = lab.refused(&[&HSCC[..], &options].concat());
        assert!(line.contains("eth1 stays as it was"), "{line}");
        std::fs::remove_dir(&obstacle).unwrap();
        let after = lab.status();
        for key in ["scheme", "acting", "hooks", "attached", "buffer_bytes"] {
            assert_eq!(after[key], before[key], "{key}");
        }
        assert_eq!(lab.identity(), maps);
        assert_eq!(config(), running);
        stream.goes_on();
        stream.stop();
        lab.ok(&["detach", PORT]);
    }
    assert!(!lab.pins().exists());
}
