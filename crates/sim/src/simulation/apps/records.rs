// SPDX-License-Identifier: Apache-2.0
//! What is recorded of each transfer.

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
        }
    }

    /// Adds what the sender's end counted, where that is in another shard.
    pub(super) fn add_sent(&mut self, sent: &TransferCounters) {
        self.retransmits += sent.retransmits;
        self.timeouts += sent.timeouts;
        self.syn_timeouts += sent.syn_timeouts;
    }
}
