// SPDX-License-Identifier: Apache-2.0
//! Child processes that end with their test, and at the latest at their limit.

use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

use rustix::fd::OwnedFd;
pub use rustix::process::Signal;
use rustix::process::{Pid, PidfdFlags, pidfd_open, pidfd_send_signal};

/// A running child process; killed when dropped, or when its limit is over.
#[derive(Debug)]
pub struct Process {
    /// The child, with those of its pipes that the command opened.
    pub child: Child,
    handle: Arc<OwnedFd>,
    limit: Duration,
    is_late: Arc<AtomicBool>,
    /// Ends the watch when dropped.
    _watch: Sender<()>,
}

impl Process {
    /// Starts `command` in the calling thread's network namespace, for at most `limit`.
    ///
    /// # Panics
    /// The program cannot be started.
    #[track_caller]
    pub fn spawn(command: &mut Command, limit: Duration) -> Process {
        let child = command
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let pid = Pid::from_child(&child);
        // A descriptor, unlike a number, never means another process.
        let handle = pidfd_open(pid, PidfdFlags::empty());
        let handle = Arc::new(handle.unwrap_or_else(|error| panic!("{command:?}: {error}")));
        let is_late = Arc::new(AtomicBool::new(false));
        let (watch, ended) = channel::<()>();
        let watched = (handle.clone(), is_late.clone());
        std::thread::spawn(move || {
            let (handle, is_late) = watched;
            if ended.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
                is_late.store(true, Ordering::Relaxed);
                let _ = pidfd_send_signal(&*handle, Signal::KILL);
            }
        });
        Process {
            child,
            handle,
            limit,
            is_late,
            _watch: watch,
        }
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends it a signal.
    ///
    /// # Panics
    /// It has ended.
    #[track_caller]
    pub fn signal(&self, signal: Signal) {
        if let Err(error) = pidfd_send_signal(&*self.handle, signal) {
            panic!("process {}: {error}", self.id());
        }
    }

    /// Whether it has ended.
    pub fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// Waits for its end.
    ///
    /// # Panics
    /// It had to be killed at its limit.
    #[track_caller]
    pub fn wait(&mut self) -> ExitStatus {
        let status = self.child.wait();
        self.assert_in_time("");
        status.unwrap_or_else(|error| panic!("process {}: {error}", self.id()))
    }

    #[track_caller]
    fn assert_in_time(&self, printed: &str) {
        let is_late = self.is_late.load(Ordering::Relaxed);
        assert!(
            !is_late,
            "process {} ran longer than {:?}; {printed}",
            self.id(),
            self.limit
        );
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = pidfd_send_signal(&*self.handle, Signal::KILL);
        let _ = self.child.wait();
    }
}

/// Runs `command` to its end, within `limit`; returns what it printed.
///
/// # Panics
/// The program cannot be started, or had to be killed at its limit.
#[track_caller]
pub fn output(command: &mut Command, limit: Duration) -> Output {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut process = Process::spawn(command, limit);
    // Both pipes are read at once, as the child may fill either.
    let errors = process.child.stderr.take().map(read_all);
    let printed = process.child.stdout.take().map(read_all);
    let status = process.child.wait();
    let take = |thread: Option<std::thread::JoinHandle<Vec<u8>>>| {
        thread
            .and_then(|thread| thread.join().ok())
            .unwrap_or_default()
    };
    let (stdout, stderr) = (take(printed), take(errors));
    process.assert_in_time(&format!(
        "{command:?} printed {:?} and {:?}",
        String::from_utf8_lossy(&stdout),
        String::from_utf8_lossy(&stderr)
    ));
    Output {
        status: status.unwrap_or_else(|error| panic!("{command:?}: {error}")),
        stdout,
        stderr,
    }
}

fn read_all(mut pipe: impl std::io::Read + Send + 'static) -> std::thread::JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = pipe.read_to_end(&mut bytes);
        bytes
    })
}
