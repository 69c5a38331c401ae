// SPDX-License-Identifier: Apache-2.0
//! A cable that delays: frames cross from one interface to another after a time, in their order.
//! For kernels without netem, and for rates of a few ten thousand frames a second.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use penstock_linux::netns::NetNs;

use super::raw::Raw;

/// How long a thread waits before it looks whether the cable is to end.
const PAUSE: Duration = Duration::from_millis(1);

/// Two threads, one for each direction; they end when this is dropped.
pub struct Delay {
    is_over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Delay {
    /// Joins two interfaces of a namespace; each direction takes `time`.
    pub fn new(netns: &NetNs, ends: [&str; 2], time: Duration) -> Delay {
        let is_over = Arc::new(AtomicBool::new(false));
        let threads = [ends, [ends[1], ends[0]]].map(|[from, to]| {
            let sockets = netns.run(|| (Raw::new(from), Raw::new(to)));
            let (from, to) = sockets.unwrap();
            let is_over = is_over.clone();
            std::thread::spawn(move || carry(&from, &to, time, &is_over))
        });
        Delay {
            is_over,
            threads: threads.into(),
        }
    }
}

impl Drop for Delay {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn carry(from: &Raw, to: &Raw, time: Duration, is_over: &AtomicBool) {
    let mut waiting: VecDeque<(Instant, Vec<u8>)> = VecDeque::new();
    let mut buffer = vec![0; 1 << 16];
    while !is_over.load(Ordering::Relaxed) {
        let now = Instant::now();
        while waiting.front().is_some_and(|(due, _)| *due <= now) {
            let (_, frame) = waiting.pop_front().unwrap();
            to.send(&frame);
        }
        let next = waiting.front().map_or(PAUSE, |(due, _)| *due - now);
        if let Some(length) = from.receive(&mut buffer, next.min(PAUSE)) {
            waiting.push_back((Instant::now() + time, buffer[..length].to_vec()));
        }
    }
}
