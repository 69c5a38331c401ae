// SPDX-License-Identifier: Apache-2.0
//! A large fabric as several simulations that meet often enough (conservative synchronization).
//!
//! What leaves a part reaches another only after the delay of a link. So all parts run from the
//! next event of any of them for as long as the least such delay, hand over what they have for each
//! other, and go on. The parts, and so the results, depend on the scenario alone: one thread or
//! several work through the same parts.

use super::{Inputs, RunError, ports, schedule_traffic, traffic::ClientProfiles};
use crate::fabric::Fabric;
use crate::parallel::{Barrier, Partition};
use crate::simulation::{Action, Mail, Simulation};
use penstock_scenario::units::Time;
use penstock_scenario::{self, Mode, Scenario, Scheme, Traffic};
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

/// Progress is told this often.
const STEPS: u64 = 10_000;

/// A fabric with fewer hosts stays whole, and so does one whose parts would meet more often: on one
/// core they would throw each other out of its cache (evidence/speed/README.md).
const LEAST_HOSTS: usize = 256;
const LEAST_LOOKAHEAD: Time = Time::from_micros(10);

/// How many parts a large fabric has. More cost more, each of them a copy of what all know.
const PARTS: usize = 2;

/// The parts of the scenario's fabric: `parts` of them, or as its size suggests. Only one where
/// something knows the whole: a controller, or clients whose next push begins when the other end
/// has the last.
pub fn partition(
    scenario: &Scenario,
    scheme: &Scheme,
    fabric: &Fabric,
    parts: Option<usize>,
) -> Partition {
    let acts_at_both_ends = |traffic: &Traffic| match traffic {
        Traffic::Incast(spec) => spec.mode == Mode::Push && spec.requests > 1,
        _ => false,
    };
    let is_global = scheme.controller != penstock_scenario::Controller::None
        || scenario.traffic.values().any(acts_at_both_ends);
    if is_global || parts.is_none() && fabric.hosts < LEAST_HOSTS {
        return Partition::whole(fabric);
    }
    // A window policy rewrites what enters beside its port, so its switch stays whole.
    let shares = scheme.window == penstock_scenario::Window::None;
    let partition = Partition::new(fabric, parts.unwrap_or(PARTS), shares);
    if parts.is_none() && partition.lookahead < LEAST_LOOKAHEAD {
        return Partition::whole(fabric);
    }
    partition
}

/// One part of the run, at rest: number `own` of the partition.
pub fn set_up(
    scenario: &Scenario,
    inputs: &Inputs,
    scheme: &Scheme,
    seed: u64,
    (fabric, partition, own): (&Fabric, &Partition, u16),
    measured: &[u32],
) -> Result<Simulation, RunError> {
    let profiles = ClientProfiles::of(scenario, scheme);
    let mut simulation = Simulation::new(fabric, profiles.configs, profiles.profiles, seed);
    if partition.parts > 1 {
        simulation.set_part(fabric, partition, own, seed);
    }
    ports::set_up(&mut simulation, scenario, scheme, fabric, seed)?;
    let is_own = |link: &&u32| simulation.owns_port(**link);
    let measured = measured.iter().filter(is_own).copied().collect();
    simulation.start(measured, scenario.measure.queue_every);
    if scenario.duration > simulation.network.horizon() {
        let (duration, longest) = (scenario.duration, simulation.network.horizon());
        return Err(RunError::TooLong { duration, longest });
    }
    schedule_traffic(&mut simulation, scenario, inputs, seed);
    simulation.at(scenario.measure.from, Action::MeasureStart);
    Ok(simulation)
}

/// What the threads share.
struct Meeting {
    parts: usize,
    barrier: Barrier,
    /// Two rounds of mail from each part to each: one is written while the other is read.
    mail: [Vec<Mutex<Mail>>; 2],
    /// When each part, or what it sent, has something to do next; likewise.
    next: [Vec<AtomicU64>; 2],
    stop: [AtomicBool; 2],
}

impl Meeting {
    fn new(parts: usize, threads: usize) -> Meeting {
        let mail = || (0..parts * parts).map(|_| Mutex::default()).collect();
        let next = || (0..parts).map(|_| AtomicU64::new(0)).collect();
        Meeting {
            parts,
            barrier: Barrier::new(threads),
            mail: [mail(), mail()],
            next: [next(), next()],
            stop: Default::default(),
        }
    }

    fn mail(&self, round: usize, from: usize, to: usize) -> MutexGuard<'_, Mail> {
        let mail = &self.mail[round][from * self.parts + to];
        mail.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives `part` what the others sent in the round before.
    fn deliver(&self, now: Time, round: usize, own: usize, part: &mut Simulation) {
        for from in (0..self.parts).filter(|from| *from != own) {
            part.receive(now, &mut self.mail(round, from, own));
        }
    }

    /// Takes what `part` has for the others, and notes when there is something to do next.
    fn collect(&self, now: Time, round: usize, own: usize, part: &mut Simulation) {
        part.network.hand_over(now);
        let mut next = part.network.next_time();
        for to in (0..self.parts).filter(|to| *to != own) {
            let mut mail = self.mail(round, own, to);
            part.post(to, &mut mail);
            next = next.min(mail.first());
        }
        self.next[round][own].store(next.0, Relaxed);
    }
}

impl Meeting {
    fn has_notes(&self) -> bool {
        let mut mail = self.mail[0].iter();
        mail.any(|mail| {
            mail.lock()
                .unwrap_or_else(PoisonError::into_inner)
                .has_notes()
        })
    }
}

/// Runs all parts until `end`, on up to `threads` threads.
pub fn play(
    mut simulations: Vec<Simulation>,
    lookahead: Time,
    end: Time,
    threads: usize,
    progress: &(dyn Fn(f64) -> bool + Sync),
) -> Result<Vec<Simulation>, RunError> {
    let parts = simulations.len();
    let each = parts.div_ceil(threads.clamp(1, parts));
    let meeting = Meeting::new(parts, parts.div_ceil(each));
    let watch = |done: f64| progress(done);
    let quiet = |_: f64| true;
    let stopped = thread::scope(|scope| {
        let meeting = &meeting;
        let mut shares = simulations.chunks_mut(each).enumerate();
        let own = shares.next();
        let others: Vec<_> = shares
            .map(|(index, share)| {
                scope.spawn(move || work(meeting, index * each, share, lookahead, end, &quiet))
            })
            .collect();
        let stopped = own.is_none_or(|(_, share)| work(meeting, 0, share, lookahead, end, &watch));
        for other in others {
            // A scope would only say that a thread panicked, not why.
            other.join().unwrap_or_else(|panic| resume_unwind(panic));
        }
        stopped
    });
    if stopped {
        return Err(RunError::Interrupted);
    }
    // What was said in the last moments, and what it makes others say.
    loop {
        for (own, part) in simulations.iter_mut().enumerate() {
            meeting.deliver(end, 0, own, part);
            meeting.deliver(end, 1, own, part);
        }
        for (own, part) in simulations.iter_mut().enumerate() {
            meeting.collect(end, 0, own, part);
        }
        if !meeting.has_notes() {
            break;
        }
    }
    Ok(simulations)
}

/// One thread's share of the parts, the first of which is number `first`. True: stopped early.
fn work(
    meeting: &Meeting,
    first: usize,
    share: &mut [Simulation],
    lookahead: Time,
    end: Time,
    progress: &dyn Fn(f64) -> bool,
) -> bool {
    let _alarm = meeting.barrier.alarm();
    let (mut from, mut now, mut round) = (Time::ZERO, Time::ZERO, 0);
    let step = (end.0 / STEPS).max(1);
    let mut due = step;
    loop {
        let mut until = from.saturating_add(lookahead).min(end);
        if meeting.parts == 1 {
            until = Time(due).min(end);
        }
        for (index, part) in share.iter_mut().enumerate() {
            meeting.deliver(now, 1 - round, first + index, part);
            debug_assert!(part.network.next_time() >= now, "it arrived in the past");
            part.run_until(until);
            meeting.collect(until, round, first + index, part);
        }
        now = until;
        if now.0 >= due {
            due = now.0 + step;
            if !progress(now.0 as f64 / end.0 as f64) {
                meeting.stop[round].store(true, Relaxed);
            }
        }
        if !meeting.barrier.wait() {
            return true;
        }
        if meeting.stop[round].load(Relaxed) {
            return true;
        }
        if now == end {
            return false;
        }
        let next = meeting.next[round].iter().map(|next| next.load(Relaxed));
        from = Time(next.min().unwrap_or(u64::MAX));
        round = 1 - round;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fabric::Cable;
    use crate::simulation::{ClientProfile, Generator, Transfer};
    use penstock_scenario::units::{Buffer, Rate};
    use std::panic::{AssertUnwindSafe, catch_unwind};

    /// Fails when its first transfer is due.
    struct Broken(u32);

    impl Generator for Broken {
        fn next(&mut self) -> Option<(Time, Transfer)> {
            self.0 += 1;
            assert!(self.0 < 2, "meant");
            let transfer = Transfer {
                source: 0,
                destination: 1,
                bytes: 1,
            };
            Some((Time::from_millis(self.0.into()), transfer))
        }
    }

    #[test]
    fn a_panic_in_one_part_ends_the_run_with_its_message() {
        let cable = Cable {
            rate: Rate(1_000_000_000),
            delay: Time::from_micros(10),
        };
        let port = (cable, Buffer::Packets(10));
        let fabric = Fabric::dumbbell([1, 1, 0], Buffer::Packets(10), [port; 3]);
        let partition = Partition::new(&fabric, 2, true);
        assert_eq!(partition.parts, 2);
        for broken in [0, 1] {
            let profile = ClientProfile {
                traffic: 0,
                config: 0,
                request_bytes: None,
                reconnects: true,
                think: Time::ZERO,
            };
            let part = |own| {
                let profiles = vec![profile.clone()];
                let mut part = Simulation::new(&fabric, Vec::new(), profiles, 1);
                part.set_part(&fabric, &partition, own, 1);
                part.start(Vec::new(), Time::from_millis(1));
                if own == broken {
                    part.add_generator(0, Box::new(Broken(0)));
                }
                part
            };
            let parts = vec![part(0), part(1)];
            let lookahead = partition.lookahead;
            let run = || play(parts, lookahead, Time::from_millis(9), 2, &|_| true).map(drop);
            let panic = catch_unwind(AssertUnwindSafe(run)).expect_err("it panics");
            assert_eq!(panic.downcast_ref(), Some(&"meant"));
        }
    }
}
