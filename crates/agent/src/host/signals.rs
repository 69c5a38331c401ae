// SPDX-License-Identifier: Apache-2.0
//! Signals that wait until polled, so that none interrupts a change of a port.

use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::audit::Asker;

/// A signal that commands act on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// SIGINT or SIGTERM.
    End,
    /// SIGHUP, and the process that sent it, if that is known.
    Reload(Option<Asker>),
}

/// Has this process end quietly when the reader of a pipe (`| head`) does. Sockets report EPIPE all the
/// same.
pub fn end_with_readers() {
    // SAFETY: no handler is involved.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
}

/// Has this process outlive the readers of what it writes; by default it ends with them (`main`).
pub fn outlive_readers() {
    // SAFETY: no handler is involved.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
}

/// Whether this process was started to ignore SIGHUP, as by nohup.
fn ignores_hangup() -> bool {
    // SAFETY: only the current action is read, into a struct of its type.
    unsafe {
        let mut action = std::mem::zeroed::<libc::sigaction>();
        libc::sigaction(libc::SIGHUP, std::ptr::null(), &raw mut action) == 0
            && action.sa_sigaction == libc::SIG_IGN
    }
}

/// The process that sent a signal, where the kernel vouches for it: a sender of SI_QUEUE could give any numbers.
fn sender(details: &libc::siginfo_t) -> Option<Asker> {
    // SAFETY: a signal of kill(2), tgkill(2) or pidfd_send_signal(2) has the sender's numbers.
    let asker = || unsafe { Asker::new(details.si_uid(), details.si_pid().cast_unsigned()) };
    [libc::SI_USER, libc::SI_TKILL]
        .contains(&details.si_code)
        .then(asker)
}

/// The blocked signals of this process.
pub struct Signals {
    set: libc::sigset_t,
    /// Readable while a signal waits; none if the kernel has no descriptors left.
    descriptor: Option<OwnedFd>,
    ignores_hangup: bool,
}

impl Signals {
    /// Blocks them from now on. To be called before other threads start, which inherit this.
    pub fn hold() -> Signals {
        // SAFETY: the set is made by sigemptyset before it is used.
        unsafe {
            let mut set = std::mem::zeroed();
            libc::sigemptyset(&raw mut set);
            for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
                libc::sigaddset(&raw mut set, signal);
            }
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
            let descriptor = libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC);
            Signals {
                set,
                descriptor: (descriptor >= 0).then(|| OwnedFd::from_raw_fd(descriptor)),
                ignores_hangup: ignores_hangup(),
            }
        }
    }

    /// The next one, or none within `timeout`.
    pub fn wait(&self, timeout: Duration) -> Option<Signal> {
        let timeout = libc::timespec {
            tv_sec: timeout.as_secs() as libc::time_t,
            tv_nsec: timeout.subsec_nanos().into(),
        };
        // SAFETY: the set and the time are valid, and the details are a struct of their type, all of whose
        // bytes may be zero.
        let (signal, details) = unsafe {
            let mut details = std::mem::zeroed::<libc::siginfo_t>();
            let set = &raw const self.set;
            let signal = libc::sigtimedwait(set, &raw mut details, &raw const timeout);
            (signal, details)
        };
        match signal {
            libc::SIGINT | libc::SIGTERM => Some(Signal::End),
            libc::SIGHUP => Some(Signal::Reload(sender(&details))),
            _ => None,
        }
    }

    /// Whether a signal ends a command that has nothing to reload: a terminal that is closed sends
    /// SIGHUP.
    pub fn is_end(&self, signal: Option<Signal>) -> bool {
        match signal {
            Some(Signal::End) => true,
            Some(Signal::Reload(_)) => !self.ignores_hangup,
            None => false,
        }
    }

    /// The same as `wait`, or none as soon as one of `others` is readable.
    pub fn wait_or(&self, others: &[BorrowedFd<'_>], timeout: Duration) -> Option<Signal> {
        let Some(descriptor) = &self.descriptor else {
            return self.wait(timeout);
        };
        let all = others.iter().copied().chain([descriptor.as_fd()]);
        let mut polled: Vec<_> = all
            .map(|one| PollFd::from_borrowed_fd(one, PollFlags::IN))
            .collect();
        let timeout = Timespec {
            tv_sec: timeout.as_secs() as i64,
            tv_nsec: timeout.subsec_nanos().into(),
        };
        let _ = poll(&mut polled, Some(&timeout));
        self.wait(Duration::ZERO)
    }
}
