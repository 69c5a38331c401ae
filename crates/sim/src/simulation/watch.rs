// SPDX-License-Identifier: Apache-2.0
//! What senders do over time, recorded where a scenario asks for a port's packets.

use crate::packet::FlowId;
use crate::tcp::{Info, Stats};
use penstock_scenario::units::Time;

/// What happened at a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Happening {
    /// An ACK arrived, or a timer fired: the sender's variables now.
    Window {
        /// Congestion window, bytes.
        cwnd: u32,
        /// Window that the peer offers, bytes.
        window: u32,
        /// Sent and not acknowledged, bytes.
        in_flight: u32,
    },
    /// A retransmission timeout of data or FIN.
    Rto,
    /// A timeout of SYN or SYN-ACK.
    SynTimeout,
    /// A tail loss probe.
    Probe,
    /// A window probe.
    WindowProbe,
    /// An ACK left as its delay was over.
    DelayedAck,
    /// A segment was sent again without a timeout.
    Retransmit,
}

/// A happening at an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostEvent {
    /// When.
    pub time: Time,
    /// The flow that the socket sends.
    pub flow: FlowId,
    /// What.
    pub what: Happening,
}

/// The happenings at all sockets, from a time on.
pub(super) struct Watch {
    from: Time,
    most: usize,
    /// Of this traffic as many again.
    traffic: Option<u32>,
    events: Vec<HostEvent>,
}

impl Watch {
    /// At most `most` events from `from` on, and then as many of `traffic`.
    pub fn new(from: Time, most: usize, traffic: Option<u32>) -> Watch {
        Watch {
            from,
            most,
            traffic,
            events: Vec::new(),
        }
    }

    /// Whether events of a socket of `traffic` are kept now.
    pub fn takes(&self, time: Time, traffic: u32) -> bool {
        let most = match self.traffic == Some(traffic) {
            true => 2 * self.most,
            false => self.most,
        };
        time >= self.from && self.events.len() < most
    }

    /// Compares a socket with what it was before something arrived or a timer fired.
    pub fn note(&mut self, time: Time, flow: FlowId, old: (Stats, Info), new: (Stats, Info)) {
        let ((before, was), (after, is)) = (old, new);
        let timeouts = [
            (before.rtos, after.rtos, Happening::Rto),
            (
                before.syn_timeouts,
                after.syn_timeouts,
                Happening::SynTimeout,
            ),
            (before.tlp_probes, after.tlp_probes, Happening::Probe),
            (
                before.persist_probes,
                after.persist_probes,
                Happening::WindowProbe,
            ),
            (
                before.delayed_acks,
                after.delayed_acks,
                Happening::DelayedAck,
            ),
        ];
        let mut is_timer = false;
        for (count, now, what) in timeouts {
            if now > count {
                is_timer = true;
                self.events.push(HostEvent { time, flow, what });
            }
        }
        if after.retransmits > before.retransmits && !is_timer {
            let what = Happening::Retransmit;
            self.events.push(HostEvent { time, flow, what });
        }
        if (was.cwnd, was.send_window, was.in_flight) != (is.cwnd, is.send_window, is.in_flight) {
            let what = Happening::Window {
                cwnd: is.cwnd,
                window: is.send_window,
                in_flight: is.in_flight,
            };
            self.events.push(HostEvent { time, flow, what });
        }
    }

    /// The events, by time.
    pub fn into_events(self) -> Vec<HostEvent> {
        self.events
    }
}
