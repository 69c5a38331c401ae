// SPDX-License-Identifier: Apache-2.0
//! UDP background traffic: as the simulation's, sent by sockets.

use super::Player;
use crate::failure::{Failure, because};
use crate::hosts::Host;
use crate::socket::Socket;
use penstock_scenario::units::Time;
use penstock_sim::simulation::{Action, Datagrams, TrafficSink};
use std::net::{IpAddr, SocketAddr};

/// A source of datagrams.
pub struct Source {
    from: u32,
    to: u32,
    timing: Datagrams,
    /// The sender, and the receiver that is never read: what comes is dropped there, unanswered.
    sockets: Option<(Socket, Socket)>,
}

impl Source {
    /// One that has not sent yet.
    pub fn new(from: u32, to: u32, timing: Datagrams) -> Source {
        Source {
            from,
            to,
            timing,
            sockets: None,
        }
    }

    /// Time from the start to the first datagram.
    pub fn first_gap(&mut self) -> Time {
        self.timing.first_gap()
    }
}

/// IP and UDP headers, bytes.
const fn headers(address: &IpAddr) -> usize {
    match address {
        IpAddr::V4(_) => 28,
        IpAddr::V6(_) => 48,
    }
}

impl Player {
    /// Sends the datagram that was due; a late source sends all that it owes.
    pub(super) fn send_datagram(&mut self, due: Time, index: u32) -> Result<(), Failure> {
        let (from, to, size) = {
            let source = &self.datagrams[index as usize];
            if due >= source.timing.stop {
                return Ok(());
            }
            (
                self.host(source.from),
                self.host(source.to),
                usize::from(source.timing.size),
            )
        };
        let (from, to) = (from?, to?);
        if self.datagrams[index as usize].sockets.is_none() {
            let opened = self.open_datagrams(from, to);
            self.datagrams[index as usize].sockets = Some(opened?);
        }
        let source = &mut self.datagrams[index as usize];
        let payload = size.saturating_sub(headers(&from.address)).max(1);
        if let Some((sender, _)) = &source.sockets {
            // A datagram that the host's queue has no room for is dropped, as at any other queue.
            let _ = sender.send(&self.room[..payload]);
        }
        let next = due.saturating_add(source.timing.next_gap());
        self.at(next, Action::Datagram(index));
        Ok(())
    }

    fn open_datagrams(&mut self, from: Host, to: Host) -> Result<(Socket, Socket), Failure> {
        let udp = || because("UDP socket");
        self.namespaces.enter(to.netns)?;
        let sink = Socket::udp(&to.address).map_err(udp())?;
        sink.bind(&SocketAddr::new(to.address, 0))
            .map_err(because(format!("binding to {}", to.address)))?;
        let address = sink.local().map_err(udp())?;
        self.namespaces.enter(from.netns)?;
        let sender = Socket::udp(&from.address).map_err(udp())?;
        sender
            .bind(&SocketAddr::new(from.address, 0))
            .map_err(because(format!("binding to {}", from.address)))?;
        sender
            .connect(&address)
            .map_err(because(format!("{} to {address}", from.address)))?;
        Ok((sender, sink))
    }
}
