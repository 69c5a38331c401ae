// SPDX-License-Identifier: Apache-2.0
//! What an end point is: plain values, shared by reference among any number of connections.

use crate::packet::FlowId;
use crate::rng::Rng;
use penstock_scenario::units::Time;

/// Congestion control of an end point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// RFC 5681 growth and halving.
    NewReno,
    /// RFC 9438.
    Cubic {
        /// Leave slow start early, by ack trains and rising delay, as Linux does (HyStart).
        hystart: bool,
    },
    /// RFC 8257; needs [`Config::ecn`] on both sides.
    Dctcp,
    /// BBR version 1; NewReno where SACK is not in use.
    Bbr,
}

/// How losses are found and repaired. [`Recovery::Sack`] and [`Recovery::Rack`] where SACK was
/// negotiated; else they are NewReno.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// Three duplicate ACKs; the first new ACK ends recovery (RFC 5681 §3.2); SACK is ignored.
    Reno,
    /// Three duplicate ACKs and partial ACKs (RFC 6582); SACK is ignored.
    NewReno,
    /// The conservative scoreboard of RFC 6675.
    Sack,
    /// By time: RACK (RFC 8985 §6).
    Rack,
}

/// What an ACK counts for when the window grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counting {
    /// One segment, whatever it acknowledges: RFC 5681's minimum and ns-2's rule.
    Acks,
    /// The bytes it acknowledges, in slow start at most this many segments (RFC 3465's L;
    /// Linux 3.18 sets no limit: `u8::MAX`).
    Bytes(u8),
    /// The segments it acknowledges or SACKs, and windows are of whole segments, by Linux's rules:
    /// CUBIC is `tcp_cubic`, the ACK that ends a recovery counts, and PRR starts from the window.
    Delivered,
}

/// What the minimum RTO bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RtoFloor {
    /// The whole timeout (RFC 6298 §2.4, ns-2).
    Timeout,
    /// Its variance term, so that it is always above SRTT by as much (Linux).
    Variance,
}

/// What becomes of the window after a silence of more than one RTO.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Idle {
    /// Nothing.
    Keep,
    /// Halved once per RTO of silence, not below the initial window (Linux).
    Decay,
}

/// When a short segment is held back: one at the end of what was written, or one that fills the
/// window (Minshall's variant alone sends these).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nagle {
    /// Never (TCP_NODELAY).
    Off,
    /// While anything is in flight (RFC 9293 §3.7.4).
    On,
    /// While another short segment is in flight (Minshall's variant, Linux).
    Minshall,
}

/// Which rules of acknowledging come on top of pairs and the delay ([`Config::ack_every`],
/// [`Config::delayed_ack`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckRules {
    /// None (RFC 9293 §3.8.6.3).
    Rfc,
    /// Linux's before 4.18: disorder makes ACKs quick.
    Linux318,
    /// Linux's: PSH on a full segment too makes the application's read acknowledge it.
    Linux,
}

/// The first sequence number of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InitialSequence {
    /// This one.
    Fixed(u32),
    /// Drawn from the flow's number and this seed.
    Seeded(u64),
}

impl InitialSequence {
    /// The first sequence number of `flow`.
    pub(super) fn of(self, flow: FlowId) -> u32 {
        match self {
            InitialSequence::Fixed(iss) => iss,
            InitialSequence::Seeded(seed) => Rng::new(seed, flow.0 as u64).bits() as u32,
        }
    }
}

/// An end point's settings. Start from a profile and change what differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Largest payload of a segment without options, bytes (the MSS option offered).
    pub mss: u16,
    /// IP and TCP headers without options, bytes.
    pub header: u8,
    /// Offer timestamps (RFC 7323).
    pub timestamps: bool,
    /// Offer SACK (RFC 2018).
    pub sack: bool,
    /// Offer window scaling with this shift (RFC 7323 §2, at most 14).
    pub window_scale: Option<u8>,
    /// Offer ECN (RFC 3168).
    pub ecn: bool,
    /// First sequence number.
    pub initial_sequence: InitialSequence,
    /// What BBR's random phases are drawn from, with the flow's number.
    pub seed: u64,

    /// Congestion control.
    pub congestion: Algorithm,
    /// Initial window, segments (RFC 6928: 10; RFC 5681: 2 to 4).
    pub initial_window: u32,
    /// How many retransmitted SYNs still leave the initial window whole; beyond, it is 1 segment
    /// (RFC 6298 §5.7: 0, Linux: 1).
    pub syn_losses_forgiven: u8,
    /// What ACKs count for.
    pub counting: Counting,
    /// ns-2's windows where they depart from the RFCs: a halved window may fall to one segment,
    /// it is in force as it stands when recovery ends, every timeout halves the threshold again (that of
    /// a SYN too), and congestion avoidance grows by fractions of a segment (RFC 5681 eqn 3).
    pub ns2_windows: bool,
    /// Grow the window only while it limits the sender (RFC 7661's aim by Linux's rule).
    pub validate_cwnd: bool,
    /// Window after silence.
    pub idle: Idle,
    /// The largest window the sender ever uses, bytes (ns-2's `window_`).
    pub max_send_window: u32,
    /// First slow-start threshold, bytes; `u32::MAX` for none.
    pub initial_ssthresh: u32,

    /// Loss detection and repair.
    pub recovery: Recovery,
    /// Duplicate ACKs that mean a loss (RFC 5681 §3.2).
    pub dupack_threshold: u8,
    /// A changed window does not keep an ACK from being a duplicate (ns-2; RFC 5681 §2: it does).
    pub dupack_any_window: bool,
    /// Send new data on the first two duplicate ACKs (RFC 3042). With SACK the pipe has room for
    /// it anyway.
    pub limited_transmit: bool,
    /// Restart the RTO at the first partial ACK only (RFC 6582 §4, "Impatient"); else at each.
    pub impatient: bool,
    /// After an RTO allow a fast retransmit below `recover` where the last ACK advanced by at most
    /// the dupack threshold (RFC 6582 §4.1, ns-2's `bugfix_ack_`).
    pub ack_heuristic: bool,
    /// Reduce in proportion to what is delivered (RFC 6937); SACK only.
    pub prr: bool,
    /// After a timeout send new data first, to see whether it was needless (RFC 5682); SACK only.
    pub frto: bool,
    /// Send a tail loss probe (RFC 8985 §7); SACK only.
    pub tlp: bool,
    /// Added to the probe timeout of 2 SRTT when one segment is in flight (its ACK may be delayed).
    pub tlp_single_delay: Time,
    /// Added to the probe timeout otherwise.
    pub tlp_delay: Time,
    /// The least probe timeout.
    pub tlp_min: Time,
    /// Early retransmit (RFC 5827), after a quarter of the round trip, as Linux had it before RACK;
    /// SACK only, and not with RACK.
    pub early_retransmit: bool,
    /// Added to the wait for reordering to settle, where RACK has to wait.
    pub reorder_delay: Time,

    /// RTO before the first sample (RFC 6298 §2.1: 1 s; ns-2: 3 s).
    pub initial_rto: Time,
    /// Minimum RTO.
    pub min_rto: Time,
    /// What the minimum bounds.
    pub rto_floor: RtoFloor,
    /// Maximum RTO, after back-off too.
    pub max_rto: Time,
    /// Timers run in whole units of this and fire at the next beat of its clock, as the kernel's
    /// timer wheel does (1/HZ); `Time::ZERO` fires exactly.
    pub jiffy: Time,
    /// Of long timers only each eighth beat counts, or less, so that they fire up to an eighth late
    /// (Linux 4.8).
    pub coarse_timers: bool,
    /// Clock granularity of samples, as ns-2's `tcpTick_`; `Time::ZERO` measures in nanoseconds.
    pub tick: Time,
    /// Largest factor of the exponential back-off, as a shift.
    pub max_backoff: u8,
    /// Timeouts of a SYN that do not double the next one (Linux 6.5); those of a SYN-ACK always do.
    pub syn_linear_timeouts: u8,
    /// Retransmissions of a SYN or SYN-ACK before giving up, in addition to `syn_linear_timeouts`;
    /// `u8::MAX` for never.
    pub syn_retries: u8,
    /// Retransmissions of data before giving up; `u8::MAX` for never.
    pub retries: u8,

    /// Receive buffer, bytes: what is offered while nothing waits to be read.
    pub receive_buffer: u32,
    /// Window offered at first, bytes; grows by 2 MSS per segment in order up to the limit in force.
    pub initial_receive_window: u32,
    /// Memory for what arrives, at first (Linux's `tcp_rmem[1]`), bytes: the limit of that growth is the share of it
    /// that is payload. The limit rises up to the buffer as the application reads more per round trip
    /// (`tcp_rcv_space_adjust`).
    pub receive_memory: u32,
    /// Memory that a segment takes in addition to its payload (Linux's `truesize`), bytes.
    pub segment_overhead: u16,
    /// Segments an ACK may stand for (1: every segment at once; RFC 9293 §3.8.6.3: 2).
    pub ack_every: u8,
    /// The longest an ACK may be delayed.
    pub delayed_ack: Time,
    /// How long an ACK is delayed, unless payload arrives at a slower pace or waiting was in vain
    /// (Linux's TCP_ATO_MIN).
    pub ack_patience: Time,
    /// ACKs sent at once at the start and after disorder, at most (Linux's quick-ack).
    pub quick_acks: u8,
    /// ACKs of segments ahead of order wait for more of them, from the fourth on (Linux 4.18).
    pub compresses_acks: bool,
    /// Further rules of acknowledging.
    pub ack_rules: AckRules,
    /// When a short segment is held back.
    pub nagle: Nagle,
    /// Never send more than half the largest window the peer offered in one segment, as Linux
    /// does (`tcp_bound_to_half_wnd`).
    pub half_window_mss: bool,
    /// Segments leave in bursts where nothing paces them, as Linux hands packets of several segments
    /// to the device (`tcp_write_xmit`): the last of a burst carries PSH, only a burst fills the rest
    /// of a window with a short segment, and what is written is sent in pieces of half the largest
    /// window. The application writes once the ACK that ends the handshake has left.
    pub bursts: bool,
    /// A segment that repeats sequence and ACK number of the last that set the window may open it or
    /// close it wholly, but not make it smaller (Linux's `tcp_may_update_window`; RFC 9293
    /// §3.10.7.4 would take any).
    pub repeats_only_open: bool,
    /// Time in TIME-WAIT.
    pub time_wait: Time,
}

impl Config {
    /// Whether congestion windows are of whole segments.
    #[inline]
    pub(super) fn has_whole_windows(&self) -> bool {
        self.counting == Counting::Delivered
    }

    /// `span` in whole jiffies, rounded up.
    pub(super) fn in_jiffies(&self, span: Time) -> Time {
        match self.jiffy.0 {
            0 => span,
            jiffy => Time(span.0.div_ceil(jiffy).saturating_mul(jiffy)),
        }
    }

    /// The beat at which a timer for `at` fires: never before it, so a jiffy later even if `at`
    /// is a beat (`calc_index` in Linux's kernel/time/timer.c).
    #[inline]
    pub(super) fn beat_after(&self, at: Time) -> Time {
        match at.0.checked_div(self.jiffy.0) {
            Some(beats) if at != Time::NEVER => Time((beats + 1) * self.jiffy.0),
            _ => at,
        }
    }

    /// The time to set a timer to now that is to fire `at` a time, so that [`Config::beat_after`] has the
    /// beat at which a coarse one fires: of three bits for each level of the wheel's 64 slots, of which
    /// the last is never used (`calc_wheel_index`).
    #[inline]
    pub(super) fn coarse(&self, at: Time, now: Time) -> Time {
        let (span, jiffy) = (at.saturating_sub(now).0, self.jiffy.0);
        if !self.coarse_timers || jiffy == 0 || at == Time::NEVER || span < 63 * jiffy {
            return at;
        }
        let bits = match span / jiffy {
            0..504 => 3,
            504..4032 => 6,
            _ => 9,
        };
        let beats = at.0 / jiffy;
        Time(((((beats >> bits) + 1) << bits) - 1) * jiffy)
    }

    /// `Agent/TCP/Newreno` with `Agent/TCPSink` of ns-2, as the papers' simulations use it, with
    /// 1500-byte packets. ns-2's names in brackets:
    ///
    /// initial window 2 (`windowInit_`), one ACK per packet, limited transmit (`singledup_` 1),
    /// impatient partial ACKs (`newreno_changes1_` 1), RTO at first 3 s (`rtxcur_init_`), at least
    /// 0.2 s (`minrto_`), backed off to at most 60 s (`maxrto_`, `rfc2988_`), measured in ticks of
    /// 10 ms (`tcpTick_`), window halved from cwnd (`windowd()`), no options, no Nagle, no
    /// receive window but the sender's own limit (`window_`, here none). The receiver offers 2 MB
    /// at a scale of 5, so that window policies can write a segment to within 32 bytes.
    ///
    /// Where it differs from ns-2: the handshake is real (ns-2 sends data right behind the SYN and
    /// never closes) and its SYN is 48 bytes, not 40; windows are bytes, not packets; bursts are
    /// not limited to 2 in recovery.
    pub const fn newreno_ns2() -> Config {
        Config {
            mss: 1460,
            header: 40,
            timestamps: false,
            sack: false,
            window_scale: Some(5),
            ecn: false,
            initial_sequence: InitialSequence::Fixed(0),
            seed: 0,
            congestion: Algorithm::NewReno,
            initial_window: 2,
            syn_losses_forgiven: 0,
            counting: Counting::Acks,
            ns2_windows: true,
            validate_cwnd: false,
            idle: Idle::Keep,
            max_send_window: u32::MAX,
            initial_ssthresh: u32::MAX,
            recovery: Recovery::NewReno,
            dupack_threshold: 3,
            dupack_any_window: true,
            limited_transmit: true,
            impatient: true,
            ack_heuristic: false,
            prr: false,
            frto: false,
            tlp: false,
            tlp_single_delay: Time::ZERO,
            tlp_delay: Time::ZERO,
            tlp_min: Time::ZERO,
            early_retransmit: false,
            reorder_delay: Time::ZERO,
            initial_rto: Time::from_secs(3),
            min_rto: Time::from_millis(200),
            rto_floor: RtoFloor::Timeout,
            max_rto: Time::from_secs(60),
            jiffy: Time::ZERO,
            coarse_timers: false,
            tick: Time::from_millis(10),
            max_backoff: 16,
            syn_linear_timeouts: 0,
            syn_retries: u8::MAX,
            retries: u8::MAX,
            receive_buffer: 65535 << 5,
            initial_receive_window: 65535 << 5,
            receive_memory: 65535 << 5,
            segment_overhead: 0,
            ack_every: 1,
            delayed_ack: Time::from_millis(100),
            ack_patience: Time::from_millis(100),
            quick_acks: 0,
            compresses_acks: false,
            ack_rules: AckRules::Rfc,
            nagle: Nagle::Off,
            half_window_mss: false,
            bursts: false,
            repeats_only_open: false,
            time_wait: Time::from_millis(1),
        }
    }

    /// A modern Linux guest with its default settings: SACK, timestamps, window scale 10 (a receive
    /// buffer of at most 32 MB), initial window 10, CUBIC with HyStart, RACK-TLP, PRR, minimum RTO
    /// 200 ms above SRTT, initial RTO 1 s, delayed ACKs of 40 ms after a quick-ack start, offloads off.
    ///
    /// Where it differs from Linux: no pacing but BBR's, small queues, undo of needless fast retransmits or by
    /// DSACK, fast open; short segments use up as much of a window as they are long; without SACK a timeout goes back to SND.UNA; an
    /// ECN reduction is immediate, not spread over a round trip; HZ is 250.
    pub const fn linux() -> Config {
        Config {
            timestamps: true,
            sack: true,
            window_scale: Some(10),
            initial_sequence: InitialSequence::Seeded(0),
            congestion: Algorithm::Cubic { hystart: true },
            initial_window: 10,
            syn_losses_forgiven: 1,
            counting: Counting::Delivered,
            ns2_windows: false,
            validate_cwnd: true,
            idle: Idle::Decay,
            recovery: Recovery::Rack,
            dupack_any_window: false,
            impatient: false,
            prr: true,
            frto: true,
            tlp: true,
            tlp_single_delay: Time::from_millis(200),
            tlp_delay: Time::from_millis(2),
            reorder_delay: Time::from_millis(2),
            initial_rto: Time::from_secs(1),
            rto_floor: RtoFloor::Variance,
            max_rto: Time::from_secs(120),
            jiffy: Time::from_millis(4),
            coarse_timers: true,
            tick: Time::ZERO,
            syn_linear_timeouts: 4,
            syn_retries: 6,
            retries: 15,
            receive_buffer: 16 << 20,
            initial_receive_window: 64240,
            receive_memory: 128 << 10,
            segment_overhead: 832,
            ack_every: 2,
            delayed_ack: Time::from_millis(200),
            ack_patience: Time::from_millis(40),
            quick_acks: 16,
            compresses_acks: true,
            ack_rules: AckRules::Linux,
            nagle: Nagle::Minshall,
            half_window_mss: true,
            bursts: true,
            repeats_only_open: true,
            ..Config::newreno_ns2()
        }
    }

    /// A guest of the papers' testbeds: Ubuntu 14.04 with Linux 3.18. Losses are found by counting
    /// SACKed segments, with early retransmit and tail loss probes of at least 10 ms; a receive
    /// buffer of 6 MB, of which half is offered, makes the window scale 7.
    ///
    /// Where it differs from Linux 3.18, in addition to what [`Config::linux`] lists: RFC 6675's count in
    /// place of FACK's; early retransmit is not switched off by reordering; windows are in bytes.
    pub const fn linux_3_18() -> Config {
        Config {
            counting: Counting::Bytes(u8::MAX),
            window_scale: Some(7),
            receive_buffer: 3 << 20,
            initial_receive_window: 29200,
            receive_memory: 187_520,
            segment_overhead: 0,
            compresses_acks: false,
            ack_rules: AckRules::Linux318,
            bursts: false,
            coarse_timers: false,
            recovery: Recovery::Sack,
            early_retransmit: true,
            syn_linear_timeouts: 0,
            tlp_delay: Time::ZERO,
            tlp_min: Time::from_millis(10),
            ..Config::linux()
        }
    }
}
