// SPDX-License-Identifier: Apache-2.0
//! Edge-triggered readiness of many sockets, waited for to the nanosecond.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;
use rustix::time::Timespec;

/// Events taken at once: few enough that they do not delay starts that are due.
const BATCH: usize = 64;

/// What a socket is ready for.
#[derive(Clone, Copy, Debug)]
pub struct Readiness(EventFlags);

impl Readiness {
    /// Bytes, the peer's end or an error can be read.
    pub fn to_read(self) -> bool {
        let any = EventFlags::IN | EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR;
        self.0.intersects(any)
    }

    /// There is room for bytes to send.
    pub fn to_write(self) -> bool {
        self.0.contains(EventFlags::OUT)
    }

    /// After the bytes comes the peer's end or an error.
    pub fn ends(self) -> bool {
        let any = EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR;
        self.0.intersects(any)
    }
}

/// An epoll instance.
pub struct Epoll {
    fd: OwnedFd,
    events: Vec<Event>,
}

impl Epoll {
    /// One that watches nothing.
    pub fn new() -> io::Result<Epoll> {
        Ok(Epoll {
            fd: epoll::create(CreateFlags::CLOEXEC)?,
            events: Vec::with_capacity(BATCH),
        })
    }

    /// Reports every change of `socket` from now on, until it is closed, under `token`.
    pub fn watch(&self, socket: &impl AsFd, token: u64) -> io::Result<()> {
        let interest = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        Ok(epoll::add(
            &self.fd,
            socket,
            EventData::new_u64(token),
            interest,
        )?)
    }

    /// Waits for at most `timeout`; returns the number of events, which [`Self::event`] returns one by
    /// one. A signal ends the wait without any.
    pub fn wait(&mut self, timeout: Duration) -> io::Result<usize> {
        let timeout = Timespec::try_from(timeout).map_err(|_| Errno::INVAL)?;
        self.events.clear();
        match epoll::wait(&self.fd, spare_capacity(&mut self.events), Some(&timeout)) {
            Ok(count) => Ok(count),
            Err(Errno::INTR) => Ok(0),
            Err(error) => Err(error.into()),
        }
    }

    /// One of the events of the last wait: token and readiness.
    pub fn event(&self, index: usize) -> (u64, Readiness) {
        let Event { flags, data, .. } = self.events[index];
        (data.u64(), Readiness(flags))
    }
}
