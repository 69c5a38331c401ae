// SPDX-License-Identifier: Apache-2.0
//! Programs as filters of the clsact qdisc, where there is no tcx (before Linux 6.6). Ours have a
//! priority and a handle of their own, so that other tools' filters stay; each is pinned too, which
//! tells that it is ours.

use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use libbpf_rs::libbpf_sys as sys;
use libbpf_rs::{ErrorKind, Program, TC_EGRESS, TC_INGRESS, TcAttachPoint, TcHook, TcHookBuilder};

use super::tcx::Side;
use crate::host::bpf::{pin_over, pinned, program_name};
use crate::host::netlink;

/// Late among the filters of an interface: others decide first.
const PRIORITY: u32 = 0xc000;

/// "pen" in ASCII.
const HANDLE: u32 = 0x0070_656e;

fn point(side: Side) -> TcAttachPoint {
    match side {
        Side::Egress => TC_EGRESS,
        Side::Ingress => TC_INGRESS,
    }
}

fn hook(program: BorrowedFd<'_>, interface: u32, side: Side) -> TcHook {
    TcHookBuilder::new(program)
        .ifindex(interface as i32)
        .replace(true)
        .handle(HANDLE)
        .priority(PRIORITY)
        .hook(point(side))
}

/// The number of the program of our filter on a hook, if there is one.
pub fn query(interface: u32, side: Side) -> Option<u32> {
    // The descriptor is not used for a question.
    let none = std::io::stdin();
    hook(none.as_fd(), interface, side).query().ok()
}

/// Whether our filter on a hook is the pinned one. None if there is no filter.
///
/// # Errors
/// The filter with our handle is another tool's.
pub fn is_ours(interface: u32, side: Side, pin: &Path) -> Result<bool> {
    match query(interface, side) {
        None => Ok(false),
        Some(id) if pinned(pin) == Some(id) => Ok(true),
        Some(id) => bail!(
            "another program ({}) holds {} handle {HANDLE:#x} pref {PRIORITY}; remove it with: tc filter del",
            program_name(id).unwrap_or_else(|| id.to_string()),
            side.name()
        ),
    }
}

/// Puts `program` on a hook in place of ours, and pins it.
///
/// # Errors
/// The kernel refuses, or another tool holds our handle.
pub fn attach(program: &Program, interface: u32, side: Side, pin: &Path) -> Result<()> {
    is_ours(interface, side, pin)?;
    if make_qdisc(interface)? {
        let marker = marker(pin.parent().unwrap_or(Path::new("")));
        std::fs::create_dir_all(&marker).with_context(|| marker.display().to_string())?;
    }
    hook(program.as_fd(), interface, side)
        .attach()
        .map_err(|error| anyhow!("cannot attach at {}: {error}", side.name()))?;
    pin_over(&program.as_fd(), pin)
}

/// Takes our filter off a hook, if it is there.
///
/// # Errors
/// The kernel refuses.
pub fn detach(interface: u32, side: Side, pin: &Path) -> Result<()> {
    let Ok(program) = Program::fd_from_pinned_path(pin) else {
        return Ok(());
    };
    if !is_ours(interface, side, pin)? {
        return Ok(());
    }
    match hook(program.as_fd(), interface, side).detach() {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(anyhow!("cannot detach at {}: {error}", side.name()))
        }
        _ => Ok(()),
    }
}

/// A folder that tells that the qdisc was made for us.
fn marker(folder: &Path) -> std::path::PathBuf {
    folder.join("made_clsact")
}

fn qdisc(interface: u32) -> sys::bpf_tc_hook {
    sys::bpf_tc_hook {
        sz: size_of::<sys::bpf_tc_hook>() as sys::size_t,
        ifindex: interface as i32,
        attach_point: sys::BPF_TC_INGRESS | sys::BPF_TC_EGRESS,
        ..Default::default()
    }
}

/// Makes the qdisc; whether there was none.
fn make_qdisc(interface: u32) -> Result<bool> {
    let mut hook = qdisc(interface);
    // SAFETY: `hook` is valid for the call.
    match -unsafe { sys::bpf_tc_hook_create(&raw mut hook) } {
        0 => Ok(true),
        libc::EEXIST => Ok(false),
        error => bail!(
            "cannot make a clsact qdisc: {}",
            std::io::Error::from_raw_os_error(error)
        ),
    }
}

/// Removes the qdisc if it was made for us and nobody else has a filter there.
///
/// # Errors
/// The kernel refuses.
pub fn remove_if_made(interface: u32, folder: &Path) -> Result<()> {
    if !marker(folder).exists() || netlink::has_filters(interface)? {
        return Ok(());
    }
    let mut hook = qdisc(interface);
    // SAFETY: `hook` is valid for the call.
    match -unsafe { sys::bpf_tc_hook_destroy(&raw mut hook) } {
        0 | libc::ENOENT | libc::EINVAL => Ok(()),
        error => bail!(
            "cannot remove the clsact qdisc: {}",
            std::io::Error::from_raw_os_error(error)
        ),
    }
}
