// SPDX-License-Identifier: Apache-2.0
//! For tests: networks on one machine, child processes that cannot outlive their limit, a bpffs.
//! All of it is removed when dropped, and every failure is a panic that names its cause.
//!
//! | item | use |
//! |---|---|
//! | [`Pair`] | two hosts on one cable |
//! | [`Dumbbell`] | two hosts, and a switch between them whose port is a [`Tbf`](crate::qdisc::Tbf) |
//! | [`namespace`], [`cable`], [`address`] | the parts, for another network |
//! | [`create_netkit`], [`add_neighbour`], [`disable_tx_checksum_offload`], [`set_speed`] | what such a network may need |
//! | [`Process`], [`output`] | a child process with a time limit |
//! | [`until`], [`join`] | bounded waits for a condition, for a thread |
//! | [`Bpffs`] | a BPF file system of the test's own |
//! | [`tcp_counter`] | the kernel's counters of TCP in a namespace |
//! | [`alone`], [`from_environment`] | turns of tests that need the machine; how long a test takes |
//!
//! ```no_run
//! use penstock_linux::{qdisc::Tbf, testkit::Dumbbell};
//!
//! let port = Tbf { rate_bps: 200_000_000, burst_bytes: 4096, limit_bytes: 32_768 };
//! let network = Dumbbell::new(&["10.98.0.1/24"], &["10.98.0.2/24"], port);
//! let listener = network.right.run(|| std::net::TcpListener::bind("10.98.0.2:5001"));
//! ```

mod bpffs;
mod interface;
mod network;
mod process;

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

pub use bpffs::Bpffs;
pub use interface::{add_neighbour, create_netkit, disable_tx_checksum_offload, set_speed};
pub use network::{Dumbbell, Pair, address, cable, namespace, tcp_counter};
pub use process::{Process, Signal, output};

/// How long a test waits for something that takes milliseconds on an idle machine.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Pause between two looks at a condition.
const PAUSE: Duration = Duration::from_millis(10);

/// Waits until `holds`; how long it takes within [`PATIENCE`] is no matter of the test.
///
/// # Panics
/// The condition, described by `what`, did not come true in time.
#[track_caller]
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(
            start.elapsed() < PATIENCE,
            "not within {PATIENCE:?}: {what}"
        );
        std::thread::sleep(PAUSE);
    }
}

/// The result of a thread that must end within `limit`.
///
/// # Panics
/// The thread panicked, or still runs.
#[track_caller]
pub fn join<T>(thread: JoinHandle<T>, limit: Duration) -> T {
    let start = Instant::now();
    while !thread.is_finished() {
        assert!(
            start.elapsed() < limit,
            "a thread still runs after {limit:?}"
        );
        std::thread::sleep(PAUSE);
    }
    match thread.join() {
        Ok(result) => result,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

/// Lets one test of a program at a time go on, until the guard is dropped: for tests that need the machine.
pub fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The number in an environment variable, or `otherwise` if it is not set.
///
/// # Panics
/// It is no number.
pub fn from_environment(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |value| {
        value
            .parse()
            .unwrap_or_else(|_| panic!("{name}={value}: a number is needed"))
    })
}
