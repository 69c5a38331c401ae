// SPDX-License-Identifier: Apache-2.0
//! One side of one connection: what its parts do together.
//!
//! The parts keep their own state; here an event is taken from part to part. A file uses those above
//! it in this list only:
//!
//! | file | content |
//! |---|---|
//! | `mod.rs` | the parts, and what can be asked of an end point |
//! | `emit.rs` | building a segment and giving it to the wire |
//! | `output.rs` | what may be sent now |
//! | `opening.rs`, `closing.rs` | the handshake; FIN, RST and TIME-WAIT |
//! | `ack.rs`, `payload.rs` | what an acknowledgement does; what payload and FIN do |
//! | `fast.rs` | the common case of the two, with what cannot happen left out |
//! | `input.rs` | an arriving segment: the checks of RFC 9293 §3.10.7 |
//! | `expiry.rs` | a timer fires |
//! | `calls.rs` | the application's calls |

mod ack;
mod calls;
mod closing;
mod emit;
mod expiry;
mod fast;
mod input;
mod opening;
mod output;
mod payload;

use super::acks::Acks;
use super::config::Config;
use super::congestion::Congestion;
use super::connection::{Connection, State};
use super::receiver::Receiver;
use super::recovery::{Parts, Recovery};
use super::rtt::Rtt;
use super::sender::{Pieces, Sender};
use super::stats::{Info, Stats, Waits};
use super::timers::Timers;
use crate::packet::FlowId;
use penstock_scenario::units::Time;
use std::mem::offset_of;

/// One side of one connection, full duplex. It can be opened again once CLOSED; its counters go on.
///
/// The order of the parts, and of the fields in those with `repr(C)`, puts what the fast path touches
/// into the three cache lines that begin at 64.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Endpoint {
    recovery: Recovery,
    rcv: Receiver,
    conn: Connection,
    timers: Timers,
    snd: Sender,
    congestion: Congestion,
    rtt: Rtt,
    acks: Acks,
    pieces: Pieces,
    stats: Stats,
}

const _: () = assert!(offset_of!(Endpoint, conn) == 96);
const _: () = assert!(offset_of!(Endpoint, congestion) + Congestion::HOT <= 256);
const _: () = assert!(size_of::<Endpoint>() <= 448);

impl Endpoint {
    /// A CLOSED end point that will send segments of `flow`.
    pub fn new(flow: FlowId) -> Endpoint {
        Endpoint {
            recovery: Recovery::new(),
            acks: Acks::new(),
            rcv: Receiver::new(),
            conn: Connection::new(flow),
            timers: Timers::new(),
            snd: Sender::new(),
            pieces: Pieces::default(),
            congestion: Congestion::new(),
            rtt: Rtt::new(),
            stats: Stats::default(),
        }
    }

    /// When [`Endpoint::on_timer`] is to be called; [`Time::NEVER`] for no timer.
    #[inline]
    pub fn deadline(&self, cfg: &Config) -> Time {
        let timer = self.timers.deadline(cfg);
        if self.conn.is_paced() {
            return timer.min(self.congestion.wake());
        }
        timer
    }

    /// Payload bytes received in order so far.
    #[inline]
    pub fn delivered(&self) -> u64 {
        self.rcv.delivered()
    }

    /// Payload bytes the peer has acknowledged so far.
    #[inline]
    pub fn acked(&self) -> u64 {
        self.snd.acked()
    }

    /// Payload bytes written so far.
    pub fn written(&self) -> u64 {
        self.snd.written()
    }

    /// Segments sent since [`Endpoint::new`], all kinds.
    pub fn segments_sent(&self) -> u64 {
        self.snd.segments_sent()
    }

    /// Payload bytes sent, retransmissions included.
    pub fn bytes_sent(&self) -> u64 {
        self.snd.bytes_sent()
    }

    /// Counters since [`Endpoint::new`].
    pub fn stats(&self) -> Stats {
        self.stats
    }

    /// How long timers ran that fired; and the one that runs, once it has fired without an answer.
    pub fn waits(&self, now: Time) -> Waits {
        let mut waits = self.stats.waits();
        if self.timers.attempts() > 0
            && let Some(start) = self.timers.retransmit_since()
        {
            let wait = now.saturating_sub(start);
            match self.conn.is_opening() {
                true => waits.syn += wait,
                false => waits.rto += wait,
            }
        }
        waits
    }

    /// The connection's state.
    pub fn state(&self) -> State {
        self.conn.state()
    }

    /// The sender's variables, as Linux's `tcp_info` shows them.
    pub fn info(&self) -> Info {
        Info {
            cwnd: self.congestion.cwnd(),
            ssthresh: self.congestion.ssthresh(),
            mss: self.snd.mss(),
            send_window: self.snd.window(),
            in_flight: self.snd.outstanding(),
            is_recovering: !self.recovery.is_growing(),
            rto: self.timers.timeout(),
        }
    }

    /// Takes the round trip of the timed segment, if SND.UNA has passed it.
    #[inline]
    fn take_timed_sample(&mut self, cfg: &Config, now: Time) {
        if let Some(sent) = self.timers.take_timed(self.snd.una()) {
            self.sample(cfg, sent, now);
        }
    }

    /// Takes the round trip of what left at `sent`.
    #[inline]
    fn sample(&mut self, cfg: &Config, sent: Time, now: Time) {
        self.rtt.sample(cfg, sent, now);
        self.timers.set_timeout(cfg, &self.rtt);
    }

    /// Notes what keeps the next segment off the fast path, after the general code has run.
    #[inline]
    fn note_trouble(&mut self) {
        self.conn
            .note_trouble(self.rcv.has_gap(), !self.recovery.is_open());
    }

    /// Recovery, and what it works with.
    #[inline]
    fn repair<'a>(&'a mut self, cfg: &'a Config, now: Time) -> (&'a mut Recovery, Parts<'a>) {
        let parts = Parts {
            cfg,
            now,
            snd: &mut self.snd,
            congestion: &mut self.congestion,
            rtt: &mut self.rtt,
            timers: &mut self.timers,
            stats: &mut self.stats,
        };
        (&mut self.recovery, parts)
    }
}
