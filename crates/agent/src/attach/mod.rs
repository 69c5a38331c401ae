// SPDX-License-Identifier: Apache-2.0
//! Attaches a scheme to a port, or replaces the scheme that is attached: no packet passes without
//! one of the two, and flows stay counted.
//!
//! | module | contents |
//! |---|---|
//! | [`load`] | programs that all ports share, and their maps |
//! | [`grant`], [`hcf`] | programs and qdiscs that a port has for itself |
//! | [`hook`], [`tcx`], [`clsact`] | where programs are attached |
//! | [`location`] | the interface that a port's programs are on |
//! | `snapshot` | what a failed replacement returns to |
//! | [`versions`], `migrate` | ports of other versions; what is taken over from them |
//! | [`detach`] | detaching |
//! | [`summary`] | what was attached, in one line |

pub mod clsact;
pub mod detach;
pub mod grant;
pub mod hcf;
pub mod hook;
pub mod load;
pub mod location;
mod migrate;
mod snapshot;
pub mod summary;
pub mod tcx;
pub mod versions;

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use penstock_linux::{link, note};
use penstock_scenario::units::Time;
use penstock_scenario::{Buffer, Deployment, Queue, deployment};

use self::hook::{Hook, HookChoice};
use self::load::Room;
use self::location::Location;
use self::snapshot::Snapshot;
use self::versions::Other;
use crate::host::{audit, bpf, interface, requirements};
use crate::port::heartbeat::{BEATS, EVERY, Keeper};
use crate::port::pins::{PinsLock, program_pin};
use crate::port::policy::{self, Policy};
use crate::port::slots::{self, Slots};
use crate::port::vxlan::VxlanPorts;
use crate::port::{PinsArg, Port, Side, config, sicc, sockets};
use crate::skel::port::types::{port_abi, port_config};

/// Default of the most flows of a port.
pub const FLOWS: u32 = 65_536;

/// Default age of a heartbeat from which packets pass untouched.
pub const STALE: Time = Time::from_secs(2);

/// How to attach, apart from the scheme.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The most flows of the port that are followed.
    pub flows: u32,
    /// For how much there is room in the maps that all ports share, if these are new.
    pub room: Room,
    /// Age of a heartbeat from which packets pass untouched.
    pub stale: Time,
    /// Which hook to use.
    pub hook: HookChoice,
    /// HCF: replace a root qdisc that a user configured, or one with a queue for each transmit queue.
    pub replace_qdisc: bool,
    /// UDP ports on which VXLAN is looked for.
    pub vxlan_ports: VxlanPorts,
    /// Whether the identifiers of tunnels are ignored, as those of senders and not of networks.
    pub ignores_vni: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            flows: FLOWS,
            room: Room::default(),
            stale: STALE,
            hook: HookChoice::Auto,
            replace_qdisc: false,
            vxlan_ports: VxlanPorts::default(),
            ignores_vni: false,
        }
    }
}

/// A port to which a scheme was attached. It stays attached when this is dropped.
pub struct Attached {
    port: Port,
    pins: PinsArg,
    /// Number of the folder of its pins.
    inode: Option<u64>,
    /// The number of the program attached at egress.
    program: Option<u32>,
    /// Size of the port's queue, as given or as its qdisc reports.
    pub buffer: Buffer,
}

impl Attached {
    /// Its maps.
    pub fn port(&self) -> &Port {
        &self.port
    }

    /// Renews the heartbeat and expires idle flows, in the background, until the result is dropped.
    ///
    /// # Errors
    /// The port is no longer attached.
    pub fn keep_alive(&self) -> Result<Keeper> {
        let stale = Duration::from_nanos(self.port.config()?.stale_ns);
        let keeper = Keeper::start(EVERY.min(stale / BEATS));
        let interface = self.interface();
        let interface = interface.as_ref().unwrap_or(&self.port.interface);
        keeper.keep(&self.pins, interface)?;
        Ok(keeper)
    }

    /// The name of the port, which may have changed with that of its interface; none if it is no longer
    /// attached, by this or by what replaced it.
    pub fn interface(&self) -> Option<String> {
        if let found @ Some(_) = self.find() {
            return found;
        }
        // Another process may be about to give its pins another name.
        let _lock = self.pins.lock();
        self.find()
    }

    fn find(&self) -> Option<String> {
        let is_it = |name: &String| self.pins.inode(name) == self.inode;
        let first = Some(self.port.interface.clone()).filter(is_it);
        first.or_else(|| self.pins.interfaces().ok()?.into_iter().find(is_it))
    }

    /// Detaches the scheme and removes all that belongs to it; a scheme that replaced it stays.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn detach(self) -> Result<()> {
        if self.interface().is_none() {
            return Ok(());
        }
        let lock = self.pins.lock()?;
        location::follow(&self.pins, &lock)?;
        let Some(interface) = self.find() else {
            return Ok(());
        };
        let program = bpf::pinned(&program_pin(&self.pins.of(&interface), Side::Egress));
        if program != self.program {
            return Ok(());
        }
        detach::detach_locked(&self.pins, &lock, &interface)
    }
}

/// A folder among a port's pins, which marks it as attached by an observer alone, until another
/// attaches it.
pub const BY_OBSERVER: &str = "by_observer";

/// Attaches the scheme `observe`, which changes nothing, for as long as an observer runs; none if the
/// port has a scheme, which stays. Without `buffer`, the port's qdisc is queried for its size.
///
/// # Errors
/// As [`attach`].
pub fn observe(
    pins: &PinsArg,
    interface: &str,
    buffer: Option<Buffer>,
) -> Result<Option<Attached>> {
    let mut port = deployment(&[("scheme".to_owned(), config::OBSERVE.to_owned())])?;
    port.buffer = buffer;
    let lock = begin(pins, interface)?;
    if pins.has(interface) {
        return Ok(None);
    }
    let attached = attach_locked(pins, &lock, interface, &port, &Options::default())?;
    std::fs::create_dir_all(attached.port.folder.join(BY_OBSERVER))?;
    drop(lock);
    read_sockets(pins, interface);
    Ok(Some(attached))
}

/// Attaches the scheme of `port` to `interface`.
///
/// # Errors
/// One line: the interface, kernel feature, privilege or file system that is missing, another
/// tool's object where ours should be, or what the kernel refuses.
pub fn attach(
    pins: &PinsArg,
    interface: &str,
    port: &Deployment,
    options: &Options,
) -> Result<Attached> {
    let lock = begin(pins, interface)?;
    let attached = attach_locked(pins, &lock, interface, port, options)?;
    read_sockets(pins, interface);
    Ok(attached)
}

/// Takes the lock, under which each port has the name that its interface has now.
fn begin(pins: &PinsArg, interface: &str) -> Result<PinsLock> {
    requirements::require(&pins.dir)?;
    interface::index(interface)?;
    let lock = pins.lock()?;
    location::follow(pins, &lock)?;
    Ok(lock)
}

fn read_sockets(pins: &PinsArg, interface: &str) {
    if let Err(error) = sockets::read(&pins.shared()) {
        note!("{interface}: {error:#}");
    }
}

/// The same for the holder of the lock, after [`location::follow`]; [`sockets::read`] is to follow.
///
/// # Errors
/// As [`attach`].
pub fn attach_locked(
    pins: &PinsArg,
    lock: &PinsLock,
    interface: &str,
    port: &Deployment,
    options: &Options,
) -> Result<Attached> {
    requirements::require(&pins.dir)?;
    let index = interface::index(interface)?;
    if let Queue::Hcf(_) = port.queue {
        requirements::bpf_qdisc().with_context(|| interface.to_owned())?;
    }
    let buffer = buffer_of(interface, index, port)?;
    hcf::check(interface, index, port, options.replace_qdisc)?;
    let settings = config::config(port, buffer, options.stale, interface::is_bare(interface))
        .map(|settings| port_config {
            ifindex: index,
            flows_max: options.flows,
            ..config::with_tunnels(settings, options.vxlan_ports, options.ignores_vni)
        })
        .with_context(|| format!("cannot attach to {interface}"))?;
    let folder = pins.of(interface);
    let others = versions::of(pins, interface)?;
    let hook = options.hook.resolve();
    let before = match is_attached(&folder, interface, index, hook)? {
        // A port that is incomplete cannot be restored; attaching completes it.
        true => Some(Snapshot::of(pins, interface).ok()),
        false => None,
    };
    let scheme = match port.window.is_credit() {
        true => config::OBSERVE, // its own are loaded for each port
        false => config::programs(port),
    };
    let programs = load::programs(pins, lock, scheme, options.room)
        .with_context(|| format!("cannot attach to {interface}"))?;
    if before.is_none() {
        detach::remove_port(pins, &folder)?;
        allocate(pins, &folder, interface, index)?;
    }
    let taken_over = match before {
        None => take_over(pins, interface, &others, hook, settings),
        Some(_) => Ok(settings),
    };
    let replaced = taken_over
        .and_then(|settings| {
            let own = grant::programs(pins, interface, port, buffer)?;
            let programs = own.as_ref().unwrap_or(&programs);
            replace(pins, interface, port, settings, programs, hook)
        })
        .and_then(|()| hcf::attach(&folder, index, port, buffer))
        // Last, as what it silences cannot be restored.
        .and_then(|()| grant::remove_unused(&folder, port));
    if let Err(error) = replaced {
        let Some(before) = before else {
            detach::remove(pins, interface).ok();
            return Err(error.context(format!("cannot attach to {interface}")));
        };
        let restored = before.map(|before| before.restore(hook, index));
        return Err(error.context(match restored {
            Some(Ok(())) => format!("{interface} stays as it was"),
            _ => format!("{interface} is attached in part; do: penstockd detach {interface}"),
        }));
    }
    let _ = std::fs::remove_dir(folder.join(BY_OBSERVER));
    audit::log("attach", interface, &[("scheme", &port.scheme)]);
    versions::remove(pins, lock, &others)?;
    Ok(Attached {
        port: pins.open(interface)?,
        inode: pins.inode(interface),
        pins: pins.clone(),
        program: bpf::pinned(&program_pin(&folder, Side::Egress)),
        buffer,
    })
}

/// Creates the folder of a port, with a slot.
fn allocate(pins: &PinsArg, folder: &Path, interface: &str, index: u32) -> Result<()> {
    let slots = Slots::open(pins)?;
    if let Some(other) = slots.port_at(index)? {
        let links = link::all()?;
        let all = pins.interfaces()?;
        let mut folders = all.iter().map(|interface| pins.of(interface));
        match folders.find(|folder| slots::mark_of(folder) == Some(other)) {
            Some(folder) if location::of(&folder, &links) != Location::Nowhere => bail!(
                "{} has a port on another interface with the index {index}, in another network namespace; choose another folder with --pins",
                pins.dir.display()
            ),
            Some(folder) => detach::remove_port(pins, &folder)?,
            None => slots.free_slot(other)?,
        }
    }
    std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    slots.allocate(folder, index).map_err(|error| {
        detach::remove_port(pins, folder).ok();
        error.context(format!("cannot attach to {interface}"))
    })
}

/// Takes over what other versions left on a new port's interface: what they knew of its flows, then the
/// links, in which the new programs replace theirs. Returns the settings, with their pause.
fn take_over(
    pins: &PinsArg,
    interface: &str,
    others: &[Other],
    hook: Hook,
    mut settings: port_config,
) -> Result<port_config> {
    for other in others.iter().filter(|other| other.index.is_some()) {
        let port = pins.open(interface)?;
        let version = other.version;
        match migrate::flows(other, &port) {
            Ok(flows) => note!("{interface}: {flows} flows are known from version {version}"),
            Err(error) => note!(
                "{interface}: flows that version {version} followed are no longer known: {error:#}"
            ),
        }
        // What cannot be read is not paused; the line above has the reason.
        if let Ok((pause_ns, resume_ns @ 1..)) = migrate::pause(other) {
            note!("{interface}: stays paused, as by version {version}");
            (settings.pause_ns, settings.resume_ns) = (pause_ns, resume_ns);
        }
        migrate::hook(other, &port, hook)?;
    }
    Ok(settings)
}

/// Size of a port's queue: as configured, else as its qdisc reports.
///
/// # Errors
/// Neither is known.
pub fn buffer_of(interface: &str, index: u32, port: &Deployment) -> Result<Buffer> {
    match port.buffer {
        Some(buffer @ Buffer::Bytes(bytes)) if bytes > u32::MAX.into() => {
            bail!("{interface}: a buffer of {buffer} is too large; the largest is 4 GB")
        }
        Some(buffer) => Ok(buffer),
        // A shim does not use the queue; behind a port, it is another's.
        None if !port.has_queue() => Ok(Buffer::Bytes(128_000)),
        None => interface::buffer(interface, index),
    }
}

/// Whether our programs are on this very interface. Pins of an interface that is gone do not count.
fn is_attached(folder: &Path, interface: &str, index: u32, hook: Hook) -> Result<bool> {
    let mut is_attached = false;
    for present in Hook::ALL {
        if !present.is_attached(folder, interface, index)? {
            continue;
        }
        if present != hook {
            bail!(
                "{interface} is attached by {}; do: penstockd detach {interface}, then attach again",
                present.name()
            );
        }
        is_attached = true;
    }
    Ok(is_attached)
}

/// Writes the configuration of the scheme's programs, and exchanges the programs.
fn replace(
    pins: &PinsArg,
    interface: &str,
    port: &Deployment,
    settings: port_config,
    programs: &[OwnedFd; 2],
    hook: Hook,
) -> Result<()> {
    let (folder, index) = (pins.of(interface), settings.ifindex);
    let scheme = config::programs(port);

    // Configuration and heartbeat are in place before the first packet.
    let maps = pins.open(interface)?;
    let running = maps.config()?;
    let is_configured = running.abi != port_abi::PORT_UNCONFIGURED;
    let is_other = is_configured && pins.scheme(interface).as_deref() != Some(scheme);
    let elements = maps.policies()?;
    let (number, rules) = policy::succeed(&Policy::of(port), &elements, running.policy);
    if let Some(rules) = rules {
        maps.set_policy(&rules)?;
    }
    let settings = port_config {
        policy: number,
        ..settings
    };
    let next = config::succeed(settings, Some(&running), is_other);
    // Twice: a program may read it half written, and resets its state only once it is whole.
    let generation = running.generation;
    maps.set_config(&port_config { generation, ..next })?;
    maps.set_config(&next)?;
    if let Some(shim) = port.shim() {
        if is_other {
            sicc::forget(&maps);
        }
        sicc::set_params(&maps, &shim.core(settings.buffer_bytes, None)?)?;
    }
    maps.beat()?;

    for (side, program) in Side::BOTH.into_iter().zip(programs) {
        hook.attach(program.as_fd(), &folder, index, side)?;
    }
    Ok(())
}
