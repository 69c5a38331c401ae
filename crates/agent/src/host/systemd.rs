// SPDX-License-Identifier: Apache-2.0
//! The daemon's state for systemd (sd_notify(3)): lines to the datagram socket it names.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use crate::host::clock::monotonic_ns;

fn notify(state: &str) {
    let Some(name) = std::env::var_os("NOTIFY_SOCKET") else {
        return;
    };
    let address = match name.as_bytes() {
        [b'@', rest @ ..] => SocketAddr::from_abstract_name(rest),
        _ => SocketAddr::from_pathname(&name),
    };
    // Nothing depends on whether systemd reads it.
    if let (Ok(address), Ok(socket)) = (address, UnixDatagram::unbound()) {
        socket.send_to_addr(state.as_bytes(), &address).ok();
    }
}

/// Ports are attached as configured; `status` is a summary.
pub fn ready(status: &str) {
    notify(&format!("READY=1\nSTATUS={status}"));
}

/// The configuration is being read again.
pub fn reloading() {
    notify(&format!(
        "RELOADING=1\nMONOTONIC_USEC={}",
        monotonic_ns() / 1000
    ));
}

/// Renews the watchdog.
pub fn watchdog() {
    notify("WATCHDOG=1");
}

/// The daemon is about to end.
pub fn stopping() {
    notify("STOPPING=1");
}
