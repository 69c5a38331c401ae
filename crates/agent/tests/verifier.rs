// SPDX-License-Identifier: Apache-2.0
//! How much of each program the kernel's verifier follows: an attach takes that long, and Linux
//! refuses more than a million instructions. Needs root.

#![allow(clippy::unwrap_used)]

use std::mem::MaybeUninit;

use libbpf_rs::Object;
use libbpf_rs::skel::{OpenSkel, Skel, SkelBuilder};
use penstockd::host::bpf::program_info;
use penstockd::skel::grant::GrantSkelBuilder;
use penstockd::skel::port::PortSkelBuilder;

/// The most is 148,491, of `grant_egress` on Linux 6.18.
const MOST: u32 = 150_000;

fn check(object: &Object) {
    let mut programs = 0;
    for program in object.progs() {
        let name = program.name().to_string_lossy();
        let info = program_info(&program).unwrap();
        println!("{name}: {} instructions", info.verified_insns);
        assert!(info.verified_insns > 0, "{name}: not counted");
        assert!(
            info.verified_insns <= MOST,
            "{name}: the verifier followed {} instructions, more than {MOST}",
            info.verified_insns
        );
        programs += 1;
    }
    assert!(programs > 0);
}

#[test]
fn the_verifier_follows_little() {
    let mut memory = MaybeUninit::uninit();
    let mut port = PortSkelBuilder::default().open(&mut memory).unwrap();
    for mut program in port.open_object_mut().progs_mut() {
        program.set_autoload(true);
    }
    check(port.load().unwrap().object());

    let mut memory = MaybeUninit::uninit();
    let mut grant = GrantSkelBuilder::default().open(&mut memory).unwrap();
    for mut program in grant.open_object_mut().progs_mut() {
        program.set_autoload(true);
    }
    check(grant.load().unwrap().object());
}
