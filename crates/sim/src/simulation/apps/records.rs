// SPDX-License-Identifier: Apache-2.0
//! What is recorded of each transfer.

use crate::tcp::Waits;
use penstock_scenario::units::Time;

/// One transfer: a row in the table of flows.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// Index of the traffic.
    pub traffic: u32,
    /// The client's number within the traffic.
    pub number: u32,
    /// Host that sends.
    pub source: u32,
    /// Host that receives.
    pub destination: u32,
    /// When the connection was opened, or the request made on an open one.
    pub start: Time,
    /// When the receiver's application had the last byte; `None`: unfinished.
    pub end: Option<Time>,
    /// When it was stopped, unfinished.
    pub stopped: Option<Time>,
    /// Bytes to move; [`ENDLESS`](super::ENDLESS) for a flow without end.
    pub bytes: u64,
    /// What has been counted of it, from its start.
    pub total: TransferCounters,
    /// The same at the start of the measured time, zero for transfers that began later.
    pub before: TransferCounters,
    /// Longest time between two data packets at the receiver, its start and end included.
    pub silence: Time,
    /// Bytes that it was requested with; `None`: it was not.
    pub request: Option<u64>,
    /// Whether it opened a connection.
    pub is_opening: bool,
    /// The least that it would have taken on the empty network; `None`: unknown.
    pub ideal: Option<Time>,
    /// Who counted its waits.
    pub waits_of: WaitsOf,
}

/// Who counts how long transfers wait, and hence what is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WaitsOf {
    /// The simulator: all of [`Waits`].
    #[default]
    Simulator,
    /// Linux: those before timeouts, and what else its TCP_INFO has.
    Kernel(KernelTimes),
    /// No program counted them.
    Uncounted,
}

/// What a kernel counts of the sender's time during a transfer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelTimes {
    /// With data in flight (`tcpi_busy_time`).
    pub busy: Time,
    /// Of it limited by the window that the receiver offers (`tcpi_rwnd_limited`).
    pub receive_window: Time,
    /// Of it limited by the send buffer (`tcpi_sndbuf_limited`).
    pub send_buffer: Time,
}

impl KernelTimes {
    /// What was counted since `before`.
    pub fn since(&self, before: &KernelTimes) -> KernelTimes {
        KernelTimes {
            busy: self.busy.saturating_sub(before.busy),
            receive_window: self.receive_window.saturating_sub(before.receive_window),
            send_buffer: self.send_buffer.saturating_sub(before.send_buffer),
        }
    }
}

/// Counts of one transfer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransferCounters {
    /// Bytes handed in order to the receiver's application.
    pub delivered: u64,
    /// Data packets that reached the receiver.
    pub packets: u64,
    /// Segments sent again.
    pub retransmits: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Handshakes that timed out.
    pub syn_timeouts: u64,
    /// Packets of it lost, either direction.
    pub drops: u64,
    /// How long it waited for timers, either end.
    pub waits: Waits,
}

impl TransferCounters {
    /// What was counted since `before`.
    pub fn since(&self, before: &TransferCounters) -> TransferCounters {
        TransferCounters {
            delivered: self.delivered - before.delivered,
            packets: self.packets - before.packets,
            retransmits: self.retransmits - before.retransmits,
            timeouts: self.timeouts - before.timeouts,
            syn_timeouts: self.syn_timeouts - before.syn_timeouts,
            drops: self.drops - before.drops,
            waits: self.waits.since(&before.waits),
        }
    }

    /// Adds what the sender's end counted, where that is in another shard.
    pub(super) fn add_sent(&mut self, sent: &TransferCounters) {
        self.retransmits += sent.retransmits;
        self.timeouts += sent.timeouts;
        self.syn_timeouts += sent.syn_timeouts;
        self.waits = self.waits.plus(&sent.waits);
    }
}
