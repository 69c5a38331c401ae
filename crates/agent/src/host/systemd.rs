// SPDX-License-Identifier: Apache-2.0
//! Reports the daemon's state to systemd (sd_notify(3)). Without systemd, or if it does not listen,
//! nothing happens: the daemon does not depend on it.

use sd_notify::{NotifyState, notify};

/// Startup or a reload is over; `status` is what `systemctl status` shows.
pub fn ready(status: &str) {
    let _ = notify(&[NotifyState::Ready, NotifyState::Status(status)]);
}

/// The configuration is being read again.
pub fn reloading() {
    let Ok(now) = NotifyState::monotonic_usec_now() else {
        return;
    };
    let _ = notify(&[NotifyState::Reloading, now]);
}

/// Renews the watchdog.
pub fn watchdog() {
    let _ = notify(&[NotifyState::Watchdog]);
}

/// The daemon ends.
pub fn stopping() {
    let _ = notify(&[NotifyState::Stopping]);
}
