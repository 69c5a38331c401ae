// SPDX-License-Identifier: Apache-2.0
//! Programs as filters of the clsact qdisc, for kernels without tcx (before Linux 6.6). Our filters
//! have a handle of their own, so that other tools' filters stay. Each program is pinned too, which
//! proves that the filter is ours.

use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use libbpf_rs::libbpf_sys as sys;
use libbpf_rs::{ErrorKind, Program, TC_EGRESS, TC_INGRESS, TcAttachPoint, TcHook, TcHookBuilder};
use penstock_linux::filter;

use super::hook::{HookProgram, HookPrograms};
use super::tcx;
use crate::host::bpf::{pin_next_to, pinned, program_info, program_name, successor};
use crate::port::Side;
use crate::port::pins::program_pin;

/// Of the first filters of an interface: ours always let the next decide, others may not. Of filters with
/// the same priority the one that came last is the first.
const PRIORITY: u32 = 1;

/// "pen" in ASCII.
const HANDLE: u32 = 0x0070_656e;

fn point(side: Side) -> TcAttachPoint {
    match side {
        Side::Egress => TC_EGRESS,
        Side::Ingress => TC_INGRESS,
    }
}

fn filter(program: BorrowedFd<'_>, index: u32, side: Side) -> TcHook {
    TcHookBuilder::new(program)
        .ifindex(index as i32)
        .replace(true)
        .handle(HANDLE)
        .priority(PRIORITY)
        .hook(point(side))
}

/// The number of the program of our filter on one side, if there is one.
pub fn query(index: u32, side: Side) -> Option<u32> {
    // A query ignores the descriptor.
    let unused = std::io::stdin();
    filter(unused.as_fd(), index, side).query().ok()
}

/// Whether our filter is on this side of the interface.
///
/// # Errors
/// The filter with our handle is another tool's.
pub fn is_attached(folder: &Path, index: u32, side: Side) -> Result<bool> {
    match query(index, side) {
        None => Ok(false),
        Some(id) if is_ours(folder, side, id) => Ok(true),
        Some(id) if is_of_another_version(folder, side, id) => Ok(false),
        Some(id) => bail!(
            "another program ({}) holds {} handle {HANDLE:#x} pref {PRIORITY}; remove it with: tc filter del",
            program_name(id).unwrap_or_else(|| id.to_string()),
            side.name()
        ),
    }
}

/// Whether a program is pinned as ours, or as its successor by a process that was killed then.
fn is_ours(folder: &Path, side: Side, id: u32) -> bool {
    let pin = program_pin(folder, side);
    [pinned(&pin), pinned(&successor(&pin))].contains(&Some(id))
}

/// Whether a program is pinned by a port in the folder `v*` of another version. It may be replaced.
fn is_of_another_version(folder: &Path, side: Side, id: u32) -> bool {
    let Some(versions) = folder.parent().and_then(Path::parent) else {
        return false;
    };
    let folders = |path: &Path| {
        let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect::<Vec<_>>()
    };
    let mut ports = folders(versions)
        .into_iter()
        .flat_map(|version| folders(&version));
    ports.any(|port| pinned(&program_pin(&port, side)) == Some(id))
}

/// Attaches `program` in place of ours, if there is one, and pins it.
///
/// # Errors
/// The kernel refuses, or another tool holds our handle.
pub fn attach(program: BorrowedFd<'_>, folder: &Path, index: u32, side: Side) -> Result<()> {
    let pin = program_pin(folder, side);
    let id = program_info(&program).map(|info| info.id);
    if is_attached(folder, index, side)? && query(index, side) == id && pinned(&pin) == id {
        return Ok(());
    }
    let new = pin_next_to(&program, &pin)?;
    if create_qdisc(index)? {
        let marker = marker(folder);
        std::fs::create_dir_all(&marker).with_context(|| marker.display().to_string())?;
    }
    filter(program, index, side)
        .attach()
        .map_err(|error| anyhow!("cannot attach at {}: {error}", side.name()))?;
    std::fs::rename(&new, &pin).with_context(|| pin.display().to_string())
}

/// Removes our filters, and the qdisc if we created it and no other filter is left.
///
/// # Errors
/// The kernel refuses.
pub fn detach(folder: &Path, index: u32) -> Result<()> {
    for side in Side::BOTH {
        let pin = program_pin(folder, side);
        // A first attach that was killed leaves the successor alone.
        let program = Program::fd_from_pinned_path(&pin)
            .or_else(|_| Program::fd_from_pinned_path(successor(&pin)));
        let Ok(program) = program else {
            continue;
        };
        if !is_attached(folder, index, side)? {
            continue;
        }
        match filter(program.as_fd(), index, side).detach() {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                bail!("cannot detach at {}: {error}", side.name())
            }
            _ => {}
        }
    }
    remove_created_qdisc(folder, index)
}

const fn hook(side: Side) -> filter::Hook {
    match side {
        Side::Egress => filter::Hook::Egress,
        Side::Ingress => filter::Hook::Ingress,
    }
}

/// The name of the first filter on the hook of ours, if that is not ours; empty if it has none.
///
/// # Errors
/// The kernel gives no answer.
pub fn first_other(folder: &Path, index: u32, side: Side) -> Result<Option<String>> {
    let Some(ours) = pinned(&program_pin(folder, side)) else {
        return Ok(None);
    };
    let filters = filter::all(index, hook(side))?;
    let is_ours = |filter: &filter::Filter| filter.program == Some(ours);
    Ok(match filters.first() {
        Some(first) if !is_ours(first) && filters.iter().any(is_ours) => Some(first.name.clone()),
        _ => None,
    })
}

/// Puts our filter before all others if another has come before it; returns that one's name. For some
/// microseconds packets pass without our program.
///
/// # Errors
/// The kernel refuses; our filter may then be gone.
pub fn keep_first(folder: &Path, index: u32, side: Side) -> Result<Option<String>> {
    let Some(other) = first_other(folder, index, side)? else {
        return Ok(None);
    };
    let program = Program::fd_from_pinned_path(program_pin(folder, side))?;
    let mut ours = filter(program.as_fd(), index, side);
    ours.detach()
        .and_then(|()| ours.attach().map(drop))
        .map_err(|error| anyhow!("cannot move to the front at {}: {error}", side.name()))?;
    Ok(Some(other))
}

/// The programs of the hook of our filter: those on tcx, which run first, then those of filters.
pub fn programs(folder: &Path, index: u32, side: Side) -> HookPrograms {
    let mut programs = tcx::query(index, side).unwrap_or_default();
    let ours = pinned(&program_pin(folder, side)).filter(|id| query(index, side) == Some(*id));
    let filters = filter::all(index, hook(side)).unwrap_or_default();
    programs.extend(
        filters
            .into_iter()
            .filter_map(|filter| Some(HookProgram::new(filter.program?, 0, &filter.name))),
    );
    HookPrograms { ours, programs }
}

/// A folder that marks the qdisc as created by us.
pub fn marker(folder: &Path) -> PathBuf {
    folder.join("made_clsact")
}

fn qdisc(index: u32) -> sys::bpf_tc_hook {
    sys::bpf_tc_hook {
        sz: size_of::<sys::bpf_tc_hook>() as sys::size_t,
        ifindex: index as i32,
        attach_point: sys::BPF_TC_INGRESS | sys::BPF_TC_EGRESS,
        ..Default::default()
    }
}

/// Creates the qdisc; false if it exists.
fn create_qdisc(index: u32) -> Result<bool> {
    let mut hook = qdisc(index);
    // SAFETY: `hook` is valid for the call.
    match -unsafe { sys::bpf_tc_hook_create(&raw mut hook) } {
        0 => Ok(true),
        libc::EEXIST => Ok(false),
        error => bail!(
            "cannot create a clsact qdisc: {}",
            std::io::Error::from_raw_os_error(error)
        ),
    }
}

fn remove_created_qdisc(folder: &Path, index: u32) -> Result<()> {
    if !marker(folder).exists() || filter::has_any(index)? {
        return Ok(());
    }
    let mut hook = qdisc(index);
    // SAFETY: `hook` is valid for the call.
    match -unsafe { sys::bpf_tc_hook_destroy(&raw mut hook) } {
        0 | libc::ENOENT | libc::EINVAL => Ok(()),
        error => bail!(
            "cannot remove the clsact qdisc: {}",
            std::io::Error::from_raw_os_error(error)
        ),
    }
}
