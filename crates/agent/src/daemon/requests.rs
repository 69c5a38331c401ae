// SPDX-License-Identifier: Apache-2.0
//! Requests for a reload on a socket, which are answered, as a signal cannot be: `penstockd reload`
//! reports whether the configuration is in force.
//!
//! A request is a connection. The answer is one line: [`RELOADED`] or [`REFUSED`], then what or why.

use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use penstock_linux::agent_folders::daemon_lock_name;
use penstock_linux::note;

use crate::port::PinsArg;

const RELOADED: &str = "reloaded: ";
const REFUSED: &str = "refused: ";

/// The socket of a daemon, in the folder of locks, which only the superuser can enter.
fn path(pins: &PinsArg) -> PathBuf {
    pins.locks.join(daemon_lock_name(&pins.dir) + ".socket")
}

/// The socket, which is removed when this is dropped.
pub struct Requests {
    listener: Option<UnixListener>,
    path: PathBuf,
}

impl Requests {
    /// Listens. The caller holds the daemon's lock: a socket that is there is of a daemon that was killed.
    /// If none can be made, as on a full disk, a reload still takes a signal.
    pub fn listen(pins: &PinsArg) -> Requests {
        let path = path(pins);
        let _ = std::fs::remove_file(&path);
        let listener = UnixListener::bind(&path).and_then(|listener| {
            listener.set_nonblocking(true)?;
            Ok(listener)
        });
        let listener = listener
            .inspect_err(|error| {
                let path = path.display();
                note!("{path}: {error}; penstockd reload has no answer, send SIGHUP instead");
            })
            .ok();
        Requests { listener, path }
    }

    /// Readable while a request waits.
    pub fn as_fd(&self) -> Option<BorrowedFd<'_>> {
        self.listener.as_ref().map(AsFd::as_fd)
    }

    /// All requests that wait. The configuration is to be read after this, so that it is at least as new as
    /// they are.
    pub fn take(&self) -> Vec<UnixStream> {
        let accepted = self.listener.iter().flat_map(UnixListener::incoming);
        accepted.map_while(std::io::Result::ok).collect()
    }
}

impl Drop for Requests {
    fn drop(&mut self) {
        if self.listener.is_some() {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Answers requests: what was done, or why nothing was.
pub fn answer(requests: Vec<UnixStream>, outcome: &Result<String>) {
    let line = match outcome {
        Ok(line) => format!("{RELOADED}{line}"),
        Err(error) => format!("{REFUSED}{error:#}"),
    };
    for mut request in requests {
        // A line always has room in the socket; the other side may have gone away.
        let _ = request.write_all(line.as_bytes());
    }
}

/// Has the daemon of a folder of pins reload, and returns its line.
///
/// # Errors
/// No daemon answers, or it refuses.
pub fn ask(pins: &PinsArg) -> Result<String> {
    let path = path(pins);
    let mut text = String::new();
    UnixStream::connect(&path)
        .and_then(|mut stream| stream.read_to_string(&mut text))
        .with_context(|| {
            let path = path.display();
            format!(
                "no daemon answers at {path}; start it, or restart it if agent.pins or agent.locks has changed"
            )
        })?;
    if let Some(line) = text.strip_prefix(RELOADED) {
        return Ok(line.to_owned());
    }
    match text.strip_prefix(REFUSED) {
        Some(reason) => bail!("{reason}"),
        None => bail!("the daemon ended before it answered"),
    }
}
