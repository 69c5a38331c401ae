// SPDX-License-Identifier: Apache-2.0
//! A meeting point of threads that meet every few microseconds of work: to sleep and be woken would
//! take longer.

use std::hint;
use std::sync::atomic::{
    AtomicBool, AtomicUsize,
    Ordering::{AcqRel, Acquire, Release},
};
use std::thread;

/// Looks before the core is offered to others: about ten microseconds.
const LOOKS: u32 = 1000;

/// All threads wait until all have come; what they wrote before, all see afterwards.
pub struct Barrier {
    threads: usize,
    come: AtomicUsize,
    meetings: AtomicUsize,
    broken: AtomicBool,
}

/// Breaks the barrier when its thread panics, or the others would wait forever.
pub struct Alarm<'a>(&'a Barrier);

impl Barrier {
    /// A barrier for so many threads.
    pub fn new(threads: usize) -> Barrier {
        Barrier {
            threads,
            come: AtomicUsize::new(0),
            meetings: AtomicUsize::new(0),
            broken: AtomicBool::new(false),
        }
    }

    /// To be held by each thread while it works.
    pub fn alarm(&self) -> Alarm<'_> {
        Alarm(self)
    }

    /// Waits for all the others; false: one of them panicked.
    pub fn wait(&self) -> bool {
        let meeting = self.meetings.load(Acquire);
        if self.come.fetch_add(1, AcqRel) + 1 == self.threads {
            self.come.store(0, Release);
            self.meetings.store(meeting.wrapping_add(1), Release);
            return !self.broken.load(Acquire);
        }
        let mut looks = 0;
        while self.meetings.load(Acquire) == meeting {
            if self.broken.load(Acquire) {
                return false;
            }
            looks += 1;
            if looks < LOOKS {
                hint::spin_loop();
            } else {
                thread::yield_now();
            }
        }
        !self.broken.load(Acquire)
    }
}

impl Drop for Alarm<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.broken.store(true, Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_thread_leaves_before_all_have_arrived() {
        let barrier = Barrier::new(3);
        let count = AtomicUsize::new(0);
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for round in 1..=200 {
                        count.fetch_add(1, AcqRel);
                        assert!(barrier.wait());
                        assert!(count.load(Acquire) >= 3 * round);
                    }
                });
            }
        });
        assert_eq!(count.load(Acquire), 600);
    }

    #[test]
    fn a_panic_frees_those_who_wait() {
        let barrier = Barrier::new(2);
        thread::scope(|scope| {
            let lost = scope.spawn(|| {
                let _alarm = barrier.alarm();
                panic!("meant");
            });
            assert!(lost.join().is_err());
            assert!(!barrier.wait());
        });
    }
}
