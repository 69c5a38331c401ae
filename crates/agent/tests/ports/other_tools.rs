// SPDX-License-Identifier: Apache-2.0
//! Programs of other tools on the same hooks.

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, FromRawFd, OwnedFd};

use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{MapCore, MapFlags};
use penstock_linux::link;
use penstock_linux::testkit::{Signal, until};
use penstockd::attach::tcx::{self, Place};
use penstockd::port::Side;
use penstockd::port::pins::ABI;
use penstockd::skel::port::PortSkelBuilder;
use penstockd::skel::port::types::port_config;
use serde_json::json;

use super::lab::stream::Stream;
use super::lab::{PORT, PortLab};
use super::{FAIRQ, HSCC};

/// Another tool's program with maps of its own, held by its process.
#[test]
fn programs_of_other_tools_keep_their_place_and_run() {
    let lab = PortLab::new();
    let (mut first, mut last) = (MaybeUninit::uninit(), MaybeUninit::uninit());
    let [first, last] = [&mut first, &mut last].map(|object| {
        PortSkelBuilder::default()
            .open(object)
            .unwrap()
            .load()
            .unwrap()
    });
    let index = lab.near().run(|| link::get(PORT)).unwrap().unwrap().index;
    let foreign = |skel: &penstockd::skel::port::PortSkel, name: &str| {
        let program = skel
            .progs
            .observe_egress
            .as_fd()
            .try_clone_to_owned()
            .unwrap();
        // Programs without a configuration count nothing.
        let config = &skel.maps.config;
        let mut words = vec![0; config.value_size() as usize];
        let at = std::mem::offset_of!(port_config, ifindex);
        words[..8].copy_from_slice(&[ABI.to_ne_bytes(), 1u32.to_ne_bytes()].concat());
        words[at..at + 4].copy_from_slice(&index.to_ne_bytes());
        config
            .update(&0u32.to_ne_bytes(), &words, MapFlags::ANY)
            .unwrap();
        let pin = lab.bpffs().join(name);
        let attach = || tcx::create_link(&program, index, Side::Egress, Place::Last, &pin);
        lab.near().run(attach).unwrap().unwrap();
    };
    foreign(&first, "first");
    lab.ok(&FAIRQ);
    foreign(&last, "last");
    let names = |lab: &PortLab| {
        let status = lab.status();
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
        names(&lab),
        ["fairq_egress", "observe_egress", "observe_egress"]
    );
    lab.ok(&HSCC);
    assert_eq!(
        names(&lab),
        ["hscc_egress", "observe_egress", "observe_egress"]
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
    let before = [&first, &last].map(|skel| packets(&skel.maps.stats_first));
    let stream = Stream::start(&lab);
    stream.stop();
    let after = [&first, &last].map(|skel| packets(&skel.maps.stats_first));
    assert!(
        before[0] < after[0] && before[1] < after[1],
        "{before:?} {after:?}"
    );

    lab.ok(&["detach", PORT]);
    let left = lab.near().run(|| tcx::query(index, Side::Egress)).unwrap();
    assert_eq!(left.unwrap().len(), 2);
}

/// A program that ends the chain of its hook, as Cilium's do.
fn ending() -> OwnedFd {
    let code = [(0xb7_u8, 0), (0x95, 0)]; // r0 = TC_ACT_OK; exit
    let instructions = code.map(|(code, imm)| libbpf_sys::bpf_insn {
        code,
        imm,
        ..Default::default()
    });
    // SAFETY: a valid program, a valid licence; the descriptor is ours.
    unsafe {
        let fd = libbpf_sys::bpf_prog_load(
            libbpf_sys::BPF_PROG_TYPE_SCHED_CLS,
            c"ending".as_ptr(),
            c"GPL".as_ptr(),
            instructions.as_ptr(),
            instructions.len() as u64,
            std::ptr::null_mut(),
        );
        assert!(fd >= 0, "{}", std::io::Error::from_raw_os_error(-fd));
        OwnedFd::from_raw_fd(fd)
    }
}

#[test]
fn programs_that_end_the_chain_do_not_blind_ours() {
    let lab = PortLab::new();
    let index = lab.near().run(|| link::get(PORT)).unwrap().unwrap().index;
    let attach = |name: &str, side, place| {
        let (program, pin) = (ending(), lab.bpffs().join(name));
        let attach = || tcx::create_link(&program, index, side, place, &pin);
        lab.near().run(attach).unwrap().unwrap();
    };
    for side in Side::BOTH {
        attach(side.name(), side, Place::Last);
    }
    lab.ok(&FAIRQ);
    let stream = Stream::start(&lab);
    let status = lab.status();
    assert_eq!(status["blind"], json!([]), "{status}");
    assert!(
        status["rates"]["ingress_packets"].as_f64() > Some(0.0),
        "{status}"
    );

    // Another comes, first on the hook, where no daemon runs.
    attach("late", Side::Ingress, Place::First);
    let mut status = lab.status();
    until("enough has passed unseen", || {
        status = lab.status();
        status["blind"] == json!(["ingress"])
    });
    assert_eq!(status["acting"], false, "{status}");
    until("status reports it", || {
        let words = lab.ok(&["status", PORT, "--for", "100 ms"]);
        words.contains("blind at ingress")
    });
    until("watch shows it", || {
        let frame = lab.ok(&["watch", PORT, "--once"]);
        frame.contains("BLIND at ingress")
    });
    until("metrics that are read once report it", || {
        let blind = format!("penstock_blind{{interface=\"{PORT}\",scheme=\"fairq\"}} 1");
        lab.ok(&["metrics"]).contains(&blind)
    });
    until("observe reports it", || {
        let look = lab.ok(&["observe", PORT, "--for", "300 ms"]);
        look.starts_with("blind at ingress: ")
    });
    assert_eq!(status["hooks"]["ingress"]["programs"][0]["name"], "ending");

    let mut daemon = lab.daemon("");
    until("ours are first again", || {
        let status = lab.status();
        status["hooks"]["ingress"]["programs"][0]["name"] == "fairq_ingress"
    });
    let status = lab.status();
    assert_eq!(status["blind"], json!([]), "{status}");
    assert_eq!(status["acting"], true, "{status}");
    daemon.signal(Signal::TERM);
    assert!(daemon.wait().success());
    stream.goes_on();
    stream.stop();
    lab.ok(&["detach", PORT]);
}
