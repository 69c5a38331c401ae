// SPDX-License-Identifier: Apache-2.0
//! One run of a program with a packet on an interface (BPF_PROG_TEST_RUN).

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use libbpf_rs::libbpf_sys as sys;

/// Offset of `ifindex` in `struct __sk_buff`.
const IFINDEX: usize = 40;

pub struct Run {
    pub verdict: i32,
    pub nanoseconds: u32,
    /// The packet as it left.
    pub packet: Vec<u8>,
}

/// # Errors
/// The kernel takes no such packet.
pub fn run(program: &impl AsFd, index: u32, packet: &[u8]) -> io::Result<Run> {
    let mut context = [0u8; IFINDEX + 4];
    context[IFINDEX..].copy_from_slice(&index.to_ne_bytes());
    let mut out = vec![0; packet.len() + 64];
    let mut options = sys::bpf_test_run_opts {
        sz: size_of::<sys::bpf_test_run_opts>() as sys::size_t,
        data_in: packet.as_ptr().cast(),
        data_size_in: packet.len() as u32,
        data_out: out.as_mut_ptr().cast(),
        data_size_out: out.len() as u32,
        ctx_in: context.as_ptr().cast(),
        ctx_size_in: context.len() as u32,
        repeat: 1,
        ..Default::default()
    };
    let program = program.as_fd().as_raw_fd();
    // SAFETY: the descriptor and what the options point to are valid for the call.
    let status = unsafe { sys::bpf_prog_test_run_opts(program, &raw mut options) };
    if status < 0 {
        return Err(io::Error::from_raw_os_error(-status));
    }
    out.truncate(options.data_size_out as usize);
    Ok(Run {
        verdict: options.retval as i32,
        nanoseconds: options.duration,
        packet: out,
    })
}
