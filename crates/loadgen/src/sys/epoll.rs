// SPDX-License-Identifier: Apache-2.0
//! Edge-triggered readiness of many sockets, waited for to the nanosecond.

use super::check;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

/// Events taken at once: few enough that due starts are not late for the sockets' sake.
const BATCH: usize = 64;

/// What a socket is ready for.
#[derive(Clone, Copy, Debug)]
pub struct Readiness(u32);

impl Readiness {
    /// Something is to be read: bytes, the peer's end, or an error.
    pub fn to_read(self) -> bool {
        let any = libc::EPOLLIN | libc::EPOLLRDHUP | libc::EPOLLHUP | libc::EPOLLERR;
        self.0 & any as u32 != 0
    }

    /// There is room for bytes to send.
    pub fn to_write(self) -> bool {
        self.0 & libc::EPOLLOUT as u32 != 0
    }

    /// After the bytes comes the peer's end or an error.
    pub fn ends(self) -> bool {
        let any = libc::EPOLLRDHUP | libc::EPOLLHUP | libc::EPOLLERR;
        self.0 & any as u32 != 0
    }
}

/// An epoll instance.
pub struct Epoll {
    fd: OwnedFd,
    events: Vec<libc::epoll_event>,
}

impl Epoll {
    /// One that watches nothing.
    pub fn new() -> io::Result<Epoll> {
        // SAFETY: no pointers; a new descriptor is ours alone.
        let fd = unsafe { OwnedFd::from_raw_fd(check(libc::epoll_create1(libc::EPOLL_CLOEXEC))?) };
        Ok(Epoll {
            fd,
            events: vec![libc::epoll_event { events: 0, u64: 0 }; BATCH],
        })
    }

    /// Reports every change of `socket` from now on, until it is closed, under `token`.
    pub fn watch(&self, socket: &impl AsRawFd, token: u64) -> io::Result<()> {
        let interest = libc::EPOLLIN | libc::EPOLLOUT | libc::EPOLLRDHUP | libc::EPOLLET;
        let mut event = libc::epoll_event {
            events: interest as u32,
            u64: token,
        };
        // SAFETY: `event` outlives the call.
        check(unsafe {
            libc::epoll_ctl(
                self.fd.as_raw_fd(),
                libc::EPOLL_CTL_ADD,
                socket.as_raw_fd(),
                &mut event,
            )
        })?;
        Ok(())
    }

    /// Waits for at most `timeout`; returns how many events there are, for [`Self::event`]. A signal
    /// ends the wait without any.
    pub fn wait(&mut self, timeout: Duration) -> io::Result<usize> {
        let timeout = libc::timespec {
            tv_sec: timeout.as_secs() as libc::time_t,
            tv_nsec: timeout.subsec_nanos().into(),
        };
        // SAFETY: the events have room for BATCH; a null mask changes no signals.
        let count = unsafe {
            libc::syscall(
                libc::SYS_epoll_pwait2,
                self.fd.as_raw_fd(),
                self.events.as_mut_ptr(),
                BATCH as libc::c_int,
                &timeout,
                std::ptr::null::<libc::sigset_t>(),
                0usize,
            )
        };
        match check(count as libc::c_int) {
            Ok(count) => Ok(count as usize),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(0),
            Err(error) => Err(error),
        }
    }

    /// One of the events of the last wait: token and readiness.
    pub fn event(&self, index: usize) -> (u64, Readiness) {
        let event = self.events[index];
        (event.u64, Readiness(event.events))
    }
}
