// SPDX-License-Identifier: Apache-2.0
//! What the clients do, as in the simulation: begin, answer, complete, stop.

use super::connection::{ACCEPTED, Connection, OPENER};
use super::{Listener, Player};
use crate::failure::{Failure, because};
use crate::hosts::Host;
use crate::socket::Socket;
use penstock_scenario::units::Time;
use penstock_sim::simulation::{
    Action, Due, ENDLESS, KernelTimes, Record, ServerThink, TrafficSink, TransferCounters, WaitsOf,
};
use std::io;
use std::net::SocketAddr;

impl Player {
    /// The client starts its next transfer, on a new connection if it has none. One that was
    /// stopped before has none left.
    pub(super) fn begin(&mut self, index: u32) -> Result<(), Failure> {
        let client = &self.clients[index as usize];
        if client.remaining == 0 {
            return Ok(());
        }
        let profile = &self.profiles[client.profile as usize];
        let (traffic, number) = (profile.traffic, client.begun);
        let request = profile.request.as_ref();
        let request = request.map(|request| request.draw(index, number));
        let sizes = profile.sizes.as_ref().filter(|_| number > 0);
        let bytes = sizes.map_or(client.transfer.bytes, |sizes| sizes.draw(index, number));
        let is_last = client.remaining == 1 || profile.reconnects;
        let transfer = client.transfer;
        // A socket is made before the clock is read: the time begins with the SYN.
        let opening = match client.connection {
            Some(_) => None,
            None => Some(self.prepare_connection(index)?),
        };
        let now = self.now();
        let client = &mut self.clients[index as usize];
        client.remaining -= 1;
        client.begun += 1;
        client.transfer.bytes = bytes;
        client.record = self.records.len() as u32;
        self.records.push(Record {
            traffic,
            number: client.number,
            source: transfer.source,
            destination: transfer.destination,
            start: now,
            end: None,
            stopped: None,
            bytes,
            total: TransferCounters::default(),
            before: TransferCounters::default(),
            silence: Time::ZERO,
            request,
            is_opening: opening.is_some(),
            ideal: None,
            waits_of: WaitsOf::Kernel(KernelTimes::default()),
        });
        if let Some((socket, listener)) = opening
            && let Err(error) = self.connect(index, socket, listener)
        {
            return self.refused(&error);
        }
        let client = &mut self.clients[index as usize];
        let min_rto = self.min_rto[client.profile as usize];
        let Some(number) = client.connection else {
            return Ok(());
        };
        let Some(connection) = self.connections.get_mut(number) else {
            return Ok(());
        };
        client.base = connection.counters(min_rto);
        if connection.ends[OPENER].handshake.is_none() {
            client.base = TransferCounters::default();
        }
        client.times_before = connection.kernel_times();
        client.server_think = None;
        connection.last_arrival = now;
        connection.silence = Time::ZERO;
        let receiver = connection.receiver();
        let receiver = &mut connection.ends[receiver];
        receiver.goal = receiver.read.saturating_add(bytes);
        match request {
            None => {
                let sender = &mut connection.ends[OPENER];
                sender.unsent += bytes;
                sender.closes = is_last && bytes < ENDLESS;
            }
            Some(request) => {
                let sender = &mut connection.ends[ACCEPTED];
                sender.goal = sender.read + request;
                connection.ends[OPENER].unsent += request;
            }
        }
        self.flush(number, OPENER);
        Ok(())
    }

    /// A host that HOSTS.json names.
    pub(super) fn host(&self, index: u32) -> Result<Host, Failure> {
        let host = self.places.hosts.get(index as usize).copied().flatten();
        host.ok_or_else(|| Failure::Because(format!("host number {index} is in no namespace")))
    }

    /// The hosts that open and that listen for a client.
    fn roles(&self, index: u32) -> (u32, u32) {
        let client = &self.clients[index as usize];
        let transfer = client.transfer;
        match self.profiles[client.profile as usize].pulls() {
            true => (transfer.destination, transfer.source),
            false => (transfer.source, transfer.destination),
        }
    }

    /// The number of the listener that the client's connections go to, made if there is none.
    pub(super) fn listener_for(&mut self, index: u32) -> Result<u32, Failure> {
        let (_, server) = self.roles(index);
        let profile = self.clients[index as usize].profile;
        if let Some(number) = self.listening.get(&(server, profile)) {
            return Ok(*number);
        }
        let host = self.host(server)?;
        self.namespaces.enter(host.netns)?;
        let number = self.listeners.len() as u32;
        let open = || -> io::Result<Listener> {
            let socket = Socket::tcp(&host.address)?;
            self.options[profile as usize].apply(&socket)?;
            socket.bind(&SocketAddr::new(host.address, 0))?;
            socket.listen()?;
            self.epoll
                .watch(&socket, super::wire::LISTENER | u64::from(number))?;
            let address = socket.local()?;
            Ok(Listener { socket, address })
        };
        let listener = open().map_err(because(format!("listening at {}", host.address)))?;
        self.listeners.push(listener);
        self.listening.insert((server, profile), number);
        Ok(number)
    }

    /// A socket at the client's opening host, and the listener it will go to.
    fn prepare_connection(&mut self, index: u32) -> Result<(Socket, u32), Failure> {
        let listener = self.listener_for(index)?;
        let (opener, _) = self.roles(index);
        let profile = self.clients[index as usize].profile;
        let host = self.host(opener)?;
        self.namespaces.enter(host.netns)?;
        let prepare = || -> io::Result<Socket> {
            let socket = Socket::tcp(&host.address)?;
            self.options[profile as usize].apply(&socket)?;
            socket.bind_address(host.address)?;
            Ok(socket)
        };
        let socket = prepare().map_err(because(format!("a socket at {}", host.address)))?;
        Ok((socket, listener))
    }

    fn connect(&mut self, index: u32, socket: Socket, listener: u32) -> io::Result<()> {
        socket.connect(&self.listeners[listener as usize].address)?;
        let opened_from = socket.local()?;
        let client = &mut self.clients[index as usize];
        let sender = match self.profiles[client.profile as usize].pulls() {
            true => ACCEPTED,
            false => OPENER,
        };
        let connection = Connection::new(index, listener, socket, opened_from, sender);
        let number = self.connections.insert(connection);
        client.connection = Some(number);
        self.expected.insert((listener, opened_from), number);
        if let Some(connection) = self.connections.get(number)
            && let Some(socket) = &connection.ends[OPENER].socket
        {
            self.epoll
                .watch(socket, super::wire::token(number, OPENER))?;
        }
        Ok(())
    }

    /// A connection could not even be tried: for want of ports that ends the run, else the transfer
    /// stays unfinished.
    fn refused(&mut self, error: &io::Error) -> Result<(), Failure> {
        if error.raw_os_error() == Some(libc::EADDRNOTAVAIL) {
            let what = "all ports between two hosts are in use or in TIME-WAIT; use more hosts, or set \
                        net.ipv4.ip_local_port_range='1024 65535' and net.ipv4.tcp_tw_reuse=1 in their \
                        namespaces";
            return Err(Failure::Because(what.to_owned()));
        }
        self.note_broken(error);
        Ok(())
    }

    /// The request has arrived at the server: it answers, now or when it has thought.
    pub(super) fn receive_request(&mut self, now: Time, index: u32) {
        let client = &mut self.clients[index as usize];
        let profile = &self.profiles[client.profile as usize];
        let think = profile.server_think.draw(index, client.begun - 1);
        if think == 0 {
            return self.answer(index);
        }
        let until = now.saturating_add(Time(think));
        client.server_think = Some(ServerThink { from: now, until });
        self.at(until, Action::Answer(index));
    }

    /// The server has thought until `due`: it answers, unless the transfer is over.
    pub(super) fn end_think(&mut self, due: Time, index: u32) {
        let now = self.now();
        let think = self.clients[index as usize].server_think.as_mut();
        if let Some(think) = think.filter(|think| think.until == due) {
            // The schedule may be late.
            think.until = now;
            self.answer(index);
        }
    }

    fn answer(&mut self, index: u32) {
        let client = &self.clients[index as usize];
        let Some(number) = client.connection else {
            return;
        };
        let Some(connection) = self.connections.get_mut(number) else {
            return;
        };
        let sender = &mut connection.ends[ACCEPTED];
        sender.unsent += client.transfer.bytes;
        sender.closes = client.remaining == 0 || self.profiles[client.profile as usize].reconnects;
        self.flush(number, ACCEPTED);
    }

    /// The last byte of the transfer is with the receiving application.
    pub(super) fn complete(&mut self, now: Time, index: u32) {
        self.settle(now, index);
        self.finished += 1;
        let client = &mut self.clients[index as usize];
        self.records[client.record as usize].end = Some(now);
        if client.awaited > 0 {
            client.awaited -= 1;
            self.awaited -= 1;
        }
        let profile = &self.profiles[client.profile as usize];
        if profile.reconnects {
            client.connection = None;
        }
        if client.ticket != u32::MAX {
            // Its gate opens as soon as the schedule has its turn.
            let ticket = std::mem::replace(&mut client.ticket, u32::MAX);
            self.at(now, Action::Gate(ticket));
        } else if client.remaining > 0 {
            let begun = client.begun;
            let think = profile.think.draw(index, begun);
            let mut next = now.saturating_add(Time(think));
            if let Some(gap) = &profile.barrier {
                for all in self.barriers[client.profile as usize].arrive(index) {
                    self.schedule.add(next, Action::Begin(all));
                    next = next.saturating_add(Time(gap.draw(all, begun)));
                }
            } else {
                self.at(next, Action::Begin(index));
            }
        }
    }

    /// Begins and schedules what is due in jobs. `scheduled`: when it was due, and when it is done.
    pub(super) fn follow(
        &mut self,
        (scheduled, now): (Time, Time),
        due: Vec<Due>,
    ) -> Result<(), Failure> {
        for due in due {
            match due {
                Due::At(time, action) => self.at(time, action),
                Due::Begin {
                    ticket,
                    profile,
                    number,
                    transfer,
                    client,
                    is_shared,
                } => {
                    let index = client.unwrap_or_else(|| {
                        let index = self.add_client(profile, number, transfer, 0);
                        self.jobs.set_client(ticket, index);
                        index
                    });
                    let client = &mut self.clients[index as usize];
                    client.number = number;
                    client.transfer = transfer;
                    client.ticket = ticket;
                    // A shared connection never has its last transfer.
                    client.remaining = if is_shared { 2 } else { 1 };
                    client.awaited += 1;
                    self.awaited += 1;
                    self.lateness.note(scheduled, now);
                    self.begin(index)?;
                }
            }
        }
        Ok(())
    }

    /// The client ends, finished or not.
    pub(super) fn stop(&mut self, index: u32) {
        let now = self.now();
        self.settle(now, index);
        let client = &mut self.clients[index as usize];
        client.remaining = 0;
        self.awaited -= u64::from(std::mem::take(&mut client.awaited));
        if let Some(number) = client.connection.take() {
            self.records[client.record as usize].stopped = Some(now);
            self.abandon(number);
        }
    }

    /// Brings the record of the client's transfer up to date.
    pub(super) fn settle(&mut self, now: Time, index: u32) {
        let client = &self.clients[index as usize];
        let connection = client.connection.and_then(|c| self.connections.get(c));
        let (Some(connection), Some(record)) =
            (connection, self.records.get_mut(client.record as usize))
        else {
            return;
        };
        if record.end.is_some() {
            return;
        }
        let min_rto = self.min_rto[client.profile as usize];
        record.total = since(&connection.counters(min_rto), &client.base);
        if let Some(think) = &client.server_think {
            record.total.waits.server = think.lasted(now);
        }
        let times = connection.kernel_times().since(&client.times_before);
        record.waits_of = WaitsOf::Kernel(times);
        let waiting = now.saturating_sub(connection.last_arrival);
        record.silence = connection.silence.max(waiting);
    }

    pub(super) fn settle_all(&mut self) {
        let now = self.now();
        for index in 0..self.clients.len() as u32 {
            self.settle(now, index);
        }
    }

    /// Counts a connection that failed without being stopped by the scenario.
    pub(super) fn note_broken(&mut self, error: &io::Error) {
        self.broken.count += 1;
        self.broken.first.get_or_insert_with(|| error.to_string());
    }

    /// Closes both ends at once: what is still on its way arrives too late.
    pub(super) fn abandon(&mut self, number: u32) {
        if let Some(connection) = self.connections.remove(number) {
            self.expected
                .remove(&(connection.listener, connection.opened_from));
            // The sender's RST reaches a receiver that still exists, as in the simulation.
            let (sender, receiver) = (connection.sender, connection.receiver());
            let mut ends = connection.ends.map(|end| end.socket);
            for end in [sender, receiver] {
                if let Some(socket) = ends[end].take() {
                    socket.reset();
                }
            }
        }
    }
}

/// What was counted since `before`, never below 0: a closed end reports 0.
fn since(total: &TransferCounters, before: &TransferCounters) -> TransferCounters {
    TransferCounters {
        delivered: total.delivered.saturating_sub(before.delivered),
        packets: total.packets.saturating_sub(before.packets),
        retransmits: total.retransmits.saturating_sub(before.retransmits),
        timeouts: total.timeouts.saturating_sub(before.timeouts),
        syn_timeouts: total.syn_timeouts.saturating_sub(before.syn_timeouts),
        drops: 0,
        waits: total.waits.since(&before.waits),
    }
}
