// SPDX-License-Identifier: Apache-2.0
//! The agent: Grant at a pod's port is attached and detached by `penstockd`.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use penstock_linux::agent_folders::{self, daemon_lock_name};
use penstock_linux::netns::NetNs;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use serde::Deserialize;

use crate::config::{Config, Limit, Side};
use crate::error::{Code, Error, Result};
use crate::record::Record;

/// How long a port in a pod's namespace may take to appear, in tenths of a second.
const PATIENCE: u32 = 50;

/// The options of `penstockd attach` for a limit.
pub fn options(side: Side, limit: &Limit) -> Vec<String> {
    let side = match side {
        Side::Port => "port",
        Side::Limit => "limit",
    };
    let rate = format!("{} b/s", limit.rate_bps);
    let buffer = format!("{} B", limit.buffer_bytes());
    let words = [
        "--scheme", "grant", "--side", side, "--rate", &rate, "--buffer", &buffer,
    ];
    words.map(str::to_owned).to_vec()
}

/// `penstockd`, as the configuration names it, for the port of a record.
struct Agent<'a> {
    config: &'a Config,
    record: &'a Record,
}

impl Agent<'_> {
    fn interface(&self) -> &str {
        match self.record.own_folder {
            Some(_) => &self.record.interface,
            None => &self.record.host_interface,
        }
    }

    fn pins(&self) -> Option<PathBuf> {
        let pins = self.config.pins.clone();
        match &self.record.own_folder {
            // Apart from the agent's, whose ports are those of the host's namespace.
            Some(own) => {
                let mut folder = pins.unwrap_or_else(|| agent_folders::PINS.into());
                folder.as_mut_os_string().push("-cni");
                Some(folder.join(own))
            }
            None => pins,
        }
    }

    fn locks(&self) -> PathBuf {
        match &self.record.own_folder {
            Some(own) => self.config.locks.join("pods").join(own),
            None => self.config.locks.clone(),
        }
    }

    fn command(&self, verb: &str) -> Command {
        let mut command = Command::new(&self.config.penstockd);
        command.args([verb, self.interface()]);
        if let Some(pins) = self.pins() {
            command.arg("--pins").arg(pins);
        }
        command.arg("--locks").arg(self.locks());
        command.stdin(Stdio::null());
        command
    }

    /// Does something where the interface is: in the pod's namespace, as long as that is there.
    fn inside<T>(&self, work: impl FnOnce() -> T) -> Result<T> {
        match NetNs::open(&self.record.netns) {
            Ok(netns) if self.record.own_folder.is_some() => Ok(netns.run(work)?),
            _ => Ok(work()),
        }
    }

    /// Removes the folders of its own, if they are empty.
    fn remove_folders(&self) {
        if self.record.own_folder.is_some() {
            for folder in [self.pins(), Some(self.locks())].into_iter().flatten() {
                let _ = std::fs::remove_dir(folder);
            }
        }
    }

    /// The port; none if there is nothing of it.
    fn port(&self) -> Option<Port> {
        let mut command = self.command("status");
        command
            .args(["--json", "--for", "0 s"])
            .stderr(Stdio::null());
        // By its name, another one could be found on the host.
        let output = self.inside(|| command.output()).ok()?.ok()?;
        let ports: Vec<Port> = serde_json::from_slice(&output.stdout).ok()?;
        ports.into_iter().next().filter(|_| output.status.success())
    }
}

/// What `penstockd status --json` prints of a port.
#[derive(Deserialize)]
struct Port {
    scheme: Option<String>,
    attached: Sides,
}

#[derive(Deserialize)]
struct Sides {
    egress: bool,
    ingress: bool,
}

impl Port {
    fn is_whole(&self) -> bool {
        self.scheme.as_deref() == Some("grant") && self.attached.egress && self.attached.ingress
    }
}

/// Runs a command of the agent.
fn run(command: &mut Command) -> Result<()> {
    let output = command.output().map_err(|error| {
        let program = command.get_program().to_string_lossy();
        Error::new(Code::Io, format!("{program}: {error}"))
    })?;
    match output.status.success() {
        true => Ok(()),
        false => {
            let text = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            Err(Error::new(Code::Io, "penstockd failed").with(text))
        }
    }
}

/// Attaches the port of a record, or replaces its parameters.
///
/// # Errors
/// penstockd is missing or refuses.
pub fn attach(config: &Config, record: &Record) -> Result<()> {
    let agent = Agent { config, record };
    let mut command = agent.command("attach");
    command.args(&record.attach);
    if record.own_folder.is_none() {
        return run(&mut command);
    }
    // No daemon looks into the pod's namespace: a process of its own stays until the port is detached.
    for folder in [agent.pins(), Some(agent.locks())].into_iter().flatten() {
        let made = std::fs::create_dir_all(&folder);
        made.map_err(|error| Error::new(Code::Io, format!("{}: {error}", folder.display())))?;
    }
    agent.inside(|| run(&mut agent.command("detach")))?.ok();
    command
        .arg("--stay")
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    // SAFETY: setsid is safe to call after a fork.
    unsafe {
        command.pre_exec(|| Ok(rustix::process::setsid().map(drop)?));
    }
    let started = NetNs::open(&record.netns)?.run(|| command.spawn())?;
    let child = started.map_err(|error| Error::new(Code::Io, format!("penstockd: {error}")));
    let outcome = child.and_then(|mut child| {
        wait_for(&agent, &mut child).inspect_err(|_| {
            // What stays in the namespace would keep it, and the name of its port.
            let _ = child.kill();
            let _ = child.wait();
        })
    });
    if outcome.is_err() {
        let _ = agent.inside(|| run(&mut agent.command("detach")));
        agent.remove_folders();
    }
    outcome
}

/// Waits until a process has attached its port.
fn wait_for(agent: &Agent<'_>, child: &mut Child) -> Result<()> {
    for _ in 0..PATIENCE {
        if agent.port().is_some_and(|port| port.is_whole()) {
            return Ok(());
        }
        if let Ok(Some(status)) = child.try_wait() {
            return Err(Error::new(Code::Io, format!("penstockd ended: {status}")));
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    Err(Error::new(
        Code::Io,
        "penstockd did not attach the port in time",
    ))
}

/// Whether the port of a record is attached.
pub fn is_attached(config: &Config, record: &Record) -> bool {
    let port = Agent { config, record }.port();
    port.is_some_and(|port| port.is_whole())
}

/// Attaches the port of a record if it is not attached, and its interface still has its name.
///
/// # Errors
/// penstockd is missing or refuses.
pub fn restore(config: &Config, record: &Record) -> Result<()> {
    let is_none = record.attach.is_empty() || is_of_another(record)?;
    if is_none || is_attached(config, record) {
        return Ok(());
    }
    attach(config, record)
}

/// Detaches the port of a record, if it is attached.
///
/// # Errors
/// penstockd is there, and refuses.
pub fn detach(config: &Config, record: &Record) -> Result<()> {
    let agent = Agent { config, record };
    if record.attach.is_empty() || is_of_another(record)? {
        return Ok(());
    }
    if agent.port().is_none() {
        agent.remove_folders();
        return Ok(());
    }
    let detached = agent.inside(|| run(&mut agent.command("detach")))?;
    agent.remove_folders();
    // Another may have detached it in between.
    match agent.port() {
        Some(_) => detached,
        None => Ok(()),
    }
}

/// Whether the name of a record's port on the host is now that of another interface.
fn is_of_another(record: &Record) -> Result<bool> {
    let (Some(index), None) = (record.host_index, &record.own_folder) else {
        return Ok(false);
    };
    let now = penstock_linux::link::index(&record.host_interface)?;
    Ok(now.is_some_and(|now| now != index))
}

/// Whether the agent can attach ports, and its daemon runs.
///
/// # Errors
/// Why not.
pub fn is_ready(config: &Config) -> Result<()> {
    run(Command::new(&config.penstockd).arg("--version"))?;
    if config.side == Side::Port && !has_daemon(config) {
        let msg = "penstockd's daemon does not run";
        return Err(
            Error::new(Code::Io, msg).with("start it: systemctl start penstockd, or its DaemonSet")
        );
    }
    Ok(())
}

/// Whether a daemon holds the lock of its folder of pins.
fn has_daemon(config: &Config) -> bool {
    let pins = config.pins.as_deref();
    let name = daemon_lock_name(pins.unwrap_or(Path::new(agent_folders::PINS)));
    let Ok(file) = std::fs::File::open(config.locks.join(name)) else {
        return false;
    };
    // A daemon that was killed leaves the file, without its lock.
    flock(&file, FlockOperation::NonBlockingLockShared) == Err(Errno::WOULDBLOCK)
}
