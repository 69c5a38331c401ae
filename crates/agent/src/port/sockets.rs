// SPDX-License-Identifier: Apache-2.0
//! The scales of connections that are older than a port, as the sockets of this network namespace have
//! them (`bpf/sockets.h`).

use std::fs::File;
use std::io::{Error, ErrorKind, Read};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::Path;

use anyhow::{Context, Result};
use libbpf_rs::{Program, libbpf_sys as sys};

/// Name and pin of the program that reads sockets, in the folder of what all ports share. Kernels without
/// iterators of sockets have none.
pub const SOCKETS: &str = "sockets";

/// Enters the scales of all open connections of this network namespace into the map `known`. For 10,000 it
/// takes some 20 ms, so the thread of heartbeats does not do it.
///
/// # Errors
/// The kernel refuses.
pub fn read(shared: &Path) -> Result<()> {
    let pin = shared.join(SOCKETS);
    if !pin.exists() {
        return Ok(());
    }
    let context = || "cannot read the scales of open connections";
    let program = Program::fd_from_pinned_path(&pin).with_context(context)?;
    // SAFETY: the descriptors are valid, and new ones ours.
    let mut sockets = unsafe {
        let program = program.as_raw_fd();
        let link = owned(sys::bpf_link_create(
            program,
            0,
            sys::BPF_TRACE_ITER,
            std::ptr::null(),
        ));
        let link = link.with_context(context)?;
        File::from(owned(sys::bpf_iter_create(link.as_raw_fd())).with_context(context)?)
    };
    // The program writes no bytes: one read visits all sockets, or a million.
    loop {
        match sockets.read(&mut [0; 8]) {
            Ok(_) => return Ok(()),
            Err(error) if error.kind() == ErrorKind::WouldBlock => (),
            Err(error) if error.kind() == ErrorKind::Interrupted => (),
            Err(error) => return Err(error).with_context(context),
        }
    }
}

/// A new descriptor, or a negative error number.
unsafe fn owned(descriptor: i32) -> std::io::Result<OwnedFd> {
    match descriptor {
        // SAFETY: the caller's.
        0.. => Ok(unsafe { OwnedFd::from_raw_fd(descriptor) }),
        error => Err(Error::from_raw_os_error(-error)),
    }
}
