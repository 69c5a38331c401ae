// SPDX-License-Identifier: Apache-2.0
//! The queue seam: what happens to a packet that wants to leave by this port?
//!
//! Two kinds of policy answer. An [`Admission`] decides when the packet arrives at a FIFO port: the
//! port then knows at once when the packet will have left, and one event carries it a whole hop. A
//! [`Scheduler`] stores the packets itself and is asked for one whenever the transmitter is free.

pub mod codel;
pub mod drr;
mod fair;
pub mod fifo;
#[cfg(test)]
mod fixtures;
pub mod hcf;
mod limit;
mod longest;
pub mod pie;
pub mod red;
#[cfg(test)]
mod scheduler_tests;
pub mod sfq;
pub mod threshold;

pub use limit::Limit;

use crate::packet::Packet;
use crate::rng::Rng;
use penstock_scenario::units::Time;

/// Why a packet was lost; the same names in every table and report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum DropReason {
    /// The buffer was full.
    Full,
    /// RED or PIE dropped early, at random.
    Early,
    /// RED's average is beyond its highest threshold (forced drop).
    Forced,
    /// CoDel dropped at departure.
    Delay,
    /// The longest queue gave way to another flow (SFQ, DRR).
    Overlimit,
    /// The space above sigma is kept for SYN, FIN and ACK (HSCC §III-B); of some packets the payload
    /// alone is lost.
    Reserved,
    /// Lost at random on the link.
    Lossy,
    /// The link was down.
    Down,
}

impl DropReason {
    /// All reasons, in the order of their numbers.
    pub const ALL: [DropReason; 8] = [
        DropReason::Full,
        DropReason::Early,
        DropReason::Forced,
        DropReason::Delay,
        DropReason::Overlimit,
        DropReason::Reserved,
        DropReason::Lossy,
        DropReason::Down,
    ];

    /// Its name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            DropReason::Full => "full",
            DropReason::Early => "early",
            DropReason::Forced => "forced",
            DropReason::Delay => "delay",
            DropReason::Overlimit => "overlimit",
            DropReason::Reserved => "reserved",
            DropReason::Lossy => "lossy",
            DropReason::Down => "down",
        }
    }
}

/// What becomes of an arriving packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Queue it.
    Pass,
    /// Queue it, marked congestion experienced. Only for packets that are ECN-capable.
    Mark,
    /// Lose it.
    Drop(DropReason),
}

/// A FIFO port as a packet finds it.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// The instant of arrival.
    pub now: Time,
    /// Bytes queued or in transmission ahead of the packet.
    pub backlog_bytes: u64,
    /// Whole packets waiting ahead of it, the one in transmission not counted.
    pub backlog_packets: u32,
    /// When the port will have sent all that is ahead; in the past if it is idle.
    pub free_at: Time,
}

/// A policy of a FIFO port (RED, threshold marking, PIE). The port itself enforces the buffer's size.
///
/// A complete policy, explained in docs/adding-a-scheme.md:
///
/// ```
/// use penstock_sim::packet::Packet;
/// use penstock_sim::queue::{Admission, Arrival, DropReason, Verdict};
/// use penstock_sim::rng::Rng;
///
/// /// Keeps the buffer beyond `data_bytes` for SYN, FIN and pure ACKs.
/// struct Reserve {
///     data_bytes: u64,
/// }
///
/// impl Admission for Reserve {
///     fn admit(&mut self, port: &Arrival, packet: &Packet, _rng: &mut Rng) -> Verdict {
///         let queue_with_it = port.backlog_bytes + u64::from(packet.size());
///         if packet.payload > 0 && queue_with_it > self.data_bytes {
///             Verdict::Drop(DropReason::Reserved)
///         } else {
///             Verdict::Pass
///         }
///     }
/// }
///
/// use penstock_sim::packet::FlowId;
/// use penstock_scenario::units::Time;
///
/// let mut policy = Reserve { data_bytes: 100_000 };
/// let mut verdict = |payload, backlog_bytes| {
///     let now = Time::ZERO;
///     let port = Arrival { now, backlog_bytes, backlog_packets: 0, free_at: now };
///     let packet = Packet {
///         flow: FlowId(0), seq: 0, ack: 0, ts_val: 0, ts_ecr: 0, options: 0,
///         payload, window: 0, flags: 0, header: 40, hop: 0,
///     };
///     policy.admit(&port, &packet, &mut Rng::new(1, 0))
/// };
/// assert_eq!(verdict(1460, 98_500), Verdict::Pass);
/// assert_eq!(verdict(1460, 98_501), Verdict::Drop(DropReason::Reserved));
/// assert_eq!(verdict(0, 120_000), Verdict::Pass);
/// ```
pub trait Admission: Send {
    /// Decides on `packet`, which the buffer has room for.
    fn admit(&mut self, port: &Arrival, packet: &Packet, rng: &mut Rng) -> Verdict;

    /// The port lost `packet`, for which the buffer had no room: averages must not miss it.
    fn overflow(&mut self, _port: &Arrival, _packet: &Packet) {}

    /// How often [`Admission::tick`] wants to be called; `None` for never.
    fn period(&self) -> Option<Time> {
        None
    }

    /// Periodic work (PIE's drop probability). `backlog_bytes` as in [`Arrival`].
    fn tick(&mut self, _now: Time, _backlog_bytes: u64) {}
}

/// A policy that owns its queues (CoDel, SFQ, DRR, HCF). Every packet given to it comes back
/// exactly once: from `dequeue`, or through `lost`.
pub trait Scheduler: Send {
    /// Takes a packet; what is lost by it (this one or another) is handed to `lost`.
    fn enqueue(&mut self, now: Time, packet: Packet, lost: &mut dyn FnMut(Packet, DropReason));

    /// The next packet to send; what is dropped at departure is handed to `lost`.
    fn dequeue(&mut self, now: Time, lost: &mut dyn FnMut(Packet, DropReason)) -> Option<Packet>;

    /// Bytes waiting, the packet in transmission not counted.
    fn backlog_bytes(&self) -> u64;

    /// Packets waiting.
    fn backlog_packets(&self) -> u32;

    /// Packets marked congestion experienced so far.
    fn marks(&self) -> u64 {
        0
    }

    /// How often [`Scheduler::tick`] wants to be called; `None` for never.
    fn period(&self) -> Option<Time> {
        None
    }

    /// Periodic work (HCF's fixed period).
    fn tick(&mut self, _now: Time) {}
}
