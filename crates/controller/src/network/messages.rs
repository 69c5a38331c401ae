// SPDX-License-Identifier: Apache-2.0
//! Messages of switches.

use super::{Connection, Controller, SETTLE_NS};
use crate::fabric::Place;
use crate::openflow::{Error, Header, Message, PortChange, Role, Version, failure};
use crate::rules::Reason;
use crate::switch::Writes;
use penstock_linux::note;

/// Time after which rules that a switch refused are written again.
const RETRY_NS: u64 = 10_000_000_000;

impl Controller {
    pub(super) fn on_message(
        &mut self,
        connection: Connection,
        header: Header,
        body: &[u8],
        now_ns: u64,
    ) -> Result<(), Error> {
        let Some(switch) = self.switches.get_mut(&connection) else {
            return Ok(());
        };
        let version = switch.version.unwrap_or(Version::V13);
        match Message::read(version, header, body)? {
            Message::Hello(Some(version)) if switch.version.is_none() => {
                switch.version = Some(version);
                switch.out.set_version(version);
                switch.out.features();
            }
            Message::Hello(_) if switch.version.is_none() => {
                return Err(Error::Version(header.version));
            }
            Message::EchoRequest(data) => switch.out.echo_reply(header.xid, data),
            Message::Features { auxiliary, .. } if auxiliary != 0 => {
                return Err(Error::Auxiliary(auxiliary));
            }
            Message::Features { datapath, .. } => {
                switch.datapath = Some(datapath);
                switch.ask(self.writes);
            }
            Message::Routes(routes, _) => {
                switch.remember(routes);
            }
            Message::Ports(ports, more) => {
                switch
                    .ports
                    .extend(ports.into_iter().map(|port| (port.number, port)));
                switch.is_ready |= !more;
                self.on_ports(connection, now_ns);
            }
            Message::PortStatus(change, port) => {
                match change {
                    PortChange::Deleted => switch.ports.remove(&port.number),
                    _ => switch.ports.insert(port.number, port),
                };
                self.on_ports(connection, now_ns);
            }
            Message::Role(role, election) => self.on_role(connection, role, election, now_ns),
            Message::Error {
                kind,
                code,
                request,
            } => self.on_error(connection, header.xid, (kind, code), request, now_ns)?,
            Message::Barrier => switch.on_barrier(header.xid),
            Message::PacketIn {
                cookie,
                in_port: Some(in_port),
                data,
                ..
            } => {
                if let (Some(datapath), Some(reason)) = (switch.datapath, Reason::of(cookie)) {
                    let place = Place {
                        datapath,
                        port: in_port,
                    };
                    self.on_packet(place, reason, data, now_ns);
                }
            }
            _ => (),
        }
        Ok(())
    }

    /// A request failed.
    fn on_error(
        &mut self,
        connection: Connection,
        xid: u32,
        (kind, code): (u16, u16),
        request: Option<u8>,
        now_ns: u64,
    ) -> Result<(), Error> {
        let Some(switch) = self.switches.get_mut(&connection) else {
            return Ok(());
        };
        let datapath = switch.datapath.unwrap_or_default();
        match (kind, code) {
            (failure::BAD_REQUEST, failure::IS_SLAVE) => {
                // Of the one that took the role, there may be no frames, as without links.
                let was_ours = std::mem::take(&mut switch.is_ours);
                self.other_ns = if was_ours { now_ns } else { self.other_ns };
            }
            _ if failure::is_of_rule(kind, request) => {
                if switch.on_refusal(kind, code) {
                    note!(
                        "penstock-controller: switch {datapath:016x} refuses rules: error type {kind}, code {code}"
                    );
                }
                self.retry_ns.get_or_insert(now_ns + RETRY_NS);
            }
            (failure::ROLE_REQUEST_FAILED, failure::STALE) => switch.role(Role::Same, 0),
            (failure::ROLE_REQUEST_FAILED | failure::BAD_REQUEST, failure::UNSUPPORTED)
                if switch.role == Some(xid) =>
            {
                // It has no roles: it takes the rules of each.
                if self.writes == Writes::One {
                    return Err(Error::Roles);
                }
                self.on_role(connection, Role::Equal, 0, now_ns);
            }
            _ if switch.on_failure() => note!(
                "penstock-controller: switch {datapath:016x} refuses a request: error type {kind}, code {code}"
            ),
            _ => (),
        }
        Ok(())
    }

    fn on_role(&mut self, connection: Connection, role: Role, election: u64, now_ns: u64) {
        let Some(switch) = self.switches.get_mut(&connection) else {
            return;
        };
        if self.writes == Writes::One && role != Role::Master && election > switch.election {
            self.other_ns = now_ns; // another one was elected
        }
        if switch.on_role(self.writes, role, election) {
            self.rules_ns.get_or_insert(now_ns + SETTLE_NS);
        }
    }

    fn on_ports(&mut self, connection: Connection, now_ns: u64) {
        let Some(switch) = self.switches.get(&connection).filter(|one| one.is_ready) else {
            return;
        };
        let Some(datapath) = switch.datapath else {
            return;
        };
        self.fabric
            .set_ports(datapath, switch.usable_ports().collect(), now_ns);
        for (from, to) in &self.links {
            self.fabric.add_link(*from, *to); // it stays if both ports are there
        }
        self.paths.clear();
        for (place, params) in &self.watched {
            if place.datapath == datapath {
                self.incast.watch(*place, params);
            }
        }
        self.rules_ns.get_or_insert(now_ns + SETTLE_NS);
        // Not at once: a guest may have its link go up and down all the time.
        self.lldp_ns = self.lldp_ns.min(now_ns + SETTLE_NS);
    }
}
