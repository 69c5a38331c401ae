// SPDX-License-Identifier: Apache-2.0
//! The loop over rounds: every shard runs until the same time, then all exchange what they have for
//! each other (conservative synchronization with a global lookahead).

use super::Batch;
use super::barrier::Barrier;
use penstock_scenario::units::Time;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

/// How often progress is reported in a run.
const REPORTS: u64 = 10_000;

/// A shard of the fabric with events of its own.
pub trait LogicalProcess: Send {
    /// What it sends to others besides packets.
    type Message: Send;

    /// When its next event is due.
    fn next_time(&self) -> Time;

    /// Runs until nothing is left to do up to and at `until`.
    fn run_until(&mut self, until: Time);

    /// The same, but stops after the event that leaves it nothing to do that the run waits for. Returns
    /// when that was: [`Time::ZERO`] where it was before, [`Time::NEVER`] where it is not yet.
    fn run_until_done(&mut self, until: Time) -> Time;

    /// Takes in what another process sent. All processes have reached `now`.
    fn receive(&mut self, now: Time, batch: &mut Batch<Self::Message>);

    /// Gathers what has left for others. All processes have reached `now`.
    fn gather(&mut self, now: Time);

    /// Puts what was gathered for process number `to` into `batch`, which is empty.
    fn send(&mut self, to: usize, batch: &mut Batch<Self::Message>);
}

/// What the threads share. All but the barrier is there twice: one half is written in a round while
/// the other, written in the round before, is read.
struct Exchange<M> {
    processes: usize,
    barrier: Barrier,
    /// From each process to each.
    batches: [Vec<Mutex<Batch<M>>>; 2],
    /// When each process, or what it sent, has its next event.
    next: [Vec<AtomicU64>; 2],
    stop: [AtomicBool; 2],
    /// When each process had nothing left to do that the run waits for.
    done: Vec<AtomicU64>,
}

impl<M: Send> Exchange<M> {
    fn new(processes: usize, threads: usize) -> Exchange<M> {
        let batches = || {
            let pairs = 0..processes * processes;
            pairs.map(|_| Mutex::default()).collect()
        };
        let next = || (0..processes).map(|_| AtomicU64::new(0)).collect();
        let never = (0..processes).map(|_| AtomicU64::new(u64::MAX));
        Exchange {
            processes,
            barrier: Barrier::new(threads),
            batches: [batches(), batches()],
            next: [next(), next()],
            stop: Default::default(),
            done: never.collect(),
        }
    }

    fn batch(&self, half: usize, from: usize, to: usize) -> MutexGuard<'_, Batch<M>> {
        let batch = &self.batches[half][from * self.processes + to];
        batch.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives process number `to` what the others have sent it.
    fn deliver(
        &self,
        now: Time,
        half: usize,
        to: usize,
        process: &mut impl LogicalProcess<Message = M>,
    ) {
        for from in (0..self.processes).filter(|from| *from != to) {
            process.receive(now, &mut self.batch(half, from, to));
        }
    }

    /// Takes what process number `from` has for the others, and notes when its next event is due.
    fn collect(
        &self,
        now: Time,
        half: usize,
        from: usize,
        process: &mut impl LogicalProcess<Message = M>,
    ) {
        process.gather(now);
        let mut next = process.next_time();
        for to in (0..self.processes).filter(|to| *to != from) {
            let mut batch = self.batch(half, from, to);
            process.send(to, &mut batch);
            next = next.min(batch.first_arrival());
        }
        self.next[half][from].store(next.0, Relaxed);
    }

    fn has_messages(&self, half: usize) -> bool {
        let mut batches = self.batches[half].iter();
        batches.any(|batch| {
            let batch = batch.lock();
            batch.unwrap_or_else(PoisonError::into_inner).has_messages()
        })
    }
}

/// When a run ends.
#[derive(Clone, Copy, Debug)]
pub struct End {
    /// At the latest.
    pub latest: Time,
    /// From then on at the instant at which all processes are done; [`Time::NEVER`]: only at `latest`.
    pub when_done: Time,
}

/// Runs all processes until `end`, on up to `threads` threads. `progress` gets the share that is
/// done, from 0 to 1, and stops the run by returning false. Returns when the run ended, `None` if it
/// was stopped; the messages of its last moments have been delivered.
pub fn run<P: LogicalProcess>(
    processes: &mut [P],
    lookahead: Time,
    end: End,
    threads: usize,
    progress: &(dyn Fn(f64) -> bool + Sync),
) -> Option<Time> {
    let count = processes.len();
    let each = count.div_ceil(threads.clamp(1, count));
    let exchange_of_run = Exchange::new(count, count.div_ceil(each));
    let shared = &exchange_of_run;
    let silent = |_: f64| true;
    let ended = thread::scope(|scope| {
        let mut shares = processes.chunks_mut(each).enumerate();
        let own = shares.next();
        let others: Vec<_> = shares
            .map(|(index, share)| {
                scope.spawn(move || work(shared, index * each, share, lookahead, end, &silent))
            })
            .collect();
        let ended = own.map_or(Some(end.latest), |(_, share)| {
            work(shared, 0, share, lookahead, end, progress)
        });
        for other in others {
            // A scope would only report that a thread panicked, not why.
            other.join().unwrap_or_else(|panic| resume_unwind(panic));
        }
        ended
    });
    if let Some(end) = ended {
        for (number, process) in processes.iter_mut().enumerate() {
            shared.deliver(end, 0, number, process);
            shared.deliver(end, 1, number, process);
        }
        exchange(processes, end);
    }
    ended
}

/// Delivers the messages that the processes have for each other at the end of the run, and those
/// that these cause, until there are no more.
pub fn exchange<P: LogicalProcess>(processes: &mut [P], end: Time) {
    let shared = Exchange::new(processes.len(), 1);
    loop {
        for (number, process) in processes.iter_mut().enumerate() {
            shared.collect(end, 0, number, process);
        }
        if !shared.has_messages(0) {
            return;
        }
        for (number, process) in processes.iter_mut().enumerate() {
            shared.deliver(end, 0, number, process);
        }
    }
}

/// The work of one thread: its share of the processes, the first of which is number `first`. Returns
/// when the run ended; `None`: it was stopped.
fn work<P: LogicalProcess>(
    shared: &Exchange<P::Message>,
    first: usize,
    share: &mut [P],
    lookahead: Time,
    end: End,
    progress: &dyn Fn(f64) -> bool,
) -> Option<Time> {
    let End { latest, when_done } = end;
    let _alarm = shared.barrier.alarm();
    let (mut from, mut now, mut half) = (Time::ZERO, Time::ZERO, 0);
    let step = (latest.0 / REPORTS).max(1);
    let mut report_at = step;
    loop {
        let mut until = from.saturating_add(lookahead).min(latest);
        if shared.processes == 1 {
            until = Time(report_at).min(latest);
        }
        for (index, process) in share.iter_mut().enumerate() {
            shared.deliver(now, 1 - half, first + index, process);
            debug_assert!(process.next_time() >= now, "it arrived in the past");
        }
        let mut is_last = until == latest;
        if until >= when_done {
            // None goes beyond the instant at which it is done before all know when the last one is.
            for (index, process) in share.iter_mut().enumerate() {
                let done = &shared.done[first + index];
                if done.load(Relaxed) == u64::MAX {
                    done.store(process.run_until_done(until).0, Relaxed);
                }
            }
            if !shared.barrier.wait() {
                return None;
            }
            let done = shared.done.iter().map(|done| done.load(Relaxed));
            let all_done = Time(done.max().unwrap_or(0)).max(when_done).max(now);
            is_last |= all_done <= until;
            until = until.min(all_done);
        }
        for (index, process) in share.iter_mut().enumerate() {
            process.run_until(until);
            shared.collect(until, half, first + index, process);
        }
        now = until;
        if now.0 >= report_at {
            report_at = now.0 + step;
            if !progress(now.0 as f64 / latest.0 as f64) {
                shared.stop[half].store(true, Relaxed);
            }
        }
        if !shared.barrier.wait() || shared.stop[half].load(Relaxed) {
            return None;
        }
        if is_last {
            return Some(now);
        }
        let next = shared.next[half].iter().map(|next| next.load(Relaxed));
        from = Time(next.min().unwrap_or(u64::MAX));
        half = 1 - half;
    }
}

#[cfg(test)]
#[path = "rounds_tests.rs"]
mod tests;
