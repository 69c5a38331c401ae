// SPDX-License-Identifier: Apache-2.0
//! This process: its limits, its processor time, its signals.

use std::io;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::time::{ClockId, clock_gettime};
use signal_hook::consts::{SIGINT, SIGTERM};

/// Seconds of processor time used so far, in user space and in the kernel.
pub fn processor_s() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Has timers of this thread fire when they are due, not up to 50 us later, and raises the limit of
/// open sockets as far as the system allows.
pub fn prepare() -> io::Result<()> {
    rustix::thread::set_current_timer_slack(NonZeroU64::new(1))?;
    let most = getrlimit(Resource::Nofile).maximum;
    let limit = Rlimit {
        current: most,
        maximum: most,
    };
    Ok(setrlimit(Resource::Nofile, limit)?)
}

/// Whether SIGINT or SIGTERM has arrived. Either ends a wait of the epoll.
#[derive(Clone, Debug)]
pub struct Interrupts(Arc<AtomicBool>);

impl Interrupts {
    /// From now on both signals are only noted.
    pub fn catch() -> io::Result<Interrupts> {
        let arrived = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            signal_hook::flag::register(signal, arrived.clone())?;
        }
        Ok(Interrupts(arrived))
    }

    /// Whether one has arrived.
    pub fn arrived(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
