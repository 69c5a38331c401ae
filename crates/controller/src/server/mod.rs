// SPDX-License-Identifier: Apache-2.0
//! Connections, datagrams and time for the controller, in one thread.

mod lines;
mod readers;

use crate::config::Config;
use crate::metrics;
use crate::network::{Connection, Controller};
use crate::status::Status;
use anyhow::{Context, Result};
use lines::Lines;
use mio::net::{TcpListener, TcpStream, UdpSocket};
use mio::{Events, Interest, Poll, Token};
use penstock_linux::{note, scrape};
use penstock_sdn::random;
use readers::Readers;
use std::collections::{BTreeSet, HashMap};
use std::fmt::Display;
use std::io::{ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const SWITCHES: Token = Token(0);
const AGENTS: Token = Token(1);
const STATUS: Token = Token(2);
const FIRST: usize = 3;
/// Often enough for what is due; connections wake the thread at once.
const TICK: Duration = Duration::from_millis(20);
/// Wait for what is to be sent soon: the least that epoll counts.
const SOON: Duration = Duration::from_millis(1);
/// Age at which what the metrics show is written again.
const REFRESH: Duration = Duration::from_millis(500);
/// Most switches; of a network with more, each controller has a part.
const MOST: usize = 4096;
/// A switch that reads so little is not there.
const MOST_OUTPUT_BYTES: usize = 64 << 20;
const READ_BYTES: usize = 64 << 10;
/// Most of one socket in a turn; what else it has waits for the others and for what is due.
const MOST_READS: usize = 4;
const MOST_DATAGRAMS: usize = 256;
const MOST_ACCEPTED: usize = 64;

/// A connection with a switch.
struct Peer {
    stream: TcpStream,
    address: SocketAddr,
    /// Once it is known.
    datapath: Option<u64>,
}

impl Peer {
    fn name(&self) -> String {
        match self.datapath {
            Some(datapath) => format!("switch {datapath:016x} at {}", self.address),
            None => format!("unknown switch at {}", self.address),
        }
    }
}

/// A controller that listens.
pub struct Server {
    poll: Poll,
    listener: TcpListener,
    agents: UdpSocket,
    status: Option<Readers>,
    peers: HashMap<Connection, Peer>,
    lines: Lines,
    /// The next number of a connection, with a switch or with a reader of the status.
    next: Connection,
    controller: Controller,
    begun: Instant,
    /// What the metrics show, and when it was written.
    shown: Option<(Arc<Mutex<Status>>, Instant)>,
    buffer: Vec<u8>,
    /// Sockets that may have more: epoll reports only what comes next.
    left: BTreeSet<Token>,
    /// Sockets whose connections could not be accepted, as of too many open files: at the next tick again.
    again: BTreeSet<Token>,
    /// That it could not was printed.
    has_failed: bool,
}

impl Server {
    /// Listens as configured.
    ///
    /// # Errors
    /// An address is in use, or something of the configuration cannot be used.
    pub fn new(config: &Config) -> Result<Server> {
        let controller = config.build(random()?)?;
        let poll = Poll::new().context("epoll")?;
        let mut listener = TcpListener::bind(config.openflow)
            .with_context(|| format!("openflow: {}", config.openflow))?;
        let mut agents =
            UdpSocket::bind(config.agents).with_context(|| format!("agents: {}", config.agents))?;
        let mut status = None;
        if let Some(path) = &config.status {
            let readers = Readers::listen(path);
            status = Some(readers.with_context(|| format!("status: {}", path.display()))?);
        }
        let now = Instant::now();
        let shown = match config.metrics {
            Some(address) => Some((metrics(address)?, now)),
            None => None,
        };
        let registry = poll.registry();
        registry.register(&mut listener, SWITCHES, Interest::READABLE)?;
        registry.register(&mut agents, AGENTS, Interest::READABLE)?;
        if let Some(status) = &mut status {
            registry.register(&mut status.listener, STATUS, Interest::READABLE)?;
        }
        Ok(Server {
            poll,
            listener,
            agents,
            status,
            peers: HashMap::new(),
            lines: Lines::new(now),
            next: FIRST,
            controller,
            begun: now,
            shown,
            buffer: vec![0; READ_BYTES],
            left: BTreeSet::new(),
            again: BTreeSet::new(),
            has_failed: false,
        })
    }

    /// Where switches and agents connect.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn addresses(&self) -> Result<(SocketAddr, SocketAddr)> {
        Ok((self.listener.local_addr()?, self.agents.local_addr()?))
    }

    /// Since it began; not the time of day, which jumps.
    fn now_ns(&self) -> u64 {
        self.begun.elapsed().as_nanos() as u64 + 1
    }

    /// Serves until it is asked to stop.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn run(&mut self, stop: &Arc<AtomicBool>) -> Result<()> {
        let mut events = Events::with_capacity(256);
        let (mut ticked, mut wait) = (Instant::now(), TICK);
        while !stop.load(Ordering::Relaxed) {
            let is_left = !self.left.is_empty();
            let wait_now = if is_left { Duration::ZERO } else { wait };
            match self.poll.poll(&mut events, Some(wait_now)) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                done => done.context("epoll")?,
            }
            let mut turn = std::mem::take(&mut self.left);
            turn.extend(events.iter().map(|event| event.token()));
            for token in turn {
                let is_more = match token {
                    SWITCHES => self.accept(),
                    AGENTS => self.receive()?,
                    STATUS => self.show(),
                    Token(number) if self.show_more(number) => false,
                    Token(connection) => {
                        let is_more = self.read(connection);
                        self.write(connection); // it may be writable again
                        is_more
                    }
                };
                if is_more {
                    self.left.insert(token);
                }
            }
            let is_left = self.controller.report(self.now_ns());
            wait = if is_left { SOON } else { TICK };
            for connection in self.controller.touched() {
                self.write(connection);
            }
            // What costs as much as there are switches, whatever they send.
            if ticked.elapsed() >= TICK {
                ticked = Instant::now();
                let lost = self.controller.tick(self.now_ns());
                lost.into_iter()
                    .for_each(|connection| self.close(connection, "it is silent"));
                for connection in self.controller.connections() {
                    self.write(connection);
                }
                self.publish();
                self.left.append(&mut self.again);
            }
            for (to, bytes) in self.controller.datagrams() {
                // What cannot be sent is lost, as it may be on its way.
                let _ = self.agents.send_to(&bytes, to);
            }
        }
        Ok(())
    }

    /// Shows what is known now to the readers of metrics.
    fn publish(&mut self) {
        if let Some((shown, last)) = &mut self.shown
            && last.elapsed() >= REFRESH
            && let Ok(mut shown) = shown.lock()
        {
            *shown = Status::of(&self.controller);
            *last = Instant::now();
        }
    }

    /// Returns whether there may be more, as do all that read.
    fn accept(&mut self) -> bool {
        for _ in 0..MOST_ACCEPTED {
            let (mut stream, address) = match self.listener.accept() {
                Ok(accepted) => accepted,
                Err(error) => return self.cannot_accept(SWITCHES, &error),
            };
            if self.peers.len() >= MOST {
                // It is closed, and the switch tries again.
                let line = format!("unknown switch at {address}: {MOST} are connected already");
                self.lines.print(address.ip(), line);
                continue;
            }
            let _ = stream.set_nodelay(true);
            let connection = self.next;
            let interest = Interest::READABLE | Interest::WRITABLE;
            let registry = self.poll.registry();
            if registry
                .register(&mut stream, Token(connection), interest)
                .is_ok()
            {
                self.next += 1;
                let peer = Peer {
                    stream,
                    address,
                    datapath: None,
                };
                self.peers.insert(connection, peer);
                self.controller.connect(connection, self.now_ns());
            }
        }
        true
    }

    /// Has a socket tried again, unless it has no connection.
    fn cannot_accept(&mut self, socket: Token, error: &std::io::Error) -> bool {
        if error.kind() != ErrorKind::WouldBlock {
            self.again.insert(socket);
            if !std::mem::replace(&mut self.has_failed, true) {
                note!("penstock-controller: a connection waits to be accepted: {error}");
            }
        }
        false
    }

    fn close(&mut self, connection: Connection, why: impl Display) {
        self.controller.disconnect(connection);
        if let Some(mut peer) = self.peers.remove(&connection) {
            let _ = self.poll.registry().deregister(&mut peer.stream);
            let line = format!("{}: connection closed: {why}", peer.name());
            self.lines.print(peer.address.ip(), line);
        }
    }

    /// Reads what a switch has sent.
    fn read(&mut self, connection: Connection) -> bool {
        let now_ns = self.now_ns();
        for _ in 0..MOST_READS {
            let Some(peer) = self.peers.get_mut(&connection) else {
                return false;
            };
            let why = match peer.stream.read(&mut self.buffer) {
                Ok(0) => "the switch closed it".to_owned(),
                Ok(bytes) => {
                    let read = &self.buffer[..bytes];
                    let taken = self.controller.on_bytes(connection, read, now_ns);
                    if peer.datapath.is_none() {
                        peer.datapath = self.controller.datapath(connection);
                        if peer.datapath.is_some() {
                            let line = format!("{}: connected", peer.name());
                            self.lines.print(peer.address.ip(), line);
                        }
                    }
                    match taken {
                        Ok(()) => continue,
                        Err(error) => error.to_string(),
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return false,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => error.to_string(),
            };
            self.close(connection, why);
            return false;
        }
        true
    }

    fn write(&mut self, connection: Connection) {
        let Some(peer) = self.peers.get_mut(&connection) else {
            return;
        };
        let Some(output) = self.controller.output(connection) else {
            return;
        };
        while !output.is_empty() {
            match peer.stream.write(output) {
                Ok(bytes) => drop(output.drain(..bytes)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => (),
                Err(error) => return self.close(connection, error),
            }
        }
        if output.len() > MOST_OUTPUT_BYTES {
            self.close(connection, "it reads too slowly");
        }
    }

    fn receive(&mut self) -> Result<bool> {
        for _ in 0..MOST_DATAGRAMS {
            let Ok((bytes, from)) = self.agents.recv_from(&mut self.buffer) else {
                return Ok(false);
            };
            let random = u64::from_ne_bytes(random()?);
            let now_ns = self.now_ns();
            let datagram = &self.buffer[..bytes];
            self.controller.on_datagram(from, datagram, random, now_ns);
        }
        Ok(true)
    }

    /// Sends the status to a reader that has connected.
    fn show(&mut self) -> bool {
        let Some(readers) = &mut self.status else {
            return false;
        };
        let text = || serde_json::to_vec(&Status::of(&self.controller)).unwrap_or_default();
        match readers.accept(self.poll.registry(), self.next, text) {
            Ok(()) => {
                self.next += 1;
                true
            }
            Err(error) => self.cannot_accept(STATUS, &error),
        }
    }

    /// Sends what is left to a reader, if it is the number of one.
    fn show_more(&mut self, number: usize) -> bool {
        self.status.as_mut().is_some_and(|one| one.write(number))
    }
}

/// Serves metrics on a thread of its own: what stands in the value that is returned.
fn metrics(address: SocketAddr) -> Result<Arc<Mutex<Status>>> {
    let listener = std::net::TcpListener::bind(address);
    let listener = listener.with_context(|| format!("metrics: {address}"))?;
    let shown = Arc::new(Mutex::new(Status::default()));
    let status = shown.clone();
    let page = move || match status.lock() {
        Ok(status) => metrics::encode(status.clone()).map_err(|error| error.to_string()),
        Err(error) => Err(error.to_string()),
    };
    std::thread::Builder::new()
        .name("metrics".to_owned())
        .spawn(move || scrape::serve(&listener, page))
        .context("metrics")?;
    Ok(shown)
}
