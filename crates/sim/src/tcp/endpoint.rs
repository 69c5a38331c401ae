// SPDX-License-Identifier: Apache-2.0
//! The state of one side of a connection.

use super::Stats;
use super::congestion::{Congestion, Window};
use super::ecn::Ecn;
use super::receive::Reassembly;
use super::recovery::Scoreboard;
use super::rto::Rtt;
use super::timers::Timer;
use crate::packet::FlowId;
use penstock_scenario::units::Time;

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

/// Where the sender stands between growth and repair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Phase {
    /// No sign of loss.
    Open,
    /// Duplicate ACKs, too few to mean a loss.
    Disorder,
    /// Fast recovery, until `recover` is acknowledged.
    Recovery,
    /// After a timeout, until `recover` is acknowledged.
    Loss,
}

/// Bits of [`Endpoint::opts`]: what was negotiated, and what keeps a segment off the fast path.
pub(super) mod opt {
    pub(in crate::tcp) const TIMESTAMPS: u16 = 1;
    pub(in crate::tcp) const SACK: u16 = 1 << 1;
    pub(in crate::tcp) const ECN: u16 = 1 << 2;
    /// Out-of-order payload is held.
    pub(in crate::tcp) const OUT_OF_ORDER: u16 = 1 << 3;
    /// The application reads only on demand.
    pub(in crate::tcp) const PAUSED: u16 = 1 << 4;
    /// A FIN follows what was written.
    pub(in crate::tcp) const FIN: u16 = 1 << 5;
    /// The peer's FIN was received in order.
    pub(in crate::tcp) const PEER_FIN: u16 = 1 << 6;
    /// ALL_ACKED is owed.
    pub(in crate::tcp) const UNREPORTED: u16 = 1 << 7;
    /// The application sends in answer to what it receives: delay ACKs (Linux's ping-pong mode).
    pub(in crate::tcp) const INTERACTIVE: u16 = 1 << 8;
    /// The congestion window stopped the sender in the current round.
    pub(in crate::tcp) const CWND_LIMITED: u16 = 1 << 9;
    /// A partial ACK arrived in this recovery.
    pub(in crate::tcp) const PARTIAL_ACKED: u16 = 1 << 10;
    /// The SYN or FIN in flight, or the timed segment, was sent more than once.
    pub(in crate::tcp) const SYN_RETRANSMITTED: u16 = 1 << 11;
    /// The connection was opened by this side.
    pub(in crate::tcp) const ACTIVE: u16 = 1 << 12;
    /// The receive window offered has not grown to the buffer yet.
    pub(in crate::tcp) const WINDOW_GROWS: u16 = 1 << 13;
    /// No options, NewReno, every segment acknowledged: the fast path may be used.
    pub(in crate::tcp) const PLAIN: u16 = 1 << 14;
}

/// One side of one connection, full duplex. It can be opened again once CLOSED; its counters go on.
///
/// Sequence variables are offsets from the initial sequence number: SYN 0, first byte 1.
/// The first two cache lines hold what the fast path touches.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Endpoint {
    pub(super) rtx_at: Time,
    pub(super) ack_at: Time,
    /// Timeout in force, back-off included.
    pub(super) rto: Time,
    pub(super) snd_una: u64,
    pub(super) snd_nxt: u64,
    /// Highest SND.NXT ever: what lies below it was sent before.
    pub(super) snd_max: u64,
    /// After the last byte written.
    pub(super) snd_end: u64,
    pub(super) rcv_nxt: u64,

    /// Right edge of the window offered; never retreats.
    pub(super) rcv_edge: u64,
    /// When the timed segment left; NEVER while none is timed.
    pub(super) timed_at: Time,
    /// Low half of the offset that ends the timed segment.
    pub(super) timed_end: u32,
    pub(super) window: Window,
    pub(super) snd_wnd: u32,
    pub(super) flow: FlowId,
    pub(super) iss: u32,
    pub(super) irs: u32,
    /// Bytes offered to the peer while all is read.
    pub(super) rcv_space: u32,
    pub(super) mss: u16,
    pub(super) opts: u16,
    pub(super) state: State,
    pub(super) phase: Phase,
    pub(super) timer: Timer,
    pub(super) dupacks: u8,
    pub(super) snd_scale: u8,
    pub(super) rcv_scale: u8,
    /// Retransmissions or probes without an answer.
    pub(super) attempts: u8,
    /// Segments still to be acknowledged at once.
    pub(super) quick: u8,

    /// RCV.NXT as last acknowledged (RFC 7323's Last.ACK.sent).
    pub(super) last_ack_sent: u64,
    /// SND.UNA before the last advance: the ACK heuristic of RFC 6582 §4.1.
    pub(super) previous_una: u64,
    /// Largest send window the peer ever offered.
    pub(super) max_window: u32,
    /// Bytes of a segment's headers without options.
    pub(super) header: u8,
    pub(super) stats: Stats,
    pub(super) congestion: Congestion,
    pub(super) rtt: Rtt,
    /// Part of the congestion window that stands for duplicate ACKs (RFC 6582).
    pub(super) inflation: u32,
    /// Bytes sent by limited transmit since the first duplicate ACK.
    pub(super) limited: u32,
    /// Where the current or last recovery ends (RFC 6582 §3.2).
    pub(super) recover: u64,
    /// Sequence number of the segment that last updated the send window (SND.WL1), where it was
    /// out of order.
    pub(super) snd_wl1: u64,
    /// MSS as negotiated; `mss` may be less ([`Config::half_window_mss`]).
    pub(super) full_mss: u16,
    /// The peer's full segment as far as seen (Linux's `rcv_mss`).
    pub(super) rcv_mss: u16,
    /// Doublings of the persist timer.
    pub(super) persist_backoff: u8,
    pub(super) ecn: Ecn,
    /// Congestion-window validation: largest flight of the round, and the round's end.
    pub(super) max_flight: u32,
    pub(super) round_end: u64,
    pub(super) last_sent: Time,
    pub(super) last_received: Time,
    /// End of the last short segment sent (Minshall).
    pub(super) short_end: u64,
    pub(super) ts_recent: u32,
    /// What the application has read, while it reads on demand.
    pub(super) read: u64,
    pub(super) reassembly: Reassembly,
    /// Present where SACK is in use for recovery.
    pub(super) board: Option<Box<Scoreboard>>,
}

const _: () = assert!(std::mem::offset_of!(Endpoint, last_ack_sent) == 128);
const _: () = assert!(size_of::<Endpoint>() <= 704);

impl Endpoint {
    /// A CLOSED end point that will send segments of `flow`.
    pub fn new(flow: FlowId) -> Endpoint {
        Endpoint {
            rtx_at: Time::NEVER,
            ack_at: Time::NEVER,
            rto: Time::ZERO,
            snd_una: 0,
            snd_nxt: 0,
            snd_max: 0,
            snd_end: 1,
            rcv_nxt: 0,
            rcv_edge: 0,
            timed_at: Time::NEVER,
            timed_end: 0,
            window: Window::default(),
            snd_wnd: 0,
            flow,
            iss: 0,
            irs: 0,
            rcv_space: 0,
            mss: 0,
            opts: 0,
            state: State::Closed,
            phase: Phase::Open,
            timer: Timer::Retransmit,
            dupacks: 0,
            snd_scale: 0,
            rcv_scale: 0,
            attempts: 0,
            quick: 0,
            last_ack_sent: 0,
            previous_una: 0,
            max_window: 0,
            header: 0,
            stats: Stats::default(),
            congestion: Congestion::NewReno,
            rtt: Rtt::default(),
            inflation: 0,
            limited: 0,
            recover: 0,
            snd_wl1: 0,
            full_mss: 0,
            rcv_mss: 0,
            persist_backoff: 0,
            ecn: Ecn::default(),
            max_flight: 0,
            round_end: 0,
            last_sent: Time::ZERO,
            last_received: Time::ZERO,
            short_end: 0,
            ts_recent: 0,
            read: 0,
            reassembly: Reassembly::default(),
            board: None,
        }
    }

    #[inline]
    pub(super) fn is(&self, bits: u16) -> bool {
        self.opts & bits != 0
    }

    #[inline]
    pub(super) fn set(&mut self, bits: u16) {
        self.opts |= bits;
    }

    #[inline]
    pub(super) fn clear(&mut self, bits: u16) {
        self.opts &= !bits;
    }

    /// Whether the state allows payload or FIN to leave.
    pub(super) fn can_send(&self) -> bool {
        matches!(
            self.state,
            State::Established
                | State::CloseWait
                | State::FinWait1
                | State::Closing
                | State::LastAck
        )
    }

    /// The offset nearest `near` that has `wire` as its low half under initial number `initial`.
    #[inline]
    pub(super) fn offset(near: u64, initial: u32, wire: u32) -> u64 {
        let distance = wire.wrapping_sub(initial).wrapping_sub(near as u32) as i32;
        near.wrapping_add_signed(distance as i64)
    }
}
