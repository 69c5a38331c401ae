// SPDX-License-Identifier: Apache-2.0
//! Connections, datagrams and time for the controller, in one thread.

use crate::config::Config;
use crate::metrics;
use crate::network::{Connection, Controller};
use crate::status::Status;
use anyhow::{Context, Result};
use mio::net::{TcpListener, TcpStream, UdpSocket, UnixListener, UnixStream};
use mio::{Events, Interest, Poll, Token};
use penstock_linux::{note, scrape};
use penstock_sdn::random;
use std::collections::{BTreeSet, HashMap};
use std::fs::DirBuilder;
use std::io::{ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt};
use std::path::Path;
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

/// A controller that listens.
pub struct Server {
    poll: Poll,
    listener: TcpListener,
    agents: UdpSocket,
    status: Option<UnixListener>,
    streams: HashMap<Connection, TcpStream>,
    next: Connection,
    controller: Controller,
    begun: Instant,
    /// What the metrics show, and when it was written.
    shown: Option<(Arc<Mutex<Status>>, Instant)>,
    buffer: Vec<u8>,
    /// Sockets that may have more: epoll reports only what comes next.
    left: BTreeSet<Token>,
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
            let socket = listen(path);
            status = Some(socket.with_context(|| format!("status: {}", path.display()))?);
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
            registry.register(status, STATUS, Interest::READABLE)?;
        }
        Ok(Server {
            poll,
            listener,
            agents,
            status,
            streams: HashMap::new(),
            next: FIRST,
            controller,
            begun: now,
            shown,
            buffer: vec![0; READ_BYTES],
            left: BTreeSet::new(),
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
                    .for_each(|connection| self.close(connection));
                for connection in self.controller.connections() {
                    self.write(connection);
                }
                self.publish();
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
            let Ok((mut stream, _)) = self.listener.accept() else {
                return false;
            };
            if self.streams.len() >= MOST {
                continue; // it is closed, and the switch tries again
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
                self.streams.insert(connection, stream);
                self.controller.connect(connection, self.now_ns());
            }
        }
        true
    }

    fn close(&mut self, connection: Connection) {
        self.controller.disconnect(connection);
        if let Some(mut stream) = self.streams.remove(&connection) {
            let _ = self.poll.registry().deregister(&mut stream);
        }
    }

    /// Reads what a switch has sent.
    fn read(&mut self, connection: Connection) -> bool {
        let now_ns = self.now_ns();
        for _ in 0..MOST_READS {
            let Some(stream) = self.streams.get_mut(&connection) else {
                return false;
            };
            match stream.read(&mut self.buffer) {
                Ok(0) => {
                    self.close(connection);
                    return false;
                }
                Ok(bytes) => {
                    let read = &self.buffer[..bytes];
                    if let Err(error) = self.controller.on_bytes(connection, read, now_ns) {
                        note!("penstock-controller: connection {connection}: {error}");
                        self.close(connection);
                        return false;
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return false,
                Err(error) if error.kind() == ErrorKind::Interrupted => (),
                Err(_) => {
                    self.close(connection);
                    return false;
                }
            }
        }
        true
    }

    fn write(&mut self, connection: Connection) {
        let Some(stream) = self.streams.get_mut(&connection) else {
            return;
        };
        let Some(output) = self.controller.output(connection) else {
            return;
        };
        while !output.is_empty() {
            match stream.write(output) {
                Ok(bytes) => drop(output.drain(..bytes)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => (),
                Err(_) => return self.close(connection),
            }
        }
        if output.len() > MOST_OUTPUT_BYTES {
            self.close(connection);
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
        let Some((mut stream, _)) = self.status.as_ref().and_then(|one| one.accept().ok()) else {
            return false;
        };
        let text = serde_json::to_vec(&Status::of(&self.controller)).unwrap_or_default();
        write_all(&mut stream, &text);
        true
    }
}

/// Listens at a path, in a folder that is made if it is not there, for root alone. The socket of a
/// controller that was killed is removed; that of one that runs, and a file, stay.
fn listen(path: &Path) -> Result<UnixListener> {
    if let Some(folder) = path.parent() {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)?;
    }
    let is_socket = std::fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket());
    if is_socket && UnixStream::connect(path).is_err() {
        std::fs::remove_file(path)?;
    }
    Ok(UnixListener::bind(path)?)
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

/// As much as the socket takes at once: it holds more than a status, of a reader that reads.
fn write_all(stream: &mut UnixStream, mut bytes: &[u8]) {
    while let Ok(written @ 1..) = stream.write(bytes) {
        bytes = &bytes[written..];
    }
}
