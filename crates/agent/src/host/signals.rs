// SPDX-License-Identifier: Apache-2.0
//! Signals that wait until polled, so that none interrupts a change of a port.

use std::time::Duration;

/// A signal that commands act on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// SIGINT or SIGTERM.
    End,
    /// SIGHUP.
    Reload,
}

/// The blocked signals of this process.
pub struct Signals(libc::sigset_t);

impl Signals {
    /// Blocks them from now on. To be called before other threads start, which inherit this.
    pub fn hold() -> Signals {
        // SAFETY: the set is made by sigemptyset before it is used.
        unsafe {
            let mut set = std::mem::zeroed();
            libc::sigemptyset(&raw mut set);
            for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
                libc::sigaddset(&raw mut set, signal);
            }
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
            Signals(set)
        }
    }

    /// The next one, or none within `timeout`.
    pub fn wait(&self, timeout: Duration) -> Option<Signal> {
        let timeout = libc::timespec {
            tv_sec: timeout.as_secs() as libc::time_t,
            tv_nsec: timeout.subsec_nanos().into(),
        };
        // SAFETY: the set and the time are valid; the signal's details are not requested.
        match unsafe {
            libc::sigtimedwait(&raw const self.0, std::ptr::null_mut(), &raw const timeout)
        } {
            libc::SIGINT | libc::SIGTERM => Some(Signal::End),
            libc::SIGHUP => Some(Signal::Reload),
            _ => None,
        }
    }
}
