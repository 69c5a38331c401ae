// SPDX-License-Identifier: Apache-2.0
//! What an end point shows of itself: counters, and the sender's variables.

use penstock_scenario::units::Time;

/// What one side of a connection did so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Segments with payload or FIN sent again.
    pub retransmits: u32,
    /// Times the sender entered fast recovery.
    pub fast_recoveries: u32,
    /// Retransmission timeouts of data or FIN.
    pub rtos: u32,
    /// Timeouts of a SYN or SYN-ACK.
    pub syn_timeouts: u32,
    /// Tail loss probes sent.
    pub tlp_probes: u32,
    /// Window probes sent by the persist timer.
    pub persist_probes: u32,
    /// ACKs sent because nothing came to carry them within their delay.
    pub delayed_acks: u32,
    /// Retransmissions the peer reported as needless (DSACK, RFC 2883).
    pub spurious_retransmits: u32,
    /// Window reductions by ECN.
    pub ecn_reductions: u32,
    /// Segments received that held nothing new.
    pub duplicates_received: u32,
    /// Segments received ahead of order.
    pub out_of_order_received: u32,
    /// Segments received with congestion experienced.
    pub marks_received: u32,
    /// How long timers ran that fired, microseconds, as [`Waits`] has them.
    pub(super) waits_us: [u32; 4],
}

/// Indices of [`Stats::waits_us`].
pub(super) mod wait {
    pub const RTO: usize = 0;
    pub const SYN: usize = 1;
    pub const WINDOW: usize = 2;
    pub const ACK: usize = 3;
}

impl Stats {
    /// Adds to one of the waits.
    pub(super) fn add_wait(&mut self, which: usize, wait: Time) {
        let micros = wait.as_micros().try_into().unwrap_or(u32::MAX);
        self.waits_us[which] = self.waits_us[which].saturating_add(micros);
    }

    /// How long timers ran that fired.
    pub fn waits(&self) -> Waits {
        let [rto, syn, window, ack] = self.waits_us.map(|us| Time::from_micros(us.into()));
        Waits {
            rto,
            syn,
            window,
            ack,
            ..Waits::default()
        }
    }
}

/// How long one side of a connection waited for timers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waits {
    /// Before retransmission timeouts of data or FIN, from the last progress on.
    pub rto: Time,
    /// Before timeouts of a SYN or SYN-ACK.
    pub syn: Time,
    /// With data to send and nothing in flight, for want of a window.
    pub window: Time,
    /// With ACKs that nothing came to carry, from the last arrival on.
    pub ack: Time,
    /// With a request that the server's application had not answered: counted there, not by TCP.
    pub server: Time,
}

impl Waits {
    /// The sum of both.
    pub fn plus(&self, other: &Waits) -> Waits {
        Waits {
            rto: self.rto + other.rto,
            syn: self.syn + other.syn,
            window: self.window + other.window,
            ack: self.ack + other.ack,
            server: self.server + other.server,
        }
    }

    /// All of them together.
    pub fn sum(&self) -> Time {
        self.rto + self.syn + self.window + self.ack + self.server
    }

    /// What was waited since `before`. A timer that still ran then may have been stopped.
    pub fn since(&self, before: &Waits) -> Waits {
        Waits {
            rto: self.rto.saturating_sub(before.rto),
            syn: self.syn.saturating_sub(before.syn),
            window: self.window.saturating_sub(before.window),
            ack: self.ack.saturating_sub(before.ack),
            server: self.server.saturating_sub(before.server),
        }
    }
}

/// The sender's variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Info {
    /// Congestion window, bytes.
    pub cwnd: u32,
    /// Slow-start threshold, bytes.
    pub ssthresh: u32,
    /// Payload of a full segment in force, bytes.
    pub mss: u16,
    /// The window the peer offers, bytes.
    pub send_window: u32,
    /// Sent and not acknowledged, bytes.
    pub in_flight: u32,
    /// Whether a loss is being repaired, after duplicate ACKs or a timeout.
    pub is_recovering: bool,
    /// Retransmission timeout in force, back-off included.
    pub rto: Time,
}
