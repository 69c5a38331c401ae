// SPDX-License-Identifier: Apache-2.0
//! A connection, both of whose ends are in this process.

use crate::socket::Socket;
use penstock_linux::socket::TcpInfo;
use penstock_scenario::units::Time;
use penstock_sim::simulation::{KernelTimes, TransferCounters};
use penstock_sim::tcp::Waits;
use std::net::SocketAddr;

/// Index of the end that connects.
pub const OPENER: usize = 0;
/// Index of the end that was accepted.
pub const ACCEPTED: usize = 1;

/// `TCP_TIMEOUT_INIT` of Linux: how long a SYN waits for its answer.
const SYN_TIMEOUT: Time = Time::from_secs(1);

/// Goal of an application that waits for nothing.
pub const NO_GOAL: u64 = u64::MAX;

/// One end.
pub struct End {
    /// `None` before it is accepted and after it is closed.
    pub socket: Option<Socket>,
    /// Bytes the application has still to hand over.
    pub unsent: u64,
    /// Whether it ends its side after them.
    pub closes: bool,
    /// Bytes read.
    pub read: u64,
    /// Bytes read at which the application acts; [`NO_GOAL`] for none.
    pub goal: u64,
    /// What the handshake cost this end, once it is over.
    pub handshake: Option<TcpInfo>,
}

impl End {
    const fn new(socket: Option<Socket>) -> End {
        End {
            socket,
            unsent: 0,
            closes: false,
            read: 0,
            goal: NO_GOAL,
            handshake: None,
        }
    }

    /// Its counts now; zero without a socket.
    pub fn info(&self) -> TcpInfo {
        let socket = self.socket.as_ref();
        socket
            .and_then(|socket| socket.info().ok())
            .unwrap_or_default()
    }
}

/// A connection of a client.
pub struct Connection {
    /// The client whose it is.
    pub client: u32,
    /// The listener it goes to.
    pub listener: u32,
    /// The address it was opened from.
    pub opened_from: SocketAddr,
    /// Which end sends the data.
    pub sender: usize,
    /// By [`OPENER`] and [`ACCEPTED`].
    pub ends: [End; 2],
    /// When data last reached the receiver, or the wait for it began.
    pub last_arrival: Time,
    /// Longest time between two arrivals.
    pub silence: Time,
}

impl Connection {
    /// One that is being opened.
    pub fn new(
        client: u32,
        listener: u32,
        socket: Socket,
        opened_from: SocketAddr,
        sender: usize,
    ) -> Connection {
        Connection {
            client,
            listener,
            opened_from,
            sender,
            ends: [End::new(Some(socket)), End::new(None)],
            last_arrival: Time::ZERO,
            silence: Time::ZERO,
        }
    }

    /// Which end receives the data.
    pub const fn receiver(&self) -> usize {
        1 - self.sender
    }

    /// What has been counted at both ends. Where the kernel does not report timeouts (before Linux
    /// 6.7), each retransmission of a handshake is one, and so is a silence as long as `min_rto`.
    pub fn counters(&self, min_rto: Time) -> TransferCounters {
        let sent = self.ends[self.sender].info();
        let handshake = self.ends[self.sender].handshake.unwrap_or_default();
        let silent = u64::from(self.silence >= min_rto);
        let timeouts = sent.timeouts.map_or(silent, |all| {
            u64::from(all.saturating_sub(handshake.timeouts.unwrap_or(0)))
        });
        let is_open = self.ends[self.sender].handshake.is_some();
        TransferCounters {
            delivered: self.ends[self.receiver()].read,
            packets: self.ends[self.receiver()].info().data_segments_in.into(),
            retransmits: match is_open {
                true => sent
                    .retransmits
                    .saturating_sub(handshake.retransmits)
                    .into(),
                false => 0,
            },
            timeouts: if is_open { timeouts } else { 0 },
            syn_timeouts: self.ends.iter().map(syn_timeouts).sum(),
            drops: 0,
            waits: self.waits(min_rto),
        }
    }

    /// How long both ends have waited for timeouts: from the first of a row to the next answer, as the
    /// kernel counts it (Linux 6.7), and before that at least `min_rto`, or the second of a SYN.
    fn waits(&self, min_rto: Time) -> Waits {
        let wait = |info: &TcpInfo, least: Time| {
            let rows = info.timeout_recoveries.unwrap_or(0).into();
            let after = Time::from_millis(info.timeout_ms.unwrap_or(0).into());
            after + Time(least.0.saturating_mul(rows))
        };
        let mut rto = Time::ZERO;
        for end in &self.ends {
            if let Some(handshake) = &end.handshake {
                let (all, before) = (wait(&end.info(), min_rto), wait(handshake, min_rto));
                rto += all.saturating_sub(before);
            }
        }
        let opener = &self.ends[OPENER];
        let handshake = opener.handshake.unwrap_or_else(|| opener.info());
        Waits {
            rto,
            syn: wait(&handshake, SYN_TIMEOUT),
            ..Waits::default()
        }
    }

    /// What the sender's kernel counts of its time.
    pub fn kernel_times(&self) -> KernelTimes {
        let info = self.ends[self.sender].info();
        KernelTimes {
            busy: Time::from_micros(info.busy_us),
            receive_window: Time::from_micros(info.rwnd_limited_us),
            send_buffer: Time::from_micros(info.sndbuf_limited_us),
        }
    }
}

/// Timeouts of an end's SYN or SYN-ACK, so far.
fn syn_timeouts(end: &End) -> u64 {
    let info = end.handshake.unwrap_or_else(|| end.info());
    info.timeouts
        .map_or(info.retransmits.into(), |timeouts| timeouts.into())
}

/// Values by number; the number of a removed value is used again.
pub struct Slab<T> {
    places: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Slab<T> {
        Slab {
            places: Vec::new(),
            free: Vec::new(),
        }
    }
}

impl<T> Slab<T> {
    /// Inserts it; returns its number.
    pub fn insert(&mut self, thing: T) -> u32 {
        if let Some(number) = self.free.pop() {
            self.places[number as usize] = Some(thing);
            return number;
        }
        self.places.push(Some(thing));
        self.places.len() as u32 - 1
    }

    /// What has this number, if anything has.
    pub fn get(&self, number: u32) -> Option<&T> {
        self.places.get(number as usize)?.as_ref()
    }

    /// The same, to change.
    pub fn get_mut(&mut self, number: u32) -> Option<&mut T> {
        self.places.get_mut(number as usize)?.as_mut()
    }

    /// Removes it.
    pub fn remove(&mut self, number: u32) -> Option<T> {
        let thing = self.places.get_mut(number as usize)?.take()?;
        self.free.push(number);
        Some(thing)
    }

    /// Removes all.
    pub fn drain(&mut self) -> impl Iterator<Item = T> {
        self.free.clear();
        self.places.drain(..).flatten()
    }
}
