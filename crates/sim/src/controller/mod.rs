// SPDX-License-Identifier: Apache-2.0
//! The controller seam: what does the network as a whole know?
//!
//! A controller gets copies of SYN and FIN from the switches, looks at queues, and speaks to shims
//! below the hosts, which see each ACK before the guest does.

mod channel;
mod flow_counts;
mod sicc;

pub use channel::{Channel, FRAME_BYTES, HEADER_BYTES, Way};
pub use flow_counts::FlowCounts;
pub use sicc::{QueueReports, Sicc};

use crate::network::{Network, Report};
use crate::packet::{FlowId, Packet};
use penstock_scenario::units::Time;
use serde::Serialize;

/// What a controller and its shims did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ControllerCounters {
    /// Copies of SYN and FIN that reached the controller.
    pub reports_received: u64,
    /// Reports of a switch's queues, lost ones included.
    pub queue_reports: u64,
    /// Times that the controller found incast ahead at a port.
    pub incasts: u64,
    /// Messages sent to shims, lost ones included.
    pub messages_sent: u64,
    /// Reports and messages that were lost.
    pub messages_lost: u64,
    /// Bytes of all messages to the controller, lost ones included.
    pub bytes_to_controller: u64,
    /// Bytes of all messages from the controller, likewise.
    pub bytes_from_controller: u64,
    /// ACKs whose window a shim lowered.
    pub acks_rewritten: u64,
}

/// A controller with its shims.
pub trait Controller: Send {
    /// A connection is about to open; its data goes from host `source` to host `destination`.
    fn on_connect(&mut self, data: FlowId, source: u32, destination: u32);

    /// A switch copies a SYN or FIN to the controller.
    fn on_report(&mut self, report: &Report);

    /// A packet is about to be delivered; the shim below the host may lower its window.
    fn on_delivery(&mut self, now: Time, packet: &mut Packet);

    /// When it has something to do next.
    fn next(&self) -> Time;

    /// It is [`Controller::next`]'s time.
    fn act(&mut self, now: Time, network: &mut Network);

    /// What it did so far.
    fn counters(&self) -> ControllerCounters;
}
