// SPDX-License-Identifier: Apache-2.0
//! Independent tasks on several threads, while the calling thread shows progress and handles Ctrl-C.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use pyo3::prelude::*;

/// How often progress is shown and signals are handled.
const TICK: Duration = Duration::from_millis(100);

/// A task's progress is counted in steps of a millionth, so that it fits an atomic integer.
const STEPS: f64 = 1e6;

/// What a task calls with the fraction it has done; false asks it to end early.
pub type Progress<'a> = &'a (dyn Fn(f64) -> bool + Sync);

/// Calls `work` for each task on `jobs` threads and returns what it gave, in the tasks' order.
///
/// `report(fraction of all tasks done, name of the task begun last)` is called on this thread,
/// attached to Python, once a tick. After a task failed no other is begun.
///
/// # Errors
/// What `report` raised, or `KeyboardInterrupt`, once the running tasks have stopped.
pub fn run<R, E>(
    py: Python<'_>,
    tasks: &[(String, u64)],
    jobs: usize,
    report: impl Fn(f64, &str) -> PyResult<()>,
    work: impl Fn(&(String, u64), Progress<'_>) -> Result<R, E> + Sync,
) -> PyResult<Vec<Result<R, E>>>
where
    R: Send,
    E: Send,
{
    let next = AtomicUsize::new(0);
    let failed = AtomicBool::new(false);
    let stop = AtomicBool::new(false);
    let done: Vec<AtomicU64> = tasks.iter().map(|_| AtomicU64::new(0)).collect();
    let (sender, receiver) = mpsc::channel();

    let worker = |sender: mpsc::Sender<(usize, Result<R, E>)>| {
        while !failed.load(Relaxed) && !stop.load(Relaxed) {
            let index = next.fetch_add(1, Relaxed);
            let Some(task) = tasks.get(index) else { break };
            let result = work(task, &|fraction| {
                done[index].store((fraction * STEPS) as u64, Relaxed);
                !stop.load(Relaxed)
            });
            failed.fetch_or(result.is_err(), Relaxed);
            done[index].store(STEPS as u64, Relaxed);
            if sender.send((index, result)).is_err() {
                break;
            }
        }
    };

    thread::scope(|scope| {
        let worker = &worker;
        for _ in 0..jobs.clamp(1, tasks.len().max(1)) {
            let sender = sender.clone();
            scope.spawn(move || worker(sender));
        }
        drop(sender);
        let receiver = std::sync::Mutex::new(receiver);
        let mut results = Vec::with_capacity(tasks.len());
        loop {
            let received = py.detach(|| {
                let receiver = receiver.lock().unwrap_or_else(|broken| broken.into_inner());
                receiver.recv_timeout(TICK)
            });
            match received {
                Ok(result) => results.push(result),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    let steps: u64 = done.iter().map(|steps| steps.load(Relaxed)).sum();
                    let fraction = steps as f64 / STEPS / tasks.len() as f64;
                    let begun = next.load(Relaxed).clamp(1, tasks.len());
                    let shown = py
                        .check_signals()
                        .and_then(|()| report(fraction, &tasks[begun - 1].0));
                    if let Err(error) = shown {
                        stop.store(true, Relaxed);
                        return Err(error);
                    }
                }
            }
        }
        results.sort_by_key(|(index, _)| *index);
        Ok(results.into_iter().map(|(_, result)| result).collect())
    })
}
