// SPDX-License-Identifier: Apache-2.0
//! Where the programs and maps live: `DIR/vN/` of a bpffs, with a folder for each port and one for
//! what all ports share. N is the number of the maps' layout, [`ABI`].

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use libbpf_rs::Program;
use penstock_linux::agent_folders::{self, daemon_lock_name, lock_name};
use penstock_linux::link::is_name;

use super::lock::{self, Holder, Lock, private_folder};
use super::maps::Port;
use super::side::Side;
use crate::host::{bpf, interface};
use crate::skel::port::types::port_abi;

/// Number of the layout of the maps.
pub const ABI: u32 = port_abi::PENSTOCK_ABI.0;

/// Pin of the program at `side`.
pub fn program_pin(folder: &Path, side: Side) -> PathBuf {
    folder.join(format!("program_{}", side.name()))
}

/// Pin of our tcx link at `side`.
pub fn link_pin(folder: &Path, side: Side) -> PathBuf {
    folder.join(format!("link_{}", side.name()))
}

/// Folder of what all ports share: longer than any name of an interface.
pub const SHARED: &str = "shared_by_all_ports";

/// Pin of the program that expires idle flows, in the folder [`SHARED`].
pub const SWEEP: &str = "sweep";

/// Longest wait for a process that changes ports; the first attach takes half a second.
const PATIENCE: Duration = Duration::from_secs(5);

/// Stands for the dot of a VLAN's name, as a bpffs allows no dots; no interface has a colon.
const DOT: &str = ":";

/// The pins' folder, an option of most commands.
#[derive(clap::Args, Clone, Debug)]
pub struct PinsArg {
    /// Folder of the pins, on a bpffs. Interfaces of the same name in different network
    /// namespaces need different folders.
    #[arg(long = "pins", value_name = "DIR", default_value = agent_folders::PINS)]
    pub dir: PathBuf,
    /// Folder of the locks that keep commands from changing ports at the same time.
    #[arg(long = "locks", value_name = "DIR", default_value = agent_folders::LOCKS)]
    pub locks: PathBuf,
}

/// The right to change ports. When it is dropped, what all ports share is removed if there is no port,
/// and so are folders without pins.
pub struct PinsLock {
    pins: PinsArg,
    _lock: Lock,
}

impl Drop for PinsLock {
    fn drop(&mut self) {
        if self.pins.interfaces().is_ok_and(|all| all.is_empty()) {
            let _ = std::fs::remove_dir_all(self.pins.shared());
        }
        for folder in [&self.pins.ports(), &self.pins.dir] {
            // Only an empty folder can be removed so.
            let _ = std::fs::remove_dir(folder);
        }
    }
}

impl PinsArg {
    /// The pins in `dir`, with the usual folder of locks.
    pub fn at(dir: impl Into<PathBuf>) -> PinsArg {
        PinsArg {
            dir: dir.into(),
            locks: agent_folders::LOCKS.into(),
        }
    }

    /// The folder of all ports.
    pub fn ports(&self) -> PathBuf {
        self.dir.join(format!("v{ABI}"))
    }

    /// The folder of what all ports share.
    pub fn shared(&self) -> PathBuf {
        self.ports().join(SHARED)
    }

    /// The folder of one port.
    pub fn of(&self, interface: &str) -> PathBuf {
        self.ports().join(interface.replace('.', DOT))
    }

    /// Number of a port's folder, which changes if the port is detached and attached again; none if
    /// it has no pins.
    pub fn inode(&self, interface: &str) -> Option<u64> {
        let about = std::fs::metadata(self.of(interface)).ok()?;
        Some(about.ino())
    }

    /// Whether `interface` has pins. What is no name may be a path elsewhere, or the folder of another port
    /// ([`DOT`]) or of all ports.
    pub fn has(&self, interface: &str) -> bool {
        is_name(interface) && self.of(interface).is_dir()
    }

    /// Locks out other processes that change ports, until dropped. The folders of pins exist then, and
    /// only their owner can enter them. A process that releases the lock and wants it again comes after
    /// one that waits for it, which has the lock [`turn`].
    ///
    /// # Errors
    /// Another process changes ports for longer than [`PATIENCE`], or a folder is another user's.
    pub fn lock(&self) -> Result<PinsLock> {
        let holder = format!("pid {}: {}", std::process::id(), command_line());
        let name = lock_name(&self.dir);
        let end = Instant::now() + PATIENCE;
        let taken = match Lock::take(&self.locks, &turn(&name), &holder, PATIENCE)? {
            Ok(_turn) => {
                let left = end.saturating_duration_since(Instant::now());
                Lock::take(&self.locks, &name, &holder, left)?
            }
            Err(waiting) => Err(lock::holder(&self.locks, &name).unwrap_or(waiting)),
        };
        match taken {
            Ok(lock) => {
                self.make_private()?;
                Ok(PinsLock {
                    pins: self.clone(),
                    _lock: lock,
                })
            }
            Err(Holder(holder)) => bail!(
                "another process has been changing ports for {} s ({holder}); wait for it or end it, then try again",
                PATIENCE.as_secs()
            ),
        }
    }

    /// Whether another process waits until it may change ports.
    pub fn is_awaited(&self) -> bool {
        lock::holder(&self.locks, &turn(&lock_name(&self.dir))).is_some()
    }

    /// Locks out another daemon on the same pins, for as long as the lock is held.
    ///
    /// # Errors
    /// Another daemon runs, with its number and its configuration.
    pub fn lock_daemon(&self, config: &Path) -> Result<Lock> {
        let holder = format!("pid {}, {}", std::process::id(), config.display());
        let name = daemon_lock_name(&self.dir);
        match Lock::take(&self.locks, &name, &holder, Duration::from_secs(1))? {
            Ok(lock) => Ok(lock),
            Err(Holder(holder)) => bail!(
                "another daemon keeps the ports in {} ({holder}); end it first, or set agent.pins to another folder",
                self.dir.display()
            ),
        }
    }

    /// Whether this process may not see whether there are pins.
    pub fn is_hidden(&self) -> bool {
        std::fs::read_dir(&self.dir)
            .is_err_and(|error| error.kind() == std::io::ErrorKind::PermissionDenied)
    }

    /// The number and the configuration of the daemon that keeps the ports, and renews their heartbeats;
    /// none if there is none.
    pub fn daemon(&self) -> Option<String> {
        let holder = lock::holder(&self.locks, &daemon_lock_name(&self.dir));
        holder.map(|Holder(daemon)| daemon)
    }

    /// Creates the folders if they are missing. The root of a bpffs keeps its mode, as others use it.
    fn make_private(&self) -> Result<()> {
        let parent = self.dir.parent().unwrap_or(Path::new("/"));
        std::fs::create_dir_all(parent).with_context(|| parent.display().to_string())?;
        let device = |path: &Path| std::fs::metadata(path).ok().map(|about| about.dev());
        let is_mounted = self.dir.is_dir() && device(&self.dir) != device(parent);
        if !is_mounted {
            private_folder(&self.dir)?;
        }
        private_folder(&self.ports())?;
        Ok(())
    }

    /// The scheme whose programs are on the port, by its name or as [`OBSERVE`](super::config::OBSERVE).
    pub fn scheme(&self, interface: &str) -> Option<String> {
        let pin = program_pin(&self.of(interface), Side::Egress);
        let program = Program::fd_from_pinned_path(pin).ok()?;
        let name = bpf::name_of(&program)?;
        name.split_once("_egress").map(|(name, _)| name.to_owned())
    }

    /// The interfaces that have pins, by name.
    ///
    /// # Errors
    /// The folder exists but cannot be read.
    pub fn interfaces(&self) -> Result<Vec<String>> {
        let folder = self.ports();
        let entries = match std::fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error).with_context(|| folder.display().to_string()),
        };
        let mut names = Vec::new();
        for entry in entries {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if name != SHARED {
                names.push(interface_of(&name));
            }
        }
        names.sort();
        Ok(names)
    }

    /// The error of a command for a port that is not attached, without a remedy.
    pub fn not_attached(&self, interface: &str) -> anyhow::Error {
        let all = self.interfaces().unwrap_or_default();
        let attached = match all.as_slice() {
            [] => "no port is".to_owned(),
            all => format!("attached: {}", all.join(", ")),
        };
        anyhow!(
            "{interface} is not attached in {} ({attached})",
            self.dir.display()
        )
    }

    /// Opens the maps of one port.
    ///
    /// # Errors
    /// The port is not attached, with the list of those that are; or a map cannot be opened.
    pub fn open(&self, interface: &str) -> Result<Port> {
        if !self.has(interface) {
            let error = self.not_attached(interface);
            bail!("{error}; do: penstockd attach {interface} --scheme observe");
        }
        Port::open(&self.of(interface), &self.shared(), interface)
    }

    /// As [`PinsArg::open`], but waits for another process that is attaching the port.
    ///
    /// # Errors
    /// As those, or the other process takes longer than [`PATIENCE`], or there is no such interface to attach.
    pub fn open_settled(&self, interface: &str) -> Result<Port> {
        if !self.has(interface)
            && let Err(reason) = interface::index(interface)
        {
            bail!("{}; {reason:#}", self.not_attached(interface));
        }
        match self.open(interface) {
            Err(_) if self.has(interface) => {
                let _lock = self.lock()?;
                self.open(interface)
            }
            opened => opened,
        }
    }
}

/// Name of the lock of the process that has the lock `name` next.
fn turn(name: &str) -> String {
    format!("{name}.turn")
}

/// The interface whose pins are in a folder of this name.
pub fn interface_of(folder: &str) -> String {
    folder.replace(DOT, ".")
}

/// This process's program and arguments.
fn command_line() -> String {
    let words = std::env::args_os().map(|word| word.to_string_lossy().into_owned());
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};

    #[test]
    fn the_lock_goes_to_one_that_waits_before_it_returns() {
        let root = tempfile::tempdir().unwrap();
        let pins = PinsArg {
            locks: root.path().join("locks"),
            ..PinsArg::at(root.path().join("pins"))
        };
        let mut held = pins.lock().unwrap();
        assert!(!pins.is_awaited());
        for _ in 0..10 {
            let (inside, pins) = (AtomicBool::new(false), &pins);
            held = std::thread::scope(|scope| {
                scope.spawn(|| {
                    let _lock = pins.lock().unwrap();
                    inside.store(true, Ordering::Relaxed);
                });
                while !pins.is_awaited() {
                    std::thread::yield_now();
                }
                drop(held);
                let held = pins.lock().unwrap();
                assert!(inside.load(Ordering::Relaxed));
                held
            });
        }
        assert!(!pins.is_awaited());
        drop(held);
        assert_eq!(std::fs::read_dir(&pins.locks).unwrap().count(), 0);
    }

    #[test]
    fn what_all_ports_share_is_no_port() {
        let folder = tempfile::tempdir().unwrap();
        let pins = PinsArg::at(folder.path());
        for name in ["eth1", "eth1.7", SHARED] {
            std::fs::create_dir_all(pins.of(name)).unwrap();
        }
        assert_eq!(pins.interfaces().unwrap(), ["eth1", "eth1.7"]);
        for name in ["eth1", "eth1.7"] {
            assert!(pins.has(name), "{name}");
        }
        for name in [SHARED, "", "../vN", "eth1:7"] {
            assert!(!pins.has(name), "{name}");
        }
    }
}
