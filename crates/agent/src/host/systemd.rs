// SPDX-License-Identifier: Apache-2.0
//! What systemd is told of the daemon (sd_notify(3)): a line to the datagram socket it names.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use crate::host::clock::monotonic_ns;

fn tell(state: &str) {
    let Some(name) = std::env::var_os("NOTIFY_SOCKET") else {
        return;
    };
    let address = match name.as_bytes() {
        [b'@', rest @ ..] => SocketAddr::from_abstract_name(rest),
        _ => SocketAddr::from_pathname(&name),
    };
    // Whoever started us may not listen; nothing depends on it.
    if let (Ok(address), Ok(socket)) = (address, UnixDatagram::unbound()) {
        socket.send_to_addr(state.as_bytes(), &address).ok();
    }
}

/// All ports are as the configuration says, or `status` tells which are not.
pub fn ready(status: &str) {
    tell(&format!("READY=1\nSTATUS={status}"));
}

/// The configuration is read again.
pub fn reloading() {
    tell(&format!(
        "RELOADING=1\nMONOTONIC_USEC={}",
        monotonic_ns() / 1000
    ));
}

/// Still alive, if systemd watches.
pub fn alive() {
    tell("WATCHDOG=1");
}

/// The end.
pub fn stopping() {
    tell("STOPPING=1");
}
