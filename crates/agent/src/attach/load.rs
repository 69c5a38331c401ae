// SPDX-License-Identifier: Apache-2.0
//! The programs of a scheme, which all ports share, and their maps. They are loaded when a port is the
//! first to need them, and pinned; what is pinned is reused, so that flows stay counted.

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::Mutex;

use anyhow::{Context, Result, anyhow, bail};
use libbpf_rs::skel::{OpenSkel, Skel, SkelBuilder};
use libbpf_rs::{MapCore, MapHandle, Object, OpenObject, PrintLevel, Program, ProgramMut};

use crate::host::bpf::pin_over;
use crate::host::requirements;
use crate::port::pins::{PinsLock, SWEEP};
use crate::port::slots::{STATS_PORTS, stats_pin};
use crate::port::sockets::SOCKETS;
use crate::port::{PinsArg, Side, flow_counts, layout, sicc};
use crate::skel::port::{PortSkel, PortSkelBuilder};

/// The program pinned as [`SWEEP`]: before Linux 6.6 no program of type syscall may lock a port.
pub fn sweep_name() -> &'static str {
    match requirements::version(&requirements::release()) {
        Some(version) if version < requirements::TCX_SINCE => "sweep_tc",
        _ => SWEEP,
    }
}

/// More than any log of the verifier; bounds the memory of a daemon that runs for long.
const LOG_BYTES: usize = 1 << 20;

/// Warnings of libbpf since the last load began: the error of a failed load has only one line.
static LOG: Mutex<String> = Mutex::new(String::new());

/// Collects libbpf's warnings, which it would write to standard error.
pub fn capture_log() {
    libbpf_rs::set_print(Some((PrintLevel::Warn, append_log)));
}

fn append_log(_: PrintLevel, text: String) {
    if let Ok(mut log) = LOG.lock() {
        if log.len() + text.len() > LOG_BYTES {
            log.clear();
        }
        log.push_str(&text);
    }
}

/// Before a load whose error is to have only its own warnings.
pub(super) fn clear_log() {
    if let Ok(mut log) = LOG.lock() {
        log.clear();
    }
}

/// Marks the build of the pinned programs, in the folder that all ports share.
const BUILD: &str = "build_";

/// For how much there is room in the maps that all ports share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Ports.
    pub ports: u32,
    /// Flows of all ports.
    pub flows: u32,
}

impl Default for Room {
    fn default() -> Room {
        Room {
            ports: 1024,
            flows: 262_144,
        }
    }
}

/// The room in the maps that all ports share, which are in `folder`; none if there is no port.
pub fn room(folder: &Path) -> Option<Room> {
    let entries = |map: &str| {
        Some(
            MapHandle::from_pinned_path(folder.join(map))
                .ok()?
                .max_entries(),
        )
    };
    Some(Room {
        ports: entries("config")?,
        flows: entries("flows4")?,
    })
}

/// Records of half-open flows for each CPU: the kernel keeps lists of 128 free ones for each.
const HALF_PER_CPU: usize = 256;
const HALF: usize = 8192;

/// The programs of a window scheme, or those that observe, egress and ingress: pinned ones of this build,
/// or newly loaded over the maps that all ports share, which get `room` if they are new.
///
/// # Errors
/// The kernel refuses the programs, or pinned maps are of another layout.
pub fn programs(pins: &PinsArg, _: &PinsLock, scheme: &str, room: Room) -> Result<[OwnedFd; 2]> {
    let folder = pins.shared();
    let build = folder.join(format!("{BUILD}{}", env!("PENSTOCK_PORT_BUILD")));
    let names = names(scheme);
    if build.is_dir() {
        let [egress, ingress] = names
            .each_ref()
            .map(|name| Program::fd_from_pinned_path(folder.join(name)));
        if let (Ok(egress), Ok(ingress)) = (egress, ingress) {
            return Ok([egress, ingress]);
        }
    }
    std::fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    let mut object = MaybeUninit::uninit();
    let reads_sockets = requirements::sockets().is_ok();
    let skel = load(&mut object, &folder, scheme, reads_sockets, room)?;
    let object = skel.object();
    if !build.is_dir() {
        remove_builds(&folder)?;
        pin_over(&program(object, sweep_name())?.as_fd(), &folder.join(SWEEP))?;
        if reads_sockets {
            pin_over(&program(object, SOCKETS)?.as_fd(), &folder.join(SOCKETS))?;
        }
        layout::pin(object, &folder)?;
    }
    if sicc::is_scheme(scheme) {
        pin_over(
            &program(object, sicc::ORDER)?.as_fd(),
            &folder.join(sicc::ORDER),
        )?;
    }
    let mut loaded = Vec::new();
    for name in &names {
        let program = program(object, name)?.as_fd().try_clone_to_owned()?;
        pin_over(&program, &folder.join(name))?;
        loaded.push(program);
    }
    if !build.is_dir() {
        std::fs::create_dir(&build).with_context(|| build.display().to_string())?;
    }
    loaded
        .try_into()
        .map_err(|_| anyhow!("a scheme has two programs"))
}

/// The pin of a map that all ports share, in their folder.
pub(super) fn pin_of(map: &str) -> String {
    match map {
        "stats_first" => stats_pin(0),
        name => name.to_owned(),
    }
}

/// The names of a scheme's programs.
fn names(scheme: &str) -> [String; 2] {
    Side::BOTH.map(|side| format!("{scheme}_{}", side.name()))
}

/// Removes the programs of other builds, but for the sweep, which is replaced. Those on hooks stay there.
fn remove_builds(folder: &Path) -> Result<()> {
    let entries = std::fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    for entry in entries.flatten() {
        let (name, path) = (entry.file_name(), entry.path());
        let name = name.to_string_lossy();
        let removed = match &*name {
            name if name.starts_with(BUILD) => std::fs::remove_dir(&path),
            name if Side::BOTH.iter().any(|side| name.ends_with(side.name())) => {
                std::fs::remove_file(&path)
            }
            _ => Ok(()),
        };
        removed.with_context(|| path.display().to_string())?;
    }
    Ok(())
}

fn program<'o>(object: &'o Object, name: &str) -> Result<ProgramMut<'o>> {
    let mut programs = object.progs_mut();
    programs
        .find(|program| program.name() == name)
        .ok_or_else(|| anyhow!("this build has no program {name}"))
}

fn load<'o>(
    object: &'o mut MaybeUninit<OpenObject>,
    folder: &Path,
    scheme: &str,
    reads_sockets: bool,
    room: Room,
) -> Result<PortSkel<'o>> {
    clear_log();
    let names = names(scheme);
    let takes_orders = sicc::is_scheme(scheme);
    let mut open = PortSkelBuilder::default().open(object)?;
    for mut program in open.open_object_mut().progs_mut() {
        let name = program.name().to_string_lossy().into_owned();
        program.set_autoload(
            name == sweep_name()
                || names.contains(&name)
                || (name == SOCKETS && reads_sockets)
                || (name == sicc::ORDER && takes_orders),
        );
    }
    let half = HALF.max(HALF_PER_CPU * libbpf_rs::num_possible_cpus()?);
    for mut map in open.open_object_mut().maps_mut() {
        let name = map.name().to_string_lossy().into_owned();
        if name.contains('.') {
            continue; // constants of the object, which belong to its programs
        }
        if sicc::MAPS.contains(&name.as_str()) && !takes_orders {
            map.set_autocreate(false)?;
            continue;
        }
        let entries = match name.as_str() {
            "config"
            | "heartbeat"
            | "port"
            | flow_counts::MAP
            | "samples"
            | "events"
            | sicc::PARAMS
            | sicc::FRAMES => room.ports,
            "policy" => 2 * room.ports,
            "stats" => room.ports.div_ceil(STATS_PORTS),
            "flows4" | "flows6" | "records" | "known" => room.flows,
            "half_open" => half as u32,
            "slots" | "slots_used" | "stats_first" | "half_own" | "sweeps" | sicc::PAIRS => {
                map.max_entries()
            }
            _ => bail!("this build has no size for the map {name}"),
        };
        let pin = folder.join(pin_of(&name));
        let existing = MapHandle::from_pinned_path(&pin);
        map.set_max_entries(existing.map_or(entries, |map| map.max_entries()))?;
        map.set_pin_path(&pin)?;
    }
    open.load().map_err(|error| refused(&error, folder))
}

/// The error of programs that the kernel refuses, over the maps in `folder`.
pub(super) fn refused(error: &libbpf_rs::Error, folder: &Path) -> anyhow::Error {
    let log = LOG.lock().map(|log| log.clone()).unwrap_or_default();
    if log.contains("parameter mismatch") {
        return anyhow!(
            "the maps in {} are of another version of penstockd; do: penstockd detach --all, then attach again",
            folder.display()
        );
    }
    let detail = log.lines().last().unwrap_or_default();
    anyhow!("the kernel refuses the programs: {error}: {detail}; see: penstockd check")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_has_only_the_log_of_its_own_load_and_the_log_is_bounded() {
        append_log(
            PrintLevel::Warn,
            "map 'port': parameter mismatch\n".to_owned(),
        );
        let folder = Path::new("/no-such-bpffs/v1/eth1");
        let mut object = MaybeUninit::uninit();
        let error = load(&mut object, folder, "observe", false, Room::default())
            .err()
            .unwrap();
        assert!(!error.to_string().contains("another version"), "{error}");
        for _ in 0..5_000 {
            append_log(PrintLevel::Warn, "x".repeat(1_000));
        }
        assert!(LOG.lock().unwrap().len() <= LOG_BYTES);
        clear_log();
    }
}
