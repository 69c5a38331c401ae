// SPDX-License-Identifier: Apache-2.0
use super::*;
use std::panic::{AssertUnwindSafe, catch_unwind};

const LOOKAHEAD: Time = Time(10);
const LATEST: Time = Time(1000);
const END: End = End {
    latest: LATEST,
    when_done: Time::NEVER,
};

/// Has an event every `period`, of which it sends the time to all the others.
struct Ticker {
    number: u64,
    period: u64,
    next: Time,
    fails_at: Time,
    done_at: Time,
    outboxes: Vec<Vec<Time>>,
    /// What came in: at which time, and the time sent.
    log: Vec<(Time, Time)>,
}

impl LogicalProcess for Ticker {
    type Message = Time;

    fn next_time(&self) -> Time {
        self.next
    }

    fn run_until(&mut self, until: Time) {
        while self.next <= until {
            assert!(self.next < self.fails_at, "process {} fails", self.number);
            for outbox in &mut self.outboxes {
                outbox.push(self.next);
            }
            self.next += Time(self.period);
        }
    }

    fn run_until_done(&mut self, until: Time) -> Time {
        if self.next > self.done_at {
            return Time::ZERO;
        }
        while self.next <= until {
            let at = self.next;
            self.run_until(at);
            if self.next > self.done_at {
                return at;
            }
        }
        Time::NEVER
    }

    fn receive(&mut self, now: Time, batch: &mut Batch<Time>) {
        self.log.extend(batch.messages().map(|sent| (now, sent)));
    }

    fn gather(&mut self, _now: Time) {}

    fn send(&mut self, to: usize, batch: &mut Batch<Time>) {
        batch.put(&mut self.outboxes[to]);
    }
}

fn tickers(count: usize) -> Vec<Ticker> {
    let ticker = |number: u64| Ticker {
        number,
        period: 3 + number * 4,
        next: Time(number),
        fails_at: Time::NEVER,
        done_at: Time::NEVER,
        outboxes: vec![Vec::new(); count],
        log: Vec::new(),
    };
    (0..count as u64).map(ticker).collect()
}

#[test]
fn messages_arrive_at_the_end_of_their_round_on_any_number_of_threads() {
    for count in [1, 2, 3, 4, 8] {
        let run_on = |threads| {
            let mut processes = tickers(count);
            let ended = run(&mut processes, LOOKAHEAD, END, threads, &|_| true);
            assert_eq!(ended, Some(LATEST));
            let logs: Vec<_> = processes.into_iter().map(|process| process.log).collect();
            logs
        };
        let expected = run_on(1);
        for (number, log) in expected.iter().enumerate() {
            let sent: usize = (0..count as u64)
                .filter(|other| *other != number as u64)
                .map(|other| 1 + ((LATEST.0 - other) / (3 + other * 4)) as usize)
                .sum();
            assert_eq!(log.len(), sent, "each message arrives once");
            for (now, sent) in log {
                assert!(sent <= now && *now <= *sent + LOOKAHEAD);
            }
        }
        for threads in 2..=count {
            assert_eq!(
                run_on(threads),
                expected,
                "{count} processes, {threads} threads"
            );
        }
    }
}

#[test]
fn a_panic_in_one_process_ends_the_run_with_its_message() {
    for broken in 0..3 {
        let mut processes = tickers(3);
        processes[broken].fails_at = Time(500);
        let all = || run(&mut processes, LOOKAHEAD, END, 3, &|_| true);
        let panic = catch_unwind(AssertUnwindSafe(all)).expect_err("it panics");
        let message = format!("process {broken} fails");
        assert_eq!(panic.downcast_ref(), Some(&message));
    }
}

#[test]
fn progress_stops_the_run() {
    for threads in [1, 2] {
        let mut processes = tickers(2);
        let ended = run(&mut processes, LOOKAHEAD, END, threads, &|done| done < 0.5);
        assert_eq!(ended, None);
        assert!(processes.iter().all(|process| process.next < Time(600)));
    }
}

#[test]
fn a_run_ends_at_the_instant_at_which_all_processes_are_done() {
    let until_done = |done_at: &[u64], threads, latest: u64, when_done: u64| {
        let mut processes = tickers(done_at.len());
        for (process, at) in processes.iter_mut().zip(done_at) {
            process.done_at = Time(*at);
        }
        let end = End {
            latest: Time(latest),
            when_done: Time(when_done),
        };
        let ended = run(&mut processes, LOOKAHEAD, end, threads, &|_| true);
        let ended = ended.expect("it was not stopped");
        let ran =
            |process: &Ticker| process.next > ended && process.next <= ended + Time(process.period);
        assert!(processes.iter().all(ran));
        ended.0
    };
    for latest in [1000, 100_000_000] {
        // Of a ticker that is done at 200, the last event is at 198 or, with a period of 7, at 197.
        assert_eq!(until_done(&[200], 1, latest, 0), 198);
        assert_eq!(until_done(&[200], 1, latest, 501), 501);
        for threads in [1, 2] {
            assert_eq!(until_done(&[100, 200], threads, latest, 0), 197);
            assert_eq!(until_done(&[200, 100], threads, latest, 0), 198);
            assert_eq!(until_done(&[100, 200], threads, latest, 501), 501);
        }
    }
    assert_eq!(until_done(&[100, 5000], 2, 1000, 0), 1000);
}
