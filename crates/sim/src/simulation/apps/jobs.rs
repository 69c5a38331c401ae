// SPDX-License-Identifier: Apache-2.0
//! Jobs: transfers that wait for others.
//!
//! A job is a graph of transfers and gates. A gate opens once so many transfers have arrived at it, or
//! gates before it have opened; then the transfers behind it begin. Queries, striped reads, barriers and
//! collectives are such graphs. [`Jobs`] knows nothing of sockets: it is given what has finished, and
//! returns what is [`Due`].

use super::super::schedule::Action;
use super::client::Transfer;
use crate::distribution::Draws;
use penstock_scenario::units::Time;
use std::collections::{HashMap, VecDeque};

/// A transfer of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobTransfer {
    /// Index of the profile that it follows.
    pub profile: u32,
    /// Its ends and length.
    pub transfer: Transfer,
    /// The gate that it arrives at.
    pub then: u32,
}

/// Where transfers wait.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gate {
    /// Arrivals that open it.
    pub waits: u32,
    /// From then on until what is behind it begins.
    pub pause: Time,
    /// Transfers that begin behind it.
    pub begins: Vec<u32>,
    /// Gates that it arrives at.
    pub opens: Vec<u32>,
}

/// One job. Gate 0 opens when it starts; with the last one it is over.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobGraph {
    /// Its transfers.
    pub transfers: Vec<JobTransfer>,
    /// Its gates.
    pub gates: Vec<Gate>,
}

/// Makes up jobs.
pub trait JobSource: Send {
    /// Job number `number` of its row.
    fn job(&mut self, number: u32) -> JobGraph;
}

/// Jobs that follow each other.
pub struct JobRow {
    /// Index of the traffic.
    pub traffic: u32,
    /// The host that runs them, if there is one.
    pub client: Option<u32>,
    /// When the first one starts.
    pub start: Time,
    /// How many there are.
    pub jobs: u32,
    /// Pause between the end of one and the next.
    pub think: Draws,
    /// From one start to the next, where they do not wait for each other.
    pub every: Option<Draws>,
    /// Whether transfers between the same ends share a connection.
    pub is_persistent: bool,
    /// Makes them.
    pub source: Box<dyn JobSource>,
}

/// A job that has begun: a row in the table of jobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobRecord {
    /// Index of the traffic.
    pub traffic: u32,
    /// Its number among the jobs of the traffic, in order of their start.
    pub number: u32,
    /// The host that runs it, if there is one.
    pub client: Option<u32>,
    /// When it started.
    pub start: Time,
    /// When it was over.
    pub end: Option<Time>,
    /// Its transfers.
    pub transfers: u32,
    /// Their bytes.
    pub bytes: u64,
}

/// Something to be done now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// A transfer begins, on a client of its own or on this one. Its end is to be reported with `ticket`,
    /// and a new client to [`Jobs::set_client`].
    Begin {
        /// Stands for the transfer.
        ticket: u32,
        /// Index of the profile.
        profile: u32,
        /// The job's number.
        number: u32,
        /// Ends and length.
        transfer: Transfer,
        /// The client whose connection it shares.
        client: Option<u32>,
        /// Whether other transfers will share its connection.
        is_shared: bool,
    },
    /// An action at a later time.
    At(Time, Action),
}

struct Row {
    row: JobRow,
    begun: u32,
}

/// A job under way.
struct Live {
    row: u32,
    record: u32,
    number: u32,
    graph: JobGraph,
    /// Tickets not yet returned.
    outstanding: u32,
}

/// What a ticket stands for.
#[derive(Clone, Copy)]
enum Ticket {
    Transfer { job: u32, transfer: u32 },
    Gate { job: u32, gate: u32 },
}

/// Transfers with the same ends that share a connection.
#[derive(Default)]
struct Stream {
    client: Option<u32>,
    is_busy: bool,
    waiting: VecDeque<(u32, u32)>,
}

type Ends = (u32, u32, u32, u32);

/// All jobs.
#[derive(Default)]
pub struct Jobs {
    rows: Vec<Row>,
    live: Vec<Option<Live>>,
    free: Vec<u32>,
    tickets: Vec<Option<Ticket>>,
    free_tickets: Vec<u32>,
    streams: HashMap<Ends, Stream>,
    records: Vec<JobRecord>,
    /// Jobs begun, by traffic.
    numbers: HashMap<u32, u32>,
    /// Jobs that are not over, those not begun included.
    left: u64,
}

impl Jobs {
    /// Adds a row; returns when its first job starts, and the action that starts it.
    pub fn add(&mut self, row: JobRow) -> (Time, Action) {
        let number = self.rows.len() as u32;
        let start = row.start;
        self.left += u64::from(row.jobs);
        self.rows.push(Row { row, begun: 0 });
        (start, Action::Job(number))
    }

    /// Whether all jobs are over.
    pub fn are_done(&self) -> bool {
        self.left == 0
    }

    /// All that have begun, in the order of their start.
    pub fn into_records(self) -> Vec<JobRecord> {
        self.records
    }

    /// The next job of a row starts.
    pub fn start(&mut self, now: Time, row: u32) -> Vec<Due> {
        self.start_late(now, now, row)
    }

    /// The same where it was due at `scheduled`, before `now`: the jobs after it keep their schedule.
    pub fn start_late(&mut self, scheduled: Time, now: Time, row: u32) -> Vec<Due> {
        let mut due = Vec::new();
        let entry = &mut self.rows[row as usize];
        if entry.begun == entry.row.jobs {
            return due;
        }
        let graph = entry.row.source.job(entry.begun);
        entry.begun += 1;
        if let Some(every) = &entry.row.every
            && entry.begun < entry.row.jobs
        {
            let next = scheduled.saturating_add(Time(every.draw(row, entry.begun)));
            due.push(Due::At(next, Action::Job(row)));
        }
        let traffic = entry.row.traffic;
        let number = self.numbers.entry(traffic).or_default();
        let record = JobRecord {
            traffic,
            number: *number,
            client: entry.row.client,
            start: now,
            end: None,
            transfers: graph.transfers.len() as u32,
            bytes: graph.transfers.iter().map(|t| t.transfer.bytes).sum(),
        };
        let live = Live {
            row,
            record: self.records.len() as u32,
            number: *number,
            graph,
            outstanding: 0,
        };
        *number += 1;
        self.records.push(record);
        let job = self.free.pop().unwrap_or_else(|| {
            self.live.push(None);
            self.live.len() as u32 - 1
        });
        self.live[job as usize] = Some(live);
        self.open(now, job, 0, &mut due);
        self.clean(job);
        due
    }

    /// The transfer or the pause that `ticket` stands for is over.
    pub fn finish(&mut self, now: Time, ticket: u32) -> Vec<Due> {
        let mut due = Vec::new();
        let Some(returned) = self.tickets[ticket as usize].take() else {
            return due;
        };
        self.free_tickets.push(ticket);
        let (Ticket::Transfer { job, .. } | Ticket::Gate { job, .. }) = returned;
        let Some(live) = &mut self.live[job as usize] else {
            return due;
        };
        live.outstanding -= 1;
        match returned {
            Ticket::Gate { gate, .. } => self.pass(now, job, gate, &mut due),
            Ticket::Transfer { transfer, .. } => {
                let ends = live.ends(transfer);
                let then = live.graph.transfers[transfer as usize].then;
                if let Some(stream) = self.streams.get_mut(&ends) {
                    stream.is_busy = false;
                    if let Some((job, transfer)) = stream.waiting.pop_front() {
                        self.begin(job, transfer, &mut due);
                    }
                }
                self.arrive(now, job, then, &mut due);
            }
        }
        self.clean(job);
        due
    }

    /// The transfer of `ticket` has got a client, which others may share.
    pub fn set_client(&mut self, ticket: u32, client: u32) {
        if let Some(Ticket::Transfer { job, transfer }) = self.tickets[ticket as usize]
            && let Some(live) = &self.live[job as usize]
            && let Some(stream) = self.streams.get_mut(&live.ends(transfer))
        {
            stream.client = Some(client);
        }
    }

    fn ticket(&mut self, ticket: Ticket) -> u32 {
        let (Ticket::Transfer { job, .. } | Ticket::Gate { job, .. }) = ticket;
        if let Some(live) = &mut self.live[job as usize] {
            live.outstanding += 1;
        }
        let number = self.free_tickets.pop().unwrap_or_else(|| {
            self.tickets.push(None);
            self.tickets.len() as u32 - 1
        });
        self.tickets[number as usize] = Some(ticket);
        number
    }

    /// Something arrives at a gate. One that is open stays so.
    fn arrive(&mut self, now: Time, job: u32, gate: u32, due: &mut Vec<Due>) {
        let Some(live) = &mut self.live[job as usize] else {
            return;
        };
        let waits = &mut live.graph.gates[gate as usize].waits;
        if *waits > 0 {
            *waits -= 1;
            if *waits == 0 {
                self.open(now, job, gate, due);
            }
        }
    }

    /// A gate opens; what is behind it begins after its pause.
    fn open(&mut self, now: Time, job: u32, gate: u32, due: &mut Vec<Due>) {
        let Some(live) = &self.live[job as usize] else {
            return;
        };
        let pause = live.graph.gates[gate as usize].pause;
        if pause == Time::ZERO {
            return self.pass(now, job, gate, due);
        }
        let ticket = self.ticket(Ticket::Gate { job, gate });
        due.push(Due::At(now.saturating_add(pause), Action::Gate(ticket)));
    }

    /// What is behind a gate begins, and so do the gates after it; none of these has more gates behind
    /// it than a job has.
    fn pass(&mut self, now: Time, job: u32, gate: u32, due: &mut Vec<Due>) {
        let mut open = vec![gate];
        while let Some(gate) = open.pop() {
            let Some(live) = &mut self.live[job as usize] else {
                return;
            };
            let is_last = gate as usize + 1 == live.graph.gates.len();
            let Gate { begins, opens, .. } = std::mem::take(&mut live.graph.gates[gate as usize]);
            for next in opens {
                let Some(live) = &mut self.live[job as usize] else {
                    return;
                };
                let next_gate = &mut live.graph.gates[next as usize];
                if next_gate.waits > 0 {
                    next_gate.waits -= 1;
                    if next_gate.waits == 0 {
                        match next_gate.pause {
                            Time::ZERO => open.push(next),
                            _ => self.open(now, job, next, due),
                        }
                    }
                }
            }
            for transfer in begins {
                self.begin(job, transfer, due);
            }
            if is_last {
                self.end(now, job, due);
            }
        }
    }

    fn begin(&mut self, job: u32, transfer: u32, due: &mut Vec<Due>) {
        let Some(live) = &self.live[job as usize] else {
            return;
        };
        let JobTransfer {
            profile,
            transfer: what,
            ..
        } = live.graph.transfers[transfer as usize];
        let (number, ends) = (live.number, live.ends(transfer));
        let is_shared = self.rows[live.row as usize].row.is_persistent;
        let mut client = None;
        if is_shared {
            let stream = self.streams.entry(ends).or_default();
            if stream.is_busy {
                // It keeps the job alive without a ticket: `clean` looks for it.
                return stream.waiting.push_back((job, transfer));
            }
            stream.is_busy = true;
            client = stream.client;
        }
        let ticket = self.ticket(Ticket::Transfer { job, transfer });
        due.push(Due::Begin {
            ticket,
            profile,
            number,
            transfer: what,
            client,
            is_shared,
        });
    }

    fn end(&mut self, now: Time, job: u32, due: &mut Vec<Due>) {
        let Some(live) = &self.live[job as usize] else {
            return;
        };
        self.records[live.record as usize].end = Some(now);
        self.left -= 1;
        let entry = &self.rows[live.row as usize];
        if entry.row.every.is_none() && entry.begun < entry.row.jobs {
            let think = entry.row.think.draw(live.row, entry.begun);
            let next = now.saturating_add(Time(think));
            due.push(Due::At(next, Action::Job(live.row)));
        }
    }

    /// Forgets a job that is over once none of its transfers is under way.
    fn clean(&mut self, job: u32) {
        let Some(live) = &self.live[job as usize] else {
            return;
        };
        let is_over = self.records[live.record as usize].end.is_some();
        if !is_over || live.outstanding > 0 {
            return;
        }
        let waits = |stream: &Stream| stream.waiting.iter().any(|(of, _)| *of == job);
        let is_persistent = self.rows[live.row as usize].row.is_persistent;
        if !is_persistent || !self.streams.values().any(waits) {
            self.live[job as usize] = None;
            self.free.push(job);
        }
    }
}

impl Live {
    /// What transfers that share a connection have in common.
    fn ends(&self, transfer: u32) -> Ends {
        let JobTransfer {
            profile, transfer, ..
        } = &self.graph.transfers[transfer as usize];
        (self.row, *profile, transfer.source, transfer.destination)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distribution::FlowSize;

    struct OneGate;

    impl JobSource for OneGate {
        fn job(&mut self, _: u32) -> JobGraph {
            JobGraph {
                gates: vec![Gate::default()],
                ..JobGraph::default()
            }
        }
    }

    #[test]
    fn a_job_that_starts_late_does_not_delay_the_next() {
        let ms = Time::from_millis;
        let mut jobs = Jobs::default();
        let (start, action) = jobs.add(JobRow {
            traffic: 0,
            client: None,
            start: ms(5),
            jobs: 3,
            think: Draws::new(FlowSize::Fixed(0), 1),
            every: Some(Draws::new(FlowSize::Fixed(ms(100).0), 1)),
            is_persistent: false,
            source: Box::new(OneGate),
        });
        assert_eq!((start, action), (ms(5), Action::Job(0)));
        let due = jobs.start_late(start, ms(9), 0);
        assert_eq!(due, [Due::At(ms(105), Action::Job(0))]);
        assert_eq!(jobs.start(ms(105), 0), [Due::At(ms(205), Action::Job(0))]);
        let starts: Vec<Time> = jobs.into_records().iter().map(|job| job.start).collect();
        assert_eq!(starts, [ms(9), ms(105)]);
    }
}
