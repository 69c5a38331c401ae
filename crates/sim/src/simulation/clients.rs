// SPDX-License-Identifier: Apache-2.0
//! The applications: each client moves a number of transfers, one after the other, from one host to
//! another, over one connection or a new one each time.

use crate::packet::FlowId;
use penstock_scenario::units::Time;

/// How a client works; shared by all clients of a traffic.
#[derive(Clone, Debug)]
pub struct ClientProfile {
    /// Index of the traffic.
    pub traffic: u32,
    /// Index of the TCP configuration.
    pub config: u32,
    /// The receiver opens the connection and asks with so many bytes; `None`: the sender opens and
    /// sends unasked.
    pub request_bytes: Option<u64>,
    /// Each transfer has a connection of its own.
    pub reconnects: bool,
    /// Time between the end of a transfer and the next.
    pub think: Time,
}

/// A stream of transfers from one host to another.
#[derive(Clone, Debug)]
pub struct Client {
    /// Index of its profile.
    pub profile: u32,
    /// Its number within the traffic, from 0.
    pub number: u32,
    /// Host that sends the data.
    pub source: u32,
    /// Host that receives it.
    pub destination: u32,
    /// Bytes of one transfer.
    pub bytes: u64,
    /// Transfers not yet begun.
    pub remaining: u32,
    /// The flow that carries the data, once connected.
    pub flow: Option<FlowId>,
    /// Index of the record of the transfer under way.
    pub record: u32,
    /// What its connection had counted before this transfer.
    pub base: TransferCounters,
}

/// A transfer to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// Host that sends.
    pub source: u32,
    /// Host that receives.
    pub destination: u32,
    /// Bytes to move.
    pub bytes: u64,
}

/// Transfers that are made up as the run goes.
pub trait Generator: Send {
    /// The next transfer and its time, never earlier than the one before; `None`: no more.
    fn next(&mut self) -> Option<(Time, Transfer)>;
}

/// A generator of transfers and the transfer it will make next.
pub(super) struct Arrivals {
    /// Index of the profile that its transfers follow.
    pub profile: u32,
    pub generator: Box<dyn Generator>,
    /// Transfers begun: the number of the next.
    pub made: u32,
    pub pending: Option<Transfer>,
}

/// Endless, as a number of bytes.
pub const ENDLESS: u64 = u64::MAX / 2;

/// One transfer: what a flow of the tables is.
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
    /// Bytes to move; [`ENDLESS`] for a flow without end.
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
}
