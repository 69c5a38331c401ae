// SPDX-License-Identifier: Apache-2.0
//! Two threads that do something for each of many flows at the same time, each on a CPU of its own.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Keeps this thread on a CPU.
///
/// # Panics
/// There is no such CPU.
pub fn stay_on(number: usize) {
    let mut cpus = rustix::thread::CpuSet::new();
    cpus.set(number);
    let moved = rustix::thread::sched_setaffinity(None, &cpus);
    moved.expect("needs two CPUs, without which there is no race");
}

/// Calls `work(cpu, step)` on CPUs 0 and 1: `prepare(step)` has run before, on CPU 0, and both begin at once.
pub fn together(steps: usize, prepare: impl Fn(usize) + Sync, work: impl Fn(usize, usize) + Sync) {
    let arrived = AtomicUsize::new(0);
    let go_through = |cpu| {
        stay_on(cpu);
        for step in 0..steps {
            if cpu == 0 {
                prepare(step);
            }
            arrived.fetch_add(1, Ordering::SeqCst);
            while arrived.load(Ordering::SeqCst) < 2 * (step + 1) {
                std::thread::yield_now();
            }
            work(cpu, step);
        }
    };
    std::thread::scope(|threads| {
        threads.spawn(|| go_through(0));
        threads.spawn(|| go_through(1));
    });
}
