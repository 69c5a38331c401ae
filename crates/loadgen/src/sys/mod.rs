// SPDX-License-Identifier: Apache-2.0
//! What the generator asks of the kernel. All unsafe code is here: each function is one system call or
//! two, with the types of Rust around it.

pub mod epoll;
pub mod netns;
pub mod process;
pub mod qdisc;
pub mod socket;
pub mod tcp_info;

use std::io;

/// The result of a system call as Rust has results.
fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(result)
}

/// The same for calls that return a number of bytes; `None`: it would have to wait.
fn transferred(result: isize) -> io::Result<Option<usize>> {
    if let Ok(bytes) = usize::try_from(result) {
        return Ok(Some(bytes));
    }
    let error = io::Error::last_os_error();
    match error.kind() {
        io::ErrorKind::WouldBlock => Ok(None),
        _ => Err(error),
    }
}
