// SPDX-License-Identifier: Apache-2.0
//! Moves bytes: connections are accepted, what the applications hand over is sent as there is room,
//! and what arrives is counted and thrown away.

use super::connection::{ACCEPTED, NO_GOAL, OPENER};
use super::{Player, ROOM};
use crate::epoll::Readiness;
use crate::failure::{Failure, because};
use std::io;

/// Bit of a token: the rest is the number of a listener.
pub const LISTENER: u64 = 1 << 63;

/// The token of one end of a connection.
pub const fn token(connection: u32, end: usize) -> u64 {
    (connection as u64) << 1 | end as u64
}

impl Player {
    /// A socket is ready. The event may be older than the connection that now has its number, so the
    /// socket itself is read for its state.
    pub(super) fn on_event(&mut self, token: u64, readiness: Readiness) -> Result<(), Failure> {
        if token & LISTENER != 0 {
            return self.accept((token & !LISTENER) as u32);
        }
        let (number, end) = ((token >> 1) as u32, (token & 1) as usize);
        if !self.greet(number, end, readiness) {
            return Ok(());
        }
        self.flush(number, end);
        if readiness.to_read() {
            self.drain(number, end, readiness.ends());
        }
        Ok(())
    }

    /// Takes the connections that wait at a listener.
    fn accept(&mut self, listener: u32) -> Result<(), Failure> {
        loop {
            let accepted = match self.listeners[listener as usize].socket.accept() {
                Ok(accepted) => accepted,
                // It was reset before it was taken.
                Err(error) if error.raw_os_error() == Some(libc::ECONNABORTED) => continue,
                Err(error) => return Err(because("accepting a connection")(error)),
            };
            let Some((socket, peer)) = accepted else {
                return Ok(());
            };
            let number = self.expected.remove(&(listener, peer));
            let connection = number.and_then(|number| self.connections.get_mut(number));
            let (Some(number), Some(connection)) = (number, connection) else {
                socket.reset();
                continue;
            };
            // Nothing has been sent yet: what is counted is the handshake's.
            connection.ends[ACCEPTED].handshake = socket.info().ok();
            let watched = self.epoll.watch(&socket, token(number, ACCEPTED));
            watched.map_err(because("watching a socket"))?;
            connection.ends[ACCEPTED].socket = Some(socket);
        }
    }

    /// Records the end of the opener's handshake, at the first event after it; false: it is not over.
    fn greet(&mut self, number: u32, end: usize, readiness: Readiness) -> bool {
        let Some(connection) = self.connections.get_mut(number) else {
            return false;
        };
        let this = &mut connection.ends[end];
        let Some(socket) = &this.socket else {
            return false;
        };
        if this.handshake.is_some() {
            return true;
        }
        match socket.error() {
            Ok(()) if readiness.to_write() => {
                this.handshake = socket.info().ok();
                true
            }
            Ok(()) => false,
            Err(error) => {
                self.fail(number, &error);
                false
            }
        }
    }

    /// Sends what there is room for; after the last byte ends the side, if it is to.
    pub(super) fn flush(&mut self, number: u32, end: usize) {
        let Some(connection) = self.connections.get_mut(number) else {
            return;
        };
        let this = &mut connection.ends[end];
        let Some(socket) = this.socket.as_ref().filter(|_| this.handshake.is_some()) else {
            return;
        };
        let mut failed = None;
        while this.unsent > 0 {
            let length = this.unsent.min(ROOM as u64) as usize;
            match socket.send(&self.room[..length]) {
                Ok(Some(sent)) => this.unsent -= sent as u64,
                Ok(None) => return,
                Err(error) => {
                    failed = Some(error);
                    break;
                }
            }
        }
        if failed.is_none() && this.closes {
            this.closes = false;
            failed = socket.finish().err();
        }
        if let Some(error) = failed {
            self.fail(number, &error);
        }
    }

    /// Reads all that has arrived. `ends`: the end of the stream follows it.
    fn drain(&mut self, number: u32, end: usize, ends: bool) {
        loop {
            let connection = self.connections.get(number);
            let socket = connection.and_then(|connection| connection.ends[end].socket.as_ref());
            let Some(socket) = socket else {
                return;
            };
            match socket.discard(&mut self.room) {
                Ok(Some(0)) => return self.close(number, end),
                Ok(Some(bytes)) => {
                    self.arrived(number, end, bytes as u64);
                    if bytes < ROOM && !ends {
                        return;
                    }
                }
                Ok(None) => return,
                Err(error) => return self.fail(number, &error),
            }
        }
    }

    /// Bytes have reached the application of one end.
    fn arrived(&mut self, number: u32, end: usize, bytes: u64) {
        let now = self.now();
        let Some(connection) = self.connections.get_mut(number) else {
            return;
        };
        let is_data = end == connection.receiver();
        if is_data {
            let waited = now.saturating_sub(connection.last_arrival);
            connection.silence = connection.silence.max(waited);
            connection.last_arrival = now;
        }
        let this = &mut connection.ends[end];
        this.read += bytes;
        if this.read >= this.goal {
            this.goal = NO_GOAL;
            let client = connection.client;
            match is_data {
                true => self.complete(now, client),
                false => self.receive_request(now, client),
            }
        }
    }

    /// The peer has ended its side, and this end ends its own.
    fn close(&mut self, number: u32, end: usize) {
        let now = self.now();
        let Some(connection) = self.connections.get(number) else {
            return;
        };
        let client = connection.client;
        if self.clients[client as usize].connection == Some(number) {
            self.settle(now, client);
        }
        let Some(connection) = self.connections.get_mut(number) else {
            return;
        };
        connection.ends[end].socket = None;
        let is_open = |end: usize| connection.ends[end].socket.is_some();
        if !is_open(OPENER) && !is_open(ACCEPTED) {
            self.connections.remove(number);
            self.detach(client, number);
        }
    }

    /// The connection has failed. If its transfer was under way, it stays unfinished.
    fn fail(&mut self, number: u32, error: &io::Error) {
        let now = self.now();
        let Some(connection) = self.connections.get(number) else {
            return;
        };
        let client = connection.client;
        if self.clients[client as usize].connection == Some(number) {
            self.settle(now, client);
            self.note_broken(error);
        }
        self.abandon(number);
        self.detach(client, number);
    }

    /// The connection of that number is gone: the client's counts end here.
    fn detach(&mut self, client: u32, number: u32) {
        let connection = &mut self.clients[client as usize].connection;
        *connection = connection.filter(|current| *current != number);
    }
}
