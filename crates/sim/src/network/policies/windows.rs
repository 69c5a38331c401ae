// SPDX-License-Identifier: Apache-2.0
//! Window policies, credit and shims on the way of data and ACKs.

use super::{Place, Policies};
use crate::network::paths::Paths;
use crate::network::wires::Wires;
use crate::packet::{FlowId, Packet};
use crate::window::Credit;
use penstock_core::scheme::DataFate;
use penstock_scenario::units::Time;

impl Policies {
    /// `packet` is about to join the queue of `link`; what the window policy makes of it.
    pub(super) fn fate(
        &mut self,
        now: Time,
        link: u32,
        packet: &mut Packet,
        wires: &Wires,
        paths: &Paths,
    ) -> DataFate {
        let backlog = self.backlog_bytes(now, link, wires);
        let slot = paths.data_slot(packet.flow, packet.hop.into());
        match &mut self.ports[link as usize].window {
            Some(policy) => {
                self.flows.reserve(slot);
                policy.on_departure(now, packet, &mut self.flows, slot, backlog);
                policy.drops(packet, backlog)
            }
            None => DataFate::Passes,
        }
    }

    /// `packet` has entered by `link`, next to the port whose policy may lower its window.
    pub fn on_ack(
        &mut self,
        now: Time,
        link: u32,
        packet: &mut Packet,
        wires: &mut Wires,
        paths: &Paths,
    ) {
        let port = link ^ 1;
        let came = *packet;
        self.pass_credit(now, port, packet, wires, paths);
        let backlog = self.backlog_bytes(now, port, wires);
        let slot = paths.ack_slot(packet.flow, packet.hop.into(), port);
        if let Some(policy) = &mut self.ports[port as usize].window {
            self.flows.reserve(slot);
            policy.on_ack(now, packet, &mut self.flows, slot, backlog);
        }
        self.trace_ack(now, port, &came, packet.window, wires);
    }

    /// Records a packet that came in next to `port`, if it is the port whose packets are recorded.
    pub(super) fn trace_ack(
        &self,
        now: Time,
        port: u32,
        came: &Packet,
        window: u16,
        wires: &mut Wires,
    ) {
        if wires.is_traced(port) {
            let backlog = self.backlog_bytes(now, port, wires);
            wires.trace_ack(now, came, window, port, backlog);
        }
    }

    /// `packet` comes out of `link`, where a credit policy is.
    #[inline(never)]
    pub fn on_arrival(
        &mut self,
        now: Time,
        link: u32,
        packet: &Packet,
        wires: &mut Wires,
        paths: &Paths,
    ) {
        self.see_data(now, link, packet, wires, paths);
    }

    /// `packet` passes the credit policy of `link`, if it has one, in the direction of the data.
    #[inline]
    pub(super) fn see_data(
        &mut self,
        now: Time,
        link: u32,
        packet: &Packet,
        wires: &mut Wires,
        paths: &Paths,
    ) {
        self.with_credit(now, link, wires, paths, |credit, backlog| {
            let slot = paths.data_slot(packet.flow, packet.hop.into());
            credit.on_data(now, packet, slot, backlog);
        });
    }

    /// `packet` passes the credit policy of `port`, if it has one, in the direction of the ACKs.
    pub(super) fn pass_credit(
        &mut self,
        now: Time,
        port: u32,
        packet: &mut Packet,
        wires: &mut Wires,
        paths: &Paths,
    ) {
        self.with_credit(now, port, wires, paths, |credit, backlog| {
            let slot = paths.ack_slot(packet.flow, packet.hop.into(), port);
            credit.on_ack(now, packet, slot, backlog);
        });
    }

    /// Has the credit policy of `port`, if there is one, do something with the queue that it has, and
    /// sends the updates that follow.
    #[inline]
    pub(super) fn with_credit<T>(
        &mut self,
        now: Time,
        port: u32,
        wires: &mut Wires,
        paths: &Paths,
        act: impl FnOnce(&mut Credit, u64) -> T,
    ) -> Option<T> {
        self.ports[port as usize].credit.as_ref()?;
        let backlog = self.backlog_bytes(now, port, wires);
        let (credit, _) = self.ports[port as usize].credit.as_mut()?;
        let done = act(credit, backlog);
        self.send_updates(now, port, wires, paths);
        Some(done)
    }

    /// Sends what a credit policy has to send: from where it is, towards the senders of the data.
    fn send_updates(&mut self, now: Time, port: u32, wires: &mut Wires, paths: &Paths) {
        let Some((credit, place)) = &mut self.ports[port as usize].credit else {
            return;
        };
        let place = *place;
        let mut updates = credit.take_updates();
        let is_traced = wires.is_traced(port);
        for mut update in updates.drain(..) {
            if is_traced {
                let backlog = self.backlog_bytes(now, port, wires);
                if let Some(trace) = wires
                    .trace_at(port)
                    .filter(|trace| trace.takes(now, update.flow))
                {
                    trace.make(now, &update, backlog);
                }
            }
            match place {
                Place::Behind => self.send_on(now, port ^ 1, update, wires, paths),
                Place::Port => {
                    update.hop += 1;
                    let link = paths.step(update.flow, update.hop.into()).link();
                    self.send(now, link, update, wires, paths);
                }
            }
        }
        if let Some((credit, _)) = &mut self.ports[port as usize].credit {
            credit.reuse(updates);
        }
    }

    /// A packet passes the shim on its way up to its host.
    #[inline(never)]
    pub fn on_delivery(&mut self, packet: &mut Packet) {
        if let Some(shims) = &mut self.shims {
            shims.on_delivery(packet);
        }
    }

    /// A connection has got a number that another may have had.
    pub fn forget(&mut self, paths: &Paths, connection: FlowId) {
        let first = paths.slot(FlowId(connection.0 & !1), 0);
        let end = paths.slot(FlowId(connection.0 | 1), 0) + paths.stride();
        self.flows.forget(first..end);
    }
}
