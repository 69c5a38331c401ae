// SPDX-License-Identifier: Apache-2.0
//! The connection: its state machine (RFC 9293 §3.3.2), and the options both sides agreed on.

use super::config::{Algorithm, Config, Idle};
use crate::packet::{FlowId, Packet, SynOptions, flag};

/// Connection state (RFC 9293 §3.3.2).
#[allow(missing_docs)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum State {
    Closed,
    Listen,
    SynSent,
    SynReceived,
    Established,
    FinWait1,
    FinWait2,
    CloseWait,
    Closing,
    LastAck,
    TimeWait,
}

/// Which code an expected segment may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Path {
    /// The general code: the connection is not established, or uses ECN.
    General,
    /// The fast path.
    Fast,
    /// The fast path of connections without options, with NewReno and an ACK for every segment.
    Plain,
}

/// Bits of [`Connection::bits`]: options agreed on, and what is amiss.
mod bit {
    pub const TIMESTAMPS: u8 = 1;
    pub const SACK: u8 = 1 << 1;
    pub const ECN: u8 = 1 << 2;
    pub const WINDOW_SCALE: u8 = 1 << 3;
    /// The receiver waits for a gap to be filled.
    pub const GAP: u8 = 1 << 4;
    /// The sender has seen signs of a loss.
    pub const LOSS: u8 = 1 << 5;
    /// The sender paces.
    pub const PACED: u8 = 1 << 6;
    /// The peer's SYN has come again.
    pub const ASKED_AGAIN: u8 = 1 << 7;
}

/// State and options of one side of a connection.
#[derive(Debug)]
pub(super) struct Connection {
    flow: FlowId,
    state: State,
    /// The best path that state and options allow.
    path: Path,
    bits: u8,
    /// Bytes of IP and TCP headers without options.
    header: u8,
}

impl Connection {
    /// CLOSED; segments will belong to `flow`.
    pub fn new(flow: FlowId) -> Connection {
        Connection {
            flow,
            state: State::Closed,
            path: Path::General,
            bits: 0,
            header: 0,
        }
    }

    /// LISTEN or SYN-SENT, nothing agreed on yet.
    pub fn open(&mut self, cfg: &Config, state: State) {
        *self = Connection {
            state,
            header: cfg.header,
            ..Connection::new(self.flow)
        };
    }

    #[inline]
    pub fn flow(&self) -> FlowId {
        self.flow
    }

    #[inline]
    pub fn state(&self) -> State {
        self.state
    }

    /// The code that the next segment in order may take; the general one while there is a gap.
    #[inline]
    pub fn path(&self) -> Path {
        if self.bits & bit::GAP != 0 {
            Path::General
        } else {
            self.path
        }
    }

    /// Whether the sender has seen signs of a loss, so that ACKs take the general code.
    #[inline]
    pub fn has_loss(&self) -> bool {
        self.bits & bit::LOSS != 0
    }

    /// Notes what is amiss, after the general code has run.
    #[inline]
    pub fn note_trouble(&mut self, has_gap: bool, has_loss: bool) {
        self.set(bit::GAP, has_gap);
        self.set(bit::LOSS, has_loss);
    }

    /// The peer's SYN has come again: the SYN-ACK leaves once more.
    pub fn note_syn_again(&mut self) {
        self.set(bit::ASKED_AGAIN, true);
    }

    /// Whether it has.
    pub fn has_syn_again(&self) -> bool {
        self.bits & bit::ASKED_AGAIN != 0
    }

    fn set(&mut self, bit: u8, on: bool) {
        self.bits = if on {
            self.bits | bit
        } else {
            self.bits & !bit
        };
    }

    /// Bytes of IP and TCP headers without options.
    #[inline]
    pub fn header(&self) -> u8 {
        self.header
    }

    /// Whether segments carry no option and no ECN code point once the handshake is over.
    #[inline]
    pub fn is_bare(&self) -> bool {
        self.bits & (bit::TIMESTAMPS | bit::SACK | bit::ECN) == 0
    }

    #[inline]
    pub fn has_timestamps(&self) -> bool {
        self.bits & bit::TIMESTAMPS != 0
    }

    #[inline]
    pub fn has_sack(&self) -> bool {
        self.bits & bit::SACK != 0
    }

    #[inline]
    pub fn has_ecn(&self) -> bool {
        self.bits & bit::ECN != 0
    }

    /// Whether the sender paces.
    #[inline]
    pub fn is_paced(&self) -> bool {
        self.bits & bit::PACED != 0
    }

    /// Notes whether the sender paces.
    pub fn set_paced(&mut self, is_paced: bool) {
        self.set(bit::PACED, is_paced);
    }

    /// Whether both sides offered window scaling.
    pub fn has_window_scale(&self) -> bool {
        self.bits & bit::WINDOW_SCALE != 0
    }

    /// Whether the SYN or SYN-ACK is not acknowledged yet.
    pub fn is_opening(&self) -> bool {
        matches!(self.state, State::SynSent | State::SynReceived)
    }

    /// Whether the state allows payload or FIN to leave.
    pub fn can_send(&self) -> bool {
        matches!(
            self.state,
            State::Established
                | State::CloseWait
                | State::FinWait1
                | State::Closing
                | State::LastAck
        )
    }

    /// What this side offers in its SYN; in a SYN-ACK only what the peer offered too.
    pub fn offer(&self, cfg: &Config) -> SynOptions {
        let answers = self.state == State::SynReceived;
        SynOptions {
            mss: cfg.mss,
            window_scale: cfg
                .window_scale
                .filter(|_| !answers || self.has_window_scale()),
            sack: cfg.sack && (!answers || self.has_sack()),
            timestamps: cfg.timestamps && (!answers || self.has_timestamps()),
        }
    }

    /// Keeps what both this side and the peer, by its SYN, can do.
    pub fn negotiate(&mut self, cfg: &Config, syn: &Packet) {
        let offered = SynOptions::unpack(syn.options);
        let ecn_requested = if syn.has(flag::ACK) {
            flag::ECE
        } else {
            flag::ECE | flag::CWR
        };
        let has_ecn = syn.flags & (flag::ECE | flag::CWR) == ecn_requested;
        let has_timestamps = offered.timestamps && syn.has(flag::TIMESTAMPS);
        let has_scale = offered.window_scale.is_some();
        self.set(bit::SACK, cfg.sack && offered.sack);
        self.set(bit::TIMESTAMPS, cfg.timestamps && has_timestamps);
        self.set(bit::ECN, cfg.ecn && has_ecn);
        self.set(bit::WINDOW_SCALE, cfg.window_scale.is_some() && has_scale);
    }

    /// The peer's SYN arrived before its acknowledgement of ours.
    pub fn on_syn(&mut self) {
        self.state = State::SynReceived;
    }

    /// The handshake is complete.
    pub fn establish(&mut self, cfg: &Config) {
        self.state = State::Established;
        let is_plain = self.is_bare()
            && cfg.congestion == Algorithm::NewReno
            && cfg.idle == Idle::Keep
            && !cfg.validate_cwnd
            && cfg.ack_every <= 1;
        self.path = match (is_plain, self.has_ecn()) {
            (true, _) => Path::Plain,
            (false, false) => Path::Fast,
            (false, true) => Path::General,
        };
    }

    /// Our FIN left for the first time.
    pub fn on_fin_sent(&mut self) {
        match self.state {
            State::Established => self.leave(State::FinWait1),
            State::CloseWait => self.leave(State::LastAck),
            _ => {}
        }
    }

    /// Our FIN is acknowledged; returns the state now.
    pub fn on_fin_acked(&mut self) -> State {
        match self.state {
            State::FinWait1 => self.leave(State::FinWait2),
            State::Closing => self.leave(State::TimeWait),
            State::LastAck => self.close(),
            _ => {}
        }
        self.state
    }

    /// The peer's FIN arrived in order; returns the state now.
    pub fn on_peer_fin(&mut self) -> State {
        match self.state {
            State::Established => self.leave(State::CloseWait),
            State::FinWait1 => self.leave(State::Closing),
            State::FinWait2 => self.leave(State::TimeWait),
            _ => {}
        }
        self.state
    }

    /// CLOSED, whatever the state was.
    pub fn close(&mut self) {
        self.set_paced(false);
        self.leave(State::Closed);
    }

    fn leave(&mut self, state: State) {
        self.state = state;
        self.path = Path::General;
    }
}
