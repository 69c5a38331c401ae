// SPDX-License-Identifier: Apache-2.0
//! Puts a scheme on a port, or another scheme in place of the one there: without a packet that
//! passes by neither, and with the flows counted on.

pub mod clsact;
pub mod detach;
pub mod hcf;
pub mod hooks;
pub mod load;
pub mod tcx;

use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use libbpf_rs::{Object, ProgramMut};
use penstock_scenario::units::Time;
use penstock_scenario::{Buffer, Deployment, Queue, Window, deployment};

use self::tcx::Side;
use crate::host::{bpf, interface, queue_visibility, requirements};
use crate::port::config;
use crate::port::heartbeat::Alive;
use crate::port::pins;
use crate::port::{PinsArg, Port};
use crate::skel::port::PortSkel;
use crate::skel::port::types::port_config;

/// Entries of the tables of flows unless told otherwise: 64 bytes and a key each.
pub const FLOWS: u32 = 65_536;

/// How old a heartbeat may be unless told otherwise.
pub const STALE: Time = Time::from_secs(2);

/// Pin of the program at egress; each attaching loads a new one.
const PROGRAM: &str = "program_egress";

/// Where programs are put.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Hook {
    /// tcx where there is one (Linux 6.6), else clsact.
    #[default]
    Auto,
    /// Links on the tcx hooks.
    Tcx,
    /// Filters of a clsact qdisc.
    Clsact,
}

impl Hook {
    /// What the kernel of this machine has.
    pub fn resolve(self) -> Hook {
        match self {
            Hook::Auto if tcx::is_available() => Hook::Tcx,
            Hook::Auto => Hook::Clsact,
            hook => hook,
        }
    }
}

/// What is not of the scheme.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Entries of new tables of flows.
    pub flows: u32,
    /// A heartbeat older than this: packets pass untouched.
    pub stale: Time,
    /// Where programs are put.
    pub hook: Hook,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            flows: FLOWS,
            stale: STALE,
            hook: Hook::Auto,
        }
    }
}

/// A port on which a scheme was put; it stays there when this is dropped.
pub struct Attached {
    alive: Alive,
    pins: PinsArg,
    /// The number of the program put at egress.
    program: Option<u32>,
    /// What the port can hold, as given or as its qdisc says.
    pub buffer: Buffer,
}

impl Attached {
    /// Its maps.
    pub fn port(&self) -> &Port {
        &self.alive.port
    }

    /// Tells the programs that their agent lives, and has idle flows expire. Every 100 to 250 ms.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn beat_and_sweep(&self) -> Result<()> {
        self.alive.beat_and_sweep()
    }

    /// Whether the port is still attached, by this or anything put in its place since.
    pub fn is_pinned(&self) -> bool {
        self.alive.is_pinned()
    }

    /// Takes the scheme off again, and everything that belongs to it. What others have put in its
    /// place meanwhile stays.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn detach(self) -> Result<()> {
        let port = self.port();
        if !self.is_pinned() || bpf::pinned(&port.folder.join(PROGRAM)) != self.program {
            return Ok(());
        }
        detach::detach(&self.pins, &port.interface)
    }
}

/// Only watches `interface`, of which nothing is asked but what it can hold, if `buffer` is not
/// given.
///
/// # Errors
/// As [`attach`].
pub fn observe(pins: &PinsArg, interface: &str, buffer: Option<Buffer>) -> Result<Attached> {
    let mut port = deployment(&[("scheme".to_owned(), "observe".to_owned())])?;
    port.buffer = buffer;
    attach(pins, interface, &port, &Options::default())
}

/// Puts `port` on `interface`.
///
/// # Errors
/// One line: the interface, kernel, privilege or file system that is missing, something foreign
/// where our pins should be, or what the kernel refuses.
pub fn attach(
    pins: &PinsArg,
    interface: &str,
    port: &Deployment,
    options: &Options,
) -> Result<Attached> {
    requirements::require(&pins.dir)?;
    let index = interface::index(interface)?;
    if let Queue::Hcf(_) = port.queue {
        requirements::bpf_qdisc()?;
    }
    let buffer = match port.buffer {
        Some(buffer) => buffer,
        // It asks nothing of a queue.
        None if port.is_shim() => Buffer::Bytes(128_000),
        None => interface::buffer(interface, index)?,
    };
    let _lock = pins.lock()?;
    let folder = pins.of(interface);
    let hook = options.hook.resolve();
    let exists = occupant(&folder, interface, index, hook)?;
    if !exists {
        detach::remove_pins(&folder)?;
    }
    std::fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    let put = || put(pins, interface, index, port, buffer, options, hook);
    match put() {
        Err(error) if !exists => {
            detach::detach_locked(pins, interface).ok();
            Err(error.context(format!("cannot attach to {interface}")))
        }
        Err(error) => Err(error.context(format!("{interface} stays as it was"))),
        Ok(()) => Ok(Attached {
            alive: Alive::open(pins, interface)?,
            pins: pins.clone(),
            program: bpf::pinned(&folder.join(PROGRAM)),
            buffer,
        }),
    }
}

/// Whether our programs are on this very interface. Pins of an interface that is gone do not count.
fn occupant(folder: &Path, interface: &str, index: u32, hook: Hook) -> Result<bool> {
    let (mut has_link, mut has_filter) = (false, false);
    for side in Side::BOTH {
        let filter = folder.join(format!("program_{}", side.name()));
        has_filter |= clsact::is_ours(index, side, &filter)?;
        let pin = folder.join(format!("link_{}", side.name()));
        let Some((link, on)) = tcx::open(&pin, side)? else {
            continue;
        };
        let id = link.info()?.id;
        let is_here = tcx::query(index, side)?
            .iter()
            .any(|there| there.link == id);
        if !is_here && on != 0 {
            bail!(
                "{} is of another interface {interface}, number {on}, perhaps in another network namespace; choose another folder with --pins",
                folder.display()
            );
        }
        has_link |= is_here;
    }
    if has_filter && hook == Hook::Tcx || has_link && hook == Hook::Clsact {
        bail!(
            "{interface} is attached by the other hook; do: penstockd detach {interface}, then attach again"
        );
    }
    Ok(has_link || has_filter)
}

fn put(
    pins: &PinsArg,
    interface: &str,
    index: u32,
    port: &Deployment,
    buffer: Buffer,
    options: &Options,
    hook: Hook,
) -> Result<()> {
    let folder = pins.of(interface);
    let scheme = config::programs(port);
    let wanted = config::config(port, buffer, options.stale, interface::is_bare(interface))?;
    let mut object = MaybeUninit::uninit();
    let mut skel: PortSkel = load::load(&mut object, &folder, scheme, options.flows)?;

    // The programs find their orders and a heartbeat before the first packet.
    let maps = pins.open(interface)?;
    let running = maps.config()?;
    let is_other = running.abi != 0 && pins.scheme(interface).as_deref() != Some(scheme);
    let next = config::succeed(wanted, Some(&running), is_other);
    // Twice: programs may find it half written, and begin anew only once it is whole.
    let generation = running.generation;
    maps.set_config(&port_config { generation, ..next })?;
    maps.set_config(&next)?;
    maps.beat()?;

    let object = libbpf_rs::skel::Skel::object_mut(&mut skel);
    for side in Side::BOTH {
        let program = program(object, &format!("{scheme}_{}", side.name()))?;
        let pinned = folder.join(format!("program_{}", side.name()));
        if hook == Hook::Clsact {
            clsact::attach(&program, index, side, &pinned)?;
            continue;
        }
        let pin = folder.join(format!("link_{}", side.name()));
        match tcx::open(&pin, side)? {
            Some((mut link, _)) => link
                .update_prog(&program)
                .with_context(|| format!("cannot replace the program at {}", side.name()))?,
            None => tcx::attach(&program, index, side, &pin)?,
        }
        // Only the superuser may ask for a program by the link's number of it.
        bpf::pin_over(&program.as_fd(), &pinned)?;
    }
    bpf::pin_over(
        &program(object, load::sweep_name())?.as_fd(),
        &folder.join(pins::SWEEP),
    )?;
    hcf::attach(&folder, interface, index, port, buffer)
}

fn program<'o>(object: &'o mut Object, name: &str) -> Result<ProgramMut<'o>> {
    let mut programs = object.progs_mut();
    programs
        .find(|program| program.name() == name)
        .ok_or_else(|| anyhow!("this build has no program {name}"))
}

/// One line of warning where the programs cannot see the port's queue, which they act on.
pub fn warned(interface: &str, port: &Deployment) -> Option<String> {
    if port.is_shim() {
        return None;
    }
    let missing = queue_visibility::missing(interface, interface::find(interface)?)?;
    Some(format!("{interface}: {missing}"))
}

/// One line on a scheme that was put on a port.
pub fn told(interface: &str, port: &Deployment, attached: &Attached, hook: Hook) -> String {
    let what = match port.window {
        _ if port.is_shim() => "attached, tells ports the scales of windows".to_owned(),
        Window::None if matches!(port.queue, Queue::Hcf(_)) => {
            format!("attached, its qdisc holds {}", attached.buffer)
        }
        Window::None => "attached, changes nothing".to_owned(),
        _ => format!("attached, for a buffer of {}", attached.buffer),
    };
    let hook = match hook.resolve() {
        Hook::Clsact => "clsact",
        _ => "tcx",
    };
    let line = format!("{interface}: {} {what} ({hook})", port.scheme);
    match requirements::queue() {
        Err(without) if !port.is_shim() => format!("{line}; {without}"),
        _ => line,
    }
}
