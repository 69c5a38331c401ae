// SPDX-License-Identifier: Apache-2.0
//! Requests for a reload on a socket, which are answered, as a signal cannot be: `penstockd reload`
//! reports whether the configuration is in force.
//!
//! A request is a connection. The answer is two lines: the path of the daemon's configuration, then [`RELOADED`]
//! or [`REFUSED`] and what or why.

use std::fs::Permissions;
use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail, ensure};
use penstock_linux::agent_folders::daemon_lock_name;
use penstock_linux::note;
use penstock_linux::socket::peer;

use crate::format::printable;
use crate::host::audit::Asker;
use crate::port::PinsArg;

const RELOADED: &str = "reloaded: ";
const REFUSED: &str = "refused: ";

/// Requests answered at once; the others wait.
const AT_ONCE: usize = 16;

/// The longest line that is sent, characters: a socket always has room for it.
const LONGEST: usize = 4096;

/// The longest path of a socket, bytes (`sun_path` without its zero).
const LONGEST_PATH: usize = 107;

/// The socket of a daemon, in the folder of locks, which only the superuser can enter.
fn path(pins: &PinsArg) -> PathBuf {
    pins.locks.join(daemon_lock_name(&pins.dir) + ".socket")
}

fn check_length(path: &Path) -> Result<()> {
    let length = path.as_os_str().len();
    ensure!(
        length <= LONGEST_PATH,
        "{}: a path of {length} bytes, while a socket has at most {LONGEST_PATH}; shorten agent.locks or agent.pins",
        path.display()
    );
    Ok(())
}

fn bind(path: &Path) -> Result<UnixListener> {
    check_length(path)?;
    let bind = || {
        let listener = UnixListener::bind(path)?;
        listener.set_nonblocking(true)?;
        std::fs::set_permissions(path, Permissions::from_mode(0o600))?;
        Ok(listener)
    };
    bind().map_err(|error: std::io::Error| anyhow!("{}: {error}", path.display()))
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
        let listener = bind(&path).inspect_err(|error| {
            note!("{error}; penstockd reload has no answer, send SIGHUP instead");
        });
        Requests {
            listener: listener.ok(),
            path,
        }
    }

    /// Readable while a request waits.
    pub fn as_fd(&self) -> Option<BorrowedFd<'_>> {
        self.listener.as_ref().map(AsFd::as_fd)
    }

    /// The requests that wait. The configuration is to be read after this, so that it is at least as new as
    /// they are.
    pub fn take(&self) -> Vec<UnixStream> {
        let accepted = self.listener.iter().flat_map(UnixListener::incoming);
        let accepted = accepted.map_while(std::io::Result::ok).take(AT_ONCE);
        // One that does not read keeps no other waiting.
        let ready = accepted.filter(|request| request.set_nonblocking(true).is_ok());
        ready.collect()
    }
}

impl Drop for Requests {
    fn drop(&mut self) {
        if self.listener.is_some() {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// The process that made a request.
pub fn asker(request: &UnixStream) -> Option<Asker> {
    let (uid, pid) = peer(request).ok()?;
    Some(Asker::new(uid, pid))
}

/// Answers requests of the daemon with this configuration: what was done, or why it is not in force.
pub fn answer(requests: Vec<UnixStream>, config: &Path, outcome: &Result<String>) {
    let line = match outcome {
        Ok(line) => format!("{RELOADED}{line}"),
        Err(error) => format!("{REFUSED}{error:#}"),
    };
    let line: String = printable(&line).chars().take(LONGEST).collect();
    let text = format!("{}\n{line}", name(config));
    for mut request in requests {
        // The other side may have gone away.
        let _ = request.write_all(text.as_bytes());
    }
}

/// A configuration's path, on one line.
fn name(config: &Path) -> String {
    let path = config.canonicalize().unwrap_or_else(|_| config.to_owned());
    printable(&path.display().to_string())
}

/// Has the daemon of a folder of pins reload its configuration, and returns its line.
///
/// # Errors
/// No daemon answers, it has another configuration, or this is not in force.
pub fn ask(pins: &PinsArg, config: &Path) -> Result<String> {
    let path = path(pins);
    check_length(&path).context("the daemon has no socket; send it SIGHUP")?;
    let mut stream = UnixStream::connect(&path).with_context(|| {
        let path = path.display();
        match pins.daemon().is_some() {
            true => format!("{path}: the daemon has no socket, as its log explains; send it SIGHUP"),
            false => format!(
                "no daemon answers at {path}; start it, or restart it if agent.pins or agent.locks has changed"
            ),
        }
    })?;
    let mut text = String::new();
    let read = stream.read_to_string(&mut text);
    let Some((own, line)) = text.split_once('\n').filter(|_| read.is_ok()) else {
        bail!("the daemon ended before it answered");
    };
    if own != name(config) {
        bail!(
            "{}: not the configuration of this daemon, which is {own} and was read again; do: penstockd reload --config {own}",
            config.display()
        );
    }
    match line.strip_prefix(RELOADED) {
        Some(line) => Ok(line.to_owned()),
        None => bail!("{}", line.strip_prefix(REFUSED).unwrap_or(line)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_too_long_for_a_socket_is_one_line() {
        let folder = tempfile::tempdir().unwrap();
        let left = LONGEST_PATH - folder.path().as_os_str().len() - 1;
        let longest = folder.path().join("x".repeat(left));
        bind(&longest).unwrap();
        let too_long = folder.path().join("x".repeat(left + 1));
        let line = bind(&too_long).unwrap_err().to_string();
        let reason = "a path of 108 bytes, while a socket has at most 107; shorten agent.locks";
        assert!(line.contains(reason), "{line}");
        let pins = PinsArg {
            dir: "/none".into(),
            locks: too_long,
        };
        let line = format!("{:#}", ask(&pins, Path::new("p.toml")).unwrap_err());
        assert!(
            line.starts_with("the daemon has no socket; send it SIGHUP: /"),
            "{line}"
        );
        assert_eq!(line.lines().count(), 1, "{line}");
    }
}
