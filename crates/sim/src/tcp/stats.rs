// SPDX-License-Identifier: Apache-2.0
//! What an end point shows of itself: counters, and the sender's variables.

use penstock_scenario::units::Time;

/// What one side of a connection did so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Segments sent, all kinds.
    pub segments_sent: u64,
    /// Payload bytes sent, retransmissions included.
    pub bytes_sent: u64,
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
    /// Whether a loss is being repaired, after duplicate ACKs or a timeout.
    pub is_recovering: bool,
    /// Retransmission timeout in force, back-off included.
    pub rto: Time,
}
