// SPDX-License-Identifier: Apache-2.0
//! The conversation with a controller, on a thread of its own: its notices go to the shims, the
//! queues of a switch's ports to it, the flows that it counts to the ports that want them. Of several
//! controllers each has a thread, and the last message counts, whichever it is from.
//!
//! Messages are sealed ([`penstock_sdn::message`]). A controller that is silent for some time may
//! have been restarted: another session begins. What a shim was ordered ends by itself.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::unix::net::UnixDatagram;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use penstock_linux::{note, qdisc::RootCounters};
use penstock_sdn::message::{Agent, Body, Key, Notice, QueueReport};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;

use super::config::Sdn;
use super::counted::Counted;
use super::frames;
use crate::port::{PinsArg, Port, sicc};

/// Between signs of life; interfaces that came or were attached again are found as often.
const HELLO: Duration = Duration::from_secs(1);

/// Silence after which another session begins.
const SILENCE: Duration = Duration::from_secs(3);

/// Starts a thread for each controller that is configured.
///
/// # Errors
/// The key cannot be read, or the kernel refuses a socket.
pub fn begin(sdn: Option<&Sdn>, pins: PinsArg) -> Result<()> {
    let Some(sdn) = sdn else { return Ok(()) };
    let frames = frames::begin(sdn, &pins)?;
    for (controller, frames) in sdn.controller.iter().zip(frames) {
        let mut link = Link::new(*controller, sdn.clone(), pins.clone(), frames)?;
        std::thread::Builder::new()
            .name("controller".to_owned())
            .spawn(move || link.run())
            .context("sdn")?;
    }
    Ok(())
}

struct Link {
    controller: SocketAddr,
    sdn: Sdn,
    pins: PinsArg,
    key: Key,
    agent: Agent,
    socket: UdpSocket,
    /// The messages in frames, of any controller.
    frames: Option<UnixDatagram>,
    guests: HashMap<IpAddr, String>,
    ports: HashMap<String, Port>,
    queues: HashMap<String, RootCounters>,
    counted: Option<Counted>,
    datapath: u64,
    /// When the controller was last understood, or the session began.
    last: Instant,
    /// Whether it was understood in this session, and so takes what it is sent.
    is_met: bool,
    /// When the next sign of life is due.
    hello: Instant,
    /// Whether it answers, as was printed last.
    printed: Option<bool>,
}

impl Link {
    fn new(
        controller: SocketAddr,
        mut sdn: Sdn,
        pins: PinsArg,
        frames: Option<UnixDatagram>,
    ) -> Result<Link> {
        let key = penstock_sdn::key(&sdn.key).context("sdn.key")?;
        let datapath = match &mut sdn.switch {
            Some(switch) => {
                switch.ports.sort_unstable_by_key(|_, number| *number); // reports are shorter so
                penstock_sdn::datapath(&switch.datapath).context("sdn.switch.datapath")?
            }
            None => 0,
        };
        let any: SocketAddr = match controller {
            SocketAddr::V4(_) => ([0, 0, 0, 0], 0).into(),
            SocketAddr::V6(_) => ([0; 16], 0).into(),
        };
        let guests = sdn
            .guests
            .iter()
            .flat_map(|(interface, guests)| guests.iter().map(|guest| (*guest, interface.clone())));
        Ok(Link {
            controller,
            agent: Agent::new(key.clone(), sdn.number, session()?),
            socket: UdpSocket::bind(any).context("sdn")?,
            frames,
            guests: guests.collect(),
            ports: HashMap::new(),
            queues: HashMap::new(),
            counted: sdn.switch.as_ref().map(|switch| {
                let ports = switch.ports.iter();
                Counted::new(
                    datapath,
                    ports.map(|(name, number)| (*number, name.clone())),
                )
            }),
            last: Instant::now(),
            is_met: false,
            hello: Instant::now(),
            printed: None,
            sdn,
            pins,
            key,
            datapath,
        })
    }

    fn run(&mut self) {
        let mut report = Instant::now();
        let interval = self.sdn.switch.as_ref().map(|switch| switch.interval);
        let interval = interval.map(|time| Duration::from_nanos(time.as_nanos()));
        let interval = interval.filter(|time| !time.is_zero());
        let mut bytes = [0; 2048];
        loop {
            let now = Instant::now();
            if now >= self.hello {
                self.hello = now + HELLO;
                self.greet(now);
            }
            if let Some(interval) = interval.filter(|_| now >= report) {
                report = (report + interval).max(now);
                self.report();
            }
            let next = interval.map_or(self.hello, |_| self.hello.min(report));
            if is_readable(&self.socket, self.frames.as_ref(), next)
                && let Ok(length) = self.socket.recv(&mut bytes)
            {
                // From any address, of which a controller may have several: the seal shows whose it is.
                self.receive(&bytes[..length]);
            }
            while let Some(Ok(length)) = self.frames.as_ref().map(|one| one.recv(&mut bytes)) {
                self.receive(&bytes[..length]);
            }
        }
    }

    /// A message, if it is the controller's.
    fn receive(&mut self, message: &[u8]) {
        let Ok(body) = self.agent.unseal(message) else {
            return;
        };
        self.last = Instant::now();
        self.print(true);
        if !self.is_met {
            // What was sent before its challenge was lost: the guests, and the ports to be counted.
            (self.is_met, self.hello) = (true, self.last);
        }
        match (body, &mut self.counted) {
            (Body::Notices(notices), _) => notices.iter().for_each(|notice| self.take(notice)),
            (Body::Flows(report), Some(counted)) => counted.take(&report),
            (Body::Options(report), Some(counted)) => counted.learn(&report),
            _ => (),
        }
    }

    fn send(&mut self, body: &Body) {
        let sealed = self.agent.seal(body);
        // What cannot be sent is lost, as it may be on its way.
        let _ = self.socket.send_to(&sealed, self.controller);
    }

    /// Prints whether the controller answers, each time that it changes.
    fn print(&mut self, answers: bool) {
        if self.printed.replace(answers) != Some(answers) {
            let what = if answers {
                "it answers"
            } else {
                "it does not answer"
            };
            note!("controller {}: {what}", self.controller);
        }
    }

    fn greet(&mut self, now: Instant) {
        if now.duration_since(self.last) > SILENCE
            && let Ok(session) = session()
        {
            self.print(false);
            self.agent = Agent::new(self.key.clone(), self.sdn.number, session);
            (self.last, self.is_met) = (now, false);
            self.counted.iter_mut().for_each(Counted::forget);
        }
        // Interfaces may have gone, and come again with another number.
        self.ports.clear();
        self.queues.clear();
        self.send(&Body::Hello(self.guests.keys().copied().collect()));
        let ask = self.counted.as_mut().and_then(|one| one.ask(&self.pins));
        if let Some(ask) = ask {
            self.send(&Body::Ask(ask));
        }
    }

    /// Sends the queues of the switch's ports, of those that can be read.
    fn report(&mut self) {
        let Some(switch) = &self.sdn.switch else {
            return;
        };
        let mut queues = Vec::with_capacity(switch.ports.len());
        for (interface, number) in &switch.ports {
            if !self.queues.contains_key(interface)
                && let Ok(counters) = RootCounters::open(interface)
            {
                self.queues.insert(interface.clone(), counters);
            }
            let counters = self.queues.get_mut(interface);
            if let Some(Ok(read)) = counters.map(RootCounters::read) {
                queues.push((*number, read.backlog_bytes));
            }
        }
        let datapath = self.datapath;
        self.send(&Body::Queues(QueueReport { datapath, queues }));
    }

    /// Has the shim below the source take a notice. None is there: it was detached, and needs none.
    fn take(&mut self, notice: &Notice) {
        let Some(interface) = self.guests.get(&notice.source) else {
            return;
        };
        if !self.ports.contains_key(interface)
            && let Ok(port) = self.pins.open(interface)
        {
            self.ports.insert(interface.clone(), port);
        }
        if let Some(port) = self.ports.get(interface) {
            let _ = sicc::take(port, notice);
        }
    }
}

/// Waits for a datagram or a frame until then, to the microsecond: a socket's own timeout counts in
/// jiffies. Returns whether there is a datagram.
fn is_readable(socket: &UdpSocket, frames: Option<&UnixDatagram>, until: Instant) -> bool {
    let left = until.saturating_duration_since(Instant::now());
    let left = Timespec::try_from(left).ok();
    let mut polled = vec![PollFd::new(socket, PollFlags::IN)];
    polled.extend(frames.map(|one| PollFd::new(one, PollFlags::IN)));
    matches!(poll(&mut polled, left.as_ref()), Ok(1..)) && !polled[0].revents().is_empty()
}

/// The number of a session, drawn by chance.
fn session() -> Result<u64> {
    let bytes = penstock_sdn::random().context("random numbers")?;
    Ok(u64::from_ne_bytes(bytes))
}
