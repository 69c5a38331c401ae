// SPDX-License-Identifier: Apache-2.0
//! Plays traffic on sockets: one thread, one epoll, one clock for both ends of every connection.
//!
//! [`Player`] is a traffic sink like the simulation, and its clients behave as those of the simulation do
//! (`penstock_sim::simulation`): [`transfers`] begins, completes and stops them, [`wire`] moves their
//! bytes, [`connection`] has both ends.

mod connection;
mod datagrams;
mod lateness;
mod ports;
mod transfers;
mod wire;

use crate::epoll::Epoll;
use crate::failure::{Failure, because};
use crate::hosts::Places;
use crate::namespaces::Namespaces;
use crate::socket::Socket;
use crate::tcp::Options;
use connection::{Connection, Slab};
use datagrams::Source;
use lateness::Lateness;
use penstock_scenario::units::Time;
use penstock_sim::simulation::{
    Action, Barrier, ClientProfile, Datagrams, ENDLESS, Generator, JobRow, Jobs, KernelTimes,
    Record, Schedule, ServerThink, TrafficSink, Transfer, TransferCounters, WindowPlan,
    WindowSample,
};
pub use ports::Ports;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Actions done at once before sockets have their turn again.
const ACTIONS: usize = 64;

/// How often progress is reported.
const REPORT_EVERY: Time = Time::from_millis(100);

/// Room for what is read, and zeros to be sent, bytes. Its pages are never touched.
const ROOM: usize = 1 << 20;

/// A stream of transfers from one host to another, one at a time.
struct Client {
    profile: u32,
    number: u32,
    transfer: Transfer,
    /// Transfers not yet begun.
    remaining: u32,
    /// Transfers begun: the number of the next.
    begun: u32,
    /// The ticket of the job's transfer under way, if it is one.
    ticket: u32,
    /// Transfers with an end that are not finished.
    awaited: u32,
    connection: Option<u32>,
    /// Index of the record of the transfer under way.
    record: u32,
    /// What its connection had counted before this transfer.
    base: TransferCounters,
    /// The kernel's times of it before this transfer.
    times_before: KernelTimes,
    /// The server's pause in the transfer under way.
    server_think: Option<ServerThink>,
}

/// A generator of transfers and the one it will make next.
struct Arrivals {
    profile: u32,
    generator: Box<dyn Generator>,
    made: u32,
    pending: Option<Transfer>,
}

/// A socket that takes connections of one traffic at one host.
struct Listener {
    socket: Socket,
    address: SocketAddr,
}

/// Connections that failed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Broken {
    /// How many.
    pub count: u64,
    /// The kernel's error of the first.
    pub first: Option<String>,
}

/// All hosts, clients and connections of a run.
pub struct Player {
    /// Time zero of the run.
    start: Instant,
    namespaces: Namespaces,
    places: Places,
    epoll: Epoll,
    schedule: Schedule,
    profiles: Vec<ClientProfile>,
    options: Vec<Options>,
    min_rto: Vec<Time>,
    clients: Vec<Client>,
    /// By profile.
    barriers: Vec<Barrier>,
    arrivals: Vec<Arrivals>,
    datagrams: Vec<Source>,
    connections: Slab<Connection>,
    listeners: Vec<Listener>,
    /// Numbers of listeners by host and profile.
    listening: HashMap<(u32, u32), u32>,
    /// Connections not yet accepted, by listener and the address they were opened from.
    expected: HashMap<(u32, SocketAddr), u32>,
    room: Vec<u8>,
    finished: usize,
    /// Transfers with an end that are not finished, those not begun included.
    awaited: u64,
    plan: Option<WindowPlan>,
    /// Windows of the flows that the scenario chooses, by time, then by flow.
    pub windows: Vec<WindowSample>,
    /// Transfers begun, in order of their start.
    pub records: Vec<Record>,
    /// Jobs, of which transfers may be parts.
    pub jobs: Jobs,
    /// Ports and their samples.
    pub ports: Ports,
    /// Connections that failed.
    pub broken: Broken,
    /// Transfers that began late.
    pub lateness: Lateness,
}

/// What the traffic's connections are like.
pub struct Setting {
    /// By traffic, then by stage of jobs.
    pub profiles: Vec<ClientProfile>,
    /// By profile.
    pub options: Vec<Options>,
    /// By profile: the least retransmission timeout.
    pub min_rto: Vec<Time>,
    /// Whose windows are sampled.
    pub plan: Option<WindowPlan>,
}

impl Player {
    /// Without clients or connections.
    pub fn new(
        mut namespaces: Namespaces,
        places: Places,
        setting: Setting,
        ports: Ports,
    ) -> Result<Player, Failure> {
        // The epoll is of no namespace, but the thread had better be in one that it can leave.
        if namespaces.len() > 0 {
            namespaces.enter(0)?;
        }
        let Setting {
            profiles,
            options,
            min_rto,
            plan,
        } = setting;
        Ok(Player {
            start: Instant::now(),
            namespaces,
            places,
            epoll: Epoll::new().map_err(because("epoll"))?,
            schedule: Schedule::default(),
            barriers: vec![Barrier::default(); profiles.len()],
            profiles,
            options,
            min_rto,
            clients: Vec::new(),
            arrivals: Vec::new(),
            datagrams: Vec::new(),
            connections: Slab::default(),
            listeners: Vec::new(),
            listening: HashMap::new(),
            expected: HashMap::new(),
            room: vec![0; ROOM],
            finished: 0,
            awaited: 0,
            plan,
            windows: Vec::new(),
            records: Vec::new(),
            jobs: Jobs::default(),
            ports,
            broken: Broken::default(),
            lateness: Lateness::default(),
        })
    }

    fn now(&self) -> Time {
        Time::from_nanos(self.start.elapsed().as_nanos() as u64)
    }

    /// Plays until `duration`, or until all transfers are done, though not before `when_done`.
    /// Returns when that was. `progress` gets the share that is done, and stops the run by answering
    /// false.
    pub fn run(
        &mut self,
        duration: Time,
        when_done: Time,
        mut progress: impl FnMut(f64, &Player) -> bool,
    ) -> Result<Time, Failure> {
        for client in 0..self.clients.len() {
            self.listener_for(client as u32)?;
        }
        let mut report = Time::ZERO;
        self.start = Instant::now();
        let ended = loop {
            let now = self.now();
            if now >= report {
                let share = now.as_secs_f64() / duration.as_secs_f64();
                if !progress(share.min(1.0), self) {
                    return Err(Failure::Interrupted);
                }
                report = now + REPORT_EVERY;
            }
            for _ in 0..ACTIONS {
                if self.schedule.next() > now.min(duration) {
                    break;
                }
                if let Some((due, action)) = self.schedule.pop() {
                    self.act(due, action)?;
                }
            }
            if now >= duration || now > when_done && self.is_done() {
                break now.min(duration);
            }
            let until = self.schedule.next().min(duration).min(report);
            let wait = Duration::from_nanos(until.saturating_sub(self.now()).as_nanos());
            let events = self.epoll.wait(wait).map_err(because("epoll"))?;
            for index in 0..events {
                let (token, readiness) = self.epoll.event(index);
                self.on_event(token, readiness)?;
            }
        };
        self.settle_all();
        self.ports.finish()?;
        progress(1.0, self);
        for connection in self.connections.drain() {
            let sockets = connection.ends.into_iter().filter_map(|end| end.socket);
            sockets.for_each(Socket::reset);
        }
        Ok(ended)
    }

    /// Whether all transfers with an end are over, and no more will begin.
    fn is_done(&self) -> bool {
        let mut arrivals = self.arrivals.iter();
        self.awaited == 0
            && self.jobs.are_done()
            && arrivals.all(|arrivals| arrivals.pending.is_none())
    }

    /// Samples the windows of the chosen flows that have a connection; returns when to do so next.
    fn sample_windows(&mut self, due: Time) -> Option<Time> {
        let plan = self.plan?;
        let now = self.now();
        let chosen = self
            .clients
            .iter()
            .filter(|client| client.profile == plan.traffic && client.number < plan.flows);
        for client in chosen {
            let connection = client.connection.and_then(|c| self.connections.get(c));
            let Some(connection) = connection else {
                continue;
            };
            let info = connection.ends[connection.sender].info();
            self.windows.push(WindowSample {
                traffic: plan.traffic,
                flow: client.number,
                time: now,
                cwnd: info.cwnd,
                rwnd: info.send_window.into(),
                is_recovering: info.is_recovering,
            });
        }
        // A sample that is late does not make the next ones come at once.
        Some((due + plan.every).max(now))
    }

    fn act(&mut self, due: Time, action: Action) -> Result<(), Failure> {
        match action {
            Action::MeasureStart => {
                self.settle_all();
                for record in &mut self.records {
                    record.before = record.total;
                }
                self.ports.start_measuring()?;
            }
            Action::Generate(index) => {
                self.lateness.note(due, self.now());
                self.generate(due, index)?
            }
            Action::Job(row) => {
                let now = self.now();
                let begins = self.jobs.start_late(due, now, row);
                self.follow((due, now), begins)?;
            }
            Action::Gate(ticket) => {
                let now = self.now();
                let begins = self.jobs.finish(now, ticket);
                self.follow((due, now), begins)?;
            }
            Action::Begin(client) => {
                self.lateness.note(due, self.now());
                self.begin(client)?
            }
            Action::Answer(client) => self.end_think(due, client),
            Action::Stop(client) => self.stop(client),
            Action::Datagram(index) => self.send_datagram(due, index)?,
            Action::Sample => {
                let now = self.now();
                let next = self.ports.sample(due, now)?;
                self.at(next, action);
            }
            Action::SampleWindows => {
                if let Some(next) = self.sample_windows(due) {
                    self.at(next, action);
                }
            }
            // Work of the simulator's ports, and of its programs: this one takes its time.
            Action::QueueTick(_) | Action::WindowTick(_) | Action::Pause(_) | Action::Turn(_) => {}
        }
        Ok(())
    }

    fn generate(&mut self, due: Time, index: u32) -> Result<(), Failure> {
        let arrivals = &mut self.arrivals[index as usize];
        let (profile, number, transfer) =
            (arrivals.profile, arrivals.made, arrivals.pending.take());
        if let Some((next, transfer)) = arrivals.generator.next() {
            arrivals.pending = Some(transfer);
            self.schedule.add(next.max(due), Action::Generate(index));
        }
        let Some(transfer) = transfer else {
            return Ok(());
        };
        self.arrivals[index as usize].made += 1;
        let client = self.add_client(profile, number, transfer, 1);
        self.begin(client)
    }

    /// Transfers that are finished.
    pub const fn finished(&self) -> usize {
        self.finished
    }

    /// The hosts, and the namespaces to enter.
    pub const fn places(&mut self) -> (&Places, &mut Namespaces) {
        (&self.places, &mut self.namespaces)
    }
}

impl TrafficSink for Player {
    fn add_client(&mut self, profile: u32, number: u32, transfer: Transfer, transfers: u32) -> u32 {
        let awaited = if transfer.bytes < ENDLESS {
            transfers
        } else {
            0
        };
        self.awaited += u64::from(awaited);
        self.barriers[profile as usize].add_client();
        self.clients.push(Client {
            profile,
            number,
            transfer,
            remaining: transfers,
            begun: 0,
            ticket: u32::MAX,
            awaited,
            connection: None,
            record: u32::MAX,
            base: TransferCounters::default(),
            times_before: KernelTimes::default(),
            server_think: None,
        });
        self.clients.len() as u32 - 1
    }

    fn add_generator(&mut self, profile: u32, mut generator: Box<dyn Generator>) {
        let first = generator.next();
        let index = self.arrivals.len() as u32;
        self.arrivals.push(Arrivals {
            profile,
            generator,
            made: 0,
            pending: first.map(|(_, transfer)| transfer),
        });
        if let Some((time, _)) = first {
            self.at(time, Action::Generate(index));
        }
    }

    fn add_jobs(&mut self, row: JobRow) {
        let (start, action) = self.jobs.add(row);
        self.at(start, action);
    }

    fn add_datagrams(&mut self, source: u32, destination: u32, start: Time, timing: Datagrams) {
        let index = self.datagrams.len() as u32;
        let source = Source::new(source, destination, timing);
        self.datagrams.push(source);
        let first = start.saturating_add(self.datagrams[index as usize].first_gap());
        self.at(first, Action::Datagram(index));
    }

    fn at(&mut self, time: Time, action: Action) {
        self.schedule.add(time, action);
    }
}
