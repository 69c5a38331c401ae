// SPDX-License-Identifier: Apache-2.0
//! Ports that get schemes, other schemes, and lose them, in namespaces of their own.

#![allow(clippy::unwrap_used)]

mod place;

use std::mem::MaybeUninit;
use std::os::fd::AsFd;

use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use penstockd::attach::tcx;
use penstockd::port::Side;
use penstockd::skel::port::PortSkelBuilder;
use place::{PORT, Place, Transfer, must, until, within};

const FAIRQ: [&str; 6] = ["attach", PORT, "--scheme", "fairq", "--buffer", "128 kB"];
const HSCC: [&str; 6] = ["attach", PORT, "--scheme", "hscc", "--buffer", "128 kB"];

fn is_gone(map: u32) -> bool {
    MapHandle::from_map_id(map).is_err()
}

#[test]
fn detaching_leaves_nothing_behind() {
    let place = Place::new();
    for hook in ["tcx", "clsact"] {
        place.ok(&[&FAIRQ[..], &["--hook", hook]].concat());
        let status = place.status();
        assert_eq!(status["hooks"]["hook"], hook);
        assert_eq!(status["acting"], true, "{status}");
        let maps = place.maps();
        let programs = ["egress", "ingress"]
            .map(|side| status["hooks"][side]["ours"].as_u64().unwrap() as u32);
        place.ok(&["detach", PORT]);
        let left = std::fs::read_dir(&place.bpffs).unwrap();
        let names: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
        // The kernel's own iterators are in every bpffs.
        assert!(
            names
                .iter()
                .all(|name| name.to_string_lossy().ends_with(".debug")),
            "{names:?}"
        );
        until("maps are gone", || maps.iter().all(|map| is_gone(*map)));
        until("programs are gone", || {
            programs
                .iter()
                .all(|id| penstockd::host::bpf::program_by_id(*id).is_none())
        });
        let qdiscs = must(&format!("tc -n {} qdisc show dev {PORT}", place.near()));
        assert!(!qdiscs.contains("clsact"), "{qdiscs}");
    }
    place.ok(&["attach", PORT, "--scheme", "shim", "--set", "scale=unified"]);
    assert_eq!(place.status()["scheme"], "shim");
    place.ok(&["detach", PORT]);
    let refusal = place.refused(&["detach", PORT]);
    assert!(refusal.contains("eth1 is not attached"), "{refusal}");
}

#[test]
fn a_scheme_changes_under_load_without_a_reset() {
    let place = Place::new();
    place.ok(&FAIRQ);
    let transfer = Transfer::begin(&place);
    let (maps, mut before) = (place.maps(), place.status());
    let port = penstockd::port::pins::PinsArg { dir: place.pins() }
        .open(PORT)
        .unwrap();
    let generation = port.config().unwrap().generation;
    // Nothing of the scheme changes: its state goes on, under programs loaded anew.
    place.ok(&FAIRQ);
    assert_eq!(port.config().unwrap().generation, generation);
    for (step, scheme) in ["hscc", "fairq-paper", "observe", "hscc-paper"]
        .iter()
        .enumerate()
    {
        place.ok(&["attach", PORT, "--scheme", scheme, "--buffer", "64 kB"]);
        transfer.goes_on();
        let now = place.status();
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
    assert_eq!(place.maps(), maps, "the flows stay counted");
    place.ok(&["detach", PORT]);
    transfer.goes_on();
    transfer.end();
}

#[test]
fn a_queue_that_cannot_be_read_is_reported() {
    let place = Place::new();
    let tc = format!("tc -n {} qdisc replace dev {PORT} root", place.near());
    for (qdisc, reason) in [
        ("", Some("(noqueue); do: tc qdisc replace dev eth1 root")),
        (
            "pfifo_fast",
            Some("pfifo_fast counts it separately for each CPU"),
        ),
        ("bfifo limit 128k", None),
    ] {
        if !qdisc.is_empty() {
            must(&format!("{tc} {qdisc}"));
        }
        let told = place.ok(&FAIRQ);
        let status = place.status();
        let lines = place.ok(&["status", PORT, "--for", "1 ms"]);
        for text in [told, status["queue_unseen"].to_string(), lines] {
            match reason {
                Some(reason) => assert!(text.contains(reason), "{text}"),
                None => assert!(!text.contains("cannot read its queue"), "{text}"),
            }
        }
    }
    place.ok(&["detach", PORT]);
    let pins = place.pins();
    let arguments = ["check", "--pins", pins.to_str().unwrap()];
    assert!(place.ok(&arguments).contains("yes queues "));
}

/// A process that stays takes off what it put on, and nothing else.
#[test]
fn who_stays_leaves_the_port_to_others() {
    let place = Place::new();
    let pins = place.pins();
    let stay = |scheme: &str| {
        let arguments = [
            "attach", PORT, "--buffer", "1 MB", "--stay", "--scheme", scheme,
        ];
        let mut command = place.penstockd(&arguments);
        let child = command.arg("--pins").arg(&pins).spawn().unwrap();
        until("it attaches", || place.folder().join("sweep").exists());
        child
    };
    let mut observing = stay("observe");
    place.ok(&FAIRQ);
    must(&format!("kill -TERM {}", observing.id()));
    assert!(observing.wait().unwrap().success());
    assert_eq!(place.status()["scheme"], "fairq");
    place.ok(&["detach", PORT]);

    let mut staying = stay("hscc");
    place.ok(&["detach", PORT]);
    let mut end = None;
    until("it ends with its port", || {
        end = staying.try_wait().unwrap();
        end.is_some()
    });
    assert!(!end.unwrap().success());

    let mut staying = stay("hscc");
    must(&format!("kill -INT {}", staying.id()));
    assert!(staying.wait().unwrap().success());
    assert!(!pins.exists());
}

/// Another tool's program with maps of its own, held by its process.
#[test]
fn programs_of_other_tools_keep_their_place_and_run() {
    let place = Place::new();
    let (mut first, mut last) = (MaybeUninit::uninit(), MaybeUninit::uninit());
    let [first, last] = [&mut first, &mut last].map(|object| {
        PortSkelBuilder::default()
            .open(object)
            .unwrap()
            .load()
            .unwrap()
    });
    let index = within(&place.near(), || {
        penstockd::host::interface::index(PORT).unwrap()
    })
    .join()
    .unwrap();
    let foreign = |skel: &penstockd::skel::port::PortSkel, name: &str| {
        let program = skel
            .progs
            .observe_egress
            .as_fd()
            .try_clone_to_owned()
            .unwrap();
        // Programs that were told nothing count nothing.
        let config = &skel.maps.config;
        let mut told = vec![0; config.value_size() as usize];
        told[..8].copy_from_slice(&[1u32.to_ne_bytes(), 1u32.to_ne_bytes()].concat());
        config
            .update(&0u32.to_ne_bytes(), &told, MapFlags::ANY)
            .unwrap();
        let pin = place.bpffs.join(name);
        let attach = move || tcx::create_link(&program, index, Side::Egress, &pin).unwrap();
        within(&place.near(), attach).join().unwrap();
    };
    foreign(&first, "first");
    place.ok(&FAIRQ);
    foreign(&last, "last");
    let names = |place: &Place| {
        let status = place.status();
        let programs = status["hooks"]["egress"]["programs"]
            .as_array()
            .unwrap()
            .clone();
        programs
            .iter()
            .map(|program| program["name"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        names(&place),
        ["observe_egress", "fairq_egress", "observe_egress"]
    );
    place.ok(&HSCC);
    assert_eq!(
        names(&place),
        ["observe_egress", "hscc_egress", "observe_egress"]
    );

    let packets = |map: &libbpf_rs::MapMut| {
        let value = map
            .lookup_percpu(&0u32.to_ne_bytes(), MapFlags::ANY)
            .unwrap()
            .unwrap();
        value
            .iter()
            .map(|cpu| u64::from_ne_bytes(cpu[..8].try_into().unwrap()))
            .sum::<u64>()
    };
    let before = [&first, &last].map(|skel| packets(&skel.maps.counters));
    let transfer = Transfer::begin(&place);
    transfer.end();
    let after = [&first, &last].map(|skel| packets(&skel.maps.counters));
    assert!(
        before[0] < after[0] && before[1] < after[1],
        "{before:?} {after:?}"
    );

    place.ok(&["detach", PORT]);
    let left = within(&place.near(), move || {
        tcx::query(index, Side::Egress).unwrap()
    })
    .join()
    .unwrap();
    assert_eq!(left.len(), 2);
}
