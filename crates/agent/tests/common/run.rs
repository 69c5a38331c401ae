// SPDX-License-Identifier: Apache-2.0
//! One run of a program with a packet on an interface (BPF_PROG_TEST_RUN).

use std::io;
use std::os::fd::AsFd;

use penstockd::host::bpf::{TestRun, context_on, test_run};

pub struct Run {
    pub verdict: i32,
    pub nanoseconds: u32,
    /// The packet as it left.
    pub packet: Vec<u8>,
}

/// # Errors
/// The kernel takes no such packet.
pub fn run(program: &impl AsFd, index: u32, packet: &[u8]) -> io::Result<Run> {
    let mut out = vec![0; packet.len() + 64];
    let run = TestRun {
        context: Some(&mut context_on(index)),
        packet: Some(packet),
        packet_out: Some(&mut out),
        ..Default::default()
    };
    let result = test_run(program, run)?;
    out.truncate(result.packet_bytes);
    Ok(Run {
        verdict: result.value as i32,
        nanoseconds: result.nanoseconds,
        packet: out,
    })
}
