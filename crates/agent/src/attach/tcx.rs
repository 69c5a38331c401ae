// SPDX-License-Identifier: Apache-2.0
//! Programs on the two tcx hooks of an interface (Linux 6.6). A hook runs the programs of several
//! tools in a row; ours return `TCX_NEXT`, so that the others run too. A pinned link keeps a
//! program attached.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use libbpf_rs::query::LinkTypeInfo;
use libbpf_rs::{Link, Program, libbpf_sys as sys};

use super::hook::{HookProgram, HookPrograms};
use crate::host::bpf::{c_path, pin_program};
use crate::host::requirements;
use crate::port::Side;
use crate::port::pins::{link_pin, program_pin};

const fn attach_type(side: Side) -> sys::bpf_attach_type {
    match side {
        Side::Egress => sys::BPF_TCX_EGRESS,
        Side::Ingress => sys::BPF_TCX_INGRESS,
    }
}

/// Whether the kernel has tcx: queries the loopback of this network namespace.
pub fn is_available() -> bool {
    query(1, Side::Ingress).is_ok()
}

/// Requires tcx, on which other tools' programs keep their order.
///
/// # Errors
/// Which hook is used instead, or that the kernel does not answer without privileges.
pub fn require() -> Result<&'static str> {
    let Err(error) = query(1, Side::Ingress) else {
        return Ok("links on the tcx hooks");
    };
    match error.downcast_ref::<std::io::Error>() {
        Some(refused) if refused.kind() == std::io::ErrorKind::PermissionDenied => {
            bail!("not known without privileges; do: sudo penstockd check")
        }
        _ => bail!(
            "no tcx (needs Linux {}.{}); filters of clsact are used",
            requirements::TCX_SINCE.0,
            requirements::TCX_SINCE.1
        ),
    }
}

/// Whether our link is on this side of the interface.
///
/// # Errors
/// The pin is not our link, or is that of an interface of the same name elsewhere.
pub fn is_attached(folder: &Path, interface: &str, index: u32, side: Side) -> Result<bool> {
    let Some((link, linked_index)) = open(folder, side)? else {
        return Ok(false);
    };
    let id = link.info()?.id;
    let is_here = query(index, side)?.iter().any(|program| program.link == id);
    if !is_here && linked_index != 0 {
        bail!(
            "{} belongs to another interface {interface}, number {linked_index}, perhaps in another network namespace; choose another folder with --pins",
            folder.display()
        );
    }
    Ok(is_here)
}

/// Where on a hook a program is attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Before all others. Ours go here: they always pass packets on, so that others lose nothing,
    /// while others may end the chain.
    First,
    /// After all others.
    Last,
}

/// Puts `program` into our link, or first on the hook by a new one; pins both.
///
/// # Errors
/// The kernel refuses.
pub fn attach(program: BorrowedFd<'_>, folder: &Path, index: u32, side: Side) -> Result<()> {
    let pin = link_pin(folder, side);
    match open(folder, side)? {
        Some((link, 1..)) => update(&link, program)
            .with_context(|| format!("cannot replace the program at {}", side.name()))?,
        present => {
            // A link that was detached, as by a detach that was killed, takes no other program.
            if present.is_some() {
                std::fs::remove_file(&pin).with_context(|| pin.display().to_string())?;
            }
            create_link(&program, index, side, Place::First, &pin)?;
        }
    }
    // Without a pin, only the superuser could look up a program by the number in its link.
    pin_program(&program, &program_pin(folder, side))
}

fn update(link: &Link, program: BorrowedFd<'_>) -> std::io::Result<()> {
    let (link, program) = (link.as_fd().as_raw_fd(), program.as_raw_fd());
    // SAFETY: both descriptors are valid, and no options are passed.
    match unsafe { sys::bpf_link_update(link, program, std::ptr::null()) } {
        0 => Ok(()),
        status => Err(std::io::Error::from_raw_os_error(-status)),
    }
}

/// The name of the program that runs first on the hook of our link, if that is not ours.
///
/// # Errors
/// Something else is pinned in the place of our link, or the interface is gone.
pub fn first_other(folder: &Path, index: u32, side: Side) -> Result<Option<String>> {
    let Some((link, linked_index)) = open(folder, side)? else {
        return Ok(None);
    };
    if linked_index != index {
        return Ok(None);
    }
    let id = link.info()?.id;
    let first = query(index, side)?.into_iter().next();
    Ok(first
        .filter(|first| first.link != id)
        .map(|first| first.name))
}

/// Puts our program before all others if another has come before it; returns that one's name.
/// For some microseconds packets pass without our program.
///
/// # Errors
/// The kernel refuses; our program may then be off the hook.
pub fn keep_first(folder: &Path, index: u32, side: Side) -> Result<Option<String>> {
    let Some(other) = first_other(folder, index, side)? else {
        return Ok(None);
    };
    let program = Program::fd_from_pinned_path(program_pin(folder, side))?;
    let pin = link_pin(folder, side);
    detach(folder, side)?;
    std::fs::remove_file(&pin).with_context(|| pin.display().to_string())?;
    create_link(&program, index, side, Place::First, &pin)?;
    Ok(Some(other))
}

/// Attaches `program` by a new link, which is pinned at `pin`.
///
/// # Errors
/// The kernel refuses.
pub fn create_link(
    program: &impl AsFd,
    index: u32,
    side: Side,
    place: Place,
    pin: &Path,
) -> Result<()> {
    let mut options = sys::bpf_link_create_opts {
        sz: size_of::<sys::bpf_link_create_opts>() as sys::size_t,
        flags: match place {
            Place::First => sys::BPF_F_BEFORE,
            Place::Last => 0,
        },
        ..Default::default()
    };
    options.__bindgen_anon_1.tcx = Default::default();
    // SAFETY: both descriptors and the options are valid for the call.
    let link = unsafe {
        let fd = sys::bpf_link_create(
            program.as_fd().as_raw_fd(),
            index as i32,
            attach_type(side),
            &raw const options,
        );
        if fd < 0 {
            return Err(std::io::Error::from_raw_os_error(-fd))
                .with_context(|| format!("cannot attach at {}", side.name()));
        }
        OwnedFd::from_raw_fd(fd)
    };
    let path = c_path(pin)?;
    // SAFETY: a valid descriptor and C string.
    let status = unsafe { sys::bpf_obj_pin(link.as_raw_fd(), path.as_ptr()) };
    if status < 0 {
        return Err(std::io::Error::from_raw_os_error(-status))
            .with_context(|| pin.display().to_string());
    }
    Ok(())
}

/// Detaches our link, if there is one.
///
/// # Errors
/// The pin is not our link, or the kernel refuses.
pub fn detach(folder: &Path, side: Side) -> Result<()> {
    match open(folder, side)? {
        Some((link, _)) => link
            .detach()
            .with_context(|| format!("cannot detach at {}", side.name())),
        None => Ok(()),
    }
}

/// Our pinned link with the index of its interface, 0 if that is gone. None if nothing is pinned.
///
/// # Errors
/// Something else is pinned in its place.
pub fn open(folder: &Path, side: Side) -> Result<Option<(Link, u32)>> {
    let pin = link_pin(folder, side);
    if !pin.exists() {
        return Ok(None);
    }
    let path = || pin.display().to_string();
    let foreign = || {
        anyhow!(
            "{} is not penstockd's {} link; remove it, or choose another folder with --pins",
            pin.display(),
            side.name()
        )
    };
    if !is_link(&pin).with_context(path)? {
        return Err(foreign());
    }
    let link = Link::open(&pin).with_context(path)?;
    let Ok(LinkTypeInfo::Tcx(tcx)) = link.info().map(|info| info.info) else {
        return Err(foreign());
    };
    if tcx.attach_type as u32 != attach_type(side) {
        return Err(foreign());
    }
    Ok(Some((link, tcx.ifindex)))
}

/// Whether a link is pinned at `pin`, not a map or a program.
fn is_link(pin: &Path) -> Result<bool> {
    let path = c_path(pin)?;
    // SAFETY: a valid C string; the descriptor, if there is one, is ours.
    let object = unsafe {
        let fd = sys::bpf_obj_get(path.as_ptr());
        if fd < 0 {
            bail!(std::io::Error::from_raw_os_error(-fd));
        }
        OwnedFd::from_raw_fd(fd)
    };
    let kind = std::fs::read_link(format!("/proc/self/fd/{}", object.as_raw_fd()))?;
    // bpf-link or, depending on the kernel, bpf_link
    Ok(kind.to_string_lossy().ends_with("link"))
}

/// The programs on the hook of our link.
pub fn programs(link: &Link, index: u32, side: Side) -> HookPrograms {
    let Ok(info) = link.info() else {
        return HookPrograms::default();
    };
    let all = query(index, side).unwrap_or_default();
    let is_here = all.iter().any(|program| program.link == info.id);
    HookPrograms {
        ours: Some(info.prog_id),
        programs: if is_here { all } else { Vec::new() },
    }
}

/// The programs on a hook, in the order in which they run.
///
/// # Errors
/// The kernel is older than 6.6 or the interface is gone.
pub fn query(index: u32, side: Side) -> Result<Vec<HookProgram>> {
    let mut programs = [0u32; 64];
    let mut links = [0u32; 64];
    let mut options = sys::bpf_prog_query_opts {
        sz: size_of::<sys::bpf_prog_query_opts>() as sys::size_t,
        prog_ids: programs.as_mut_ptr(),
        link_ids: links.as_mut_ptr(),
        ..Default::default()
    };
    options.__bindgen_anon_1.count = programs.len() as u32;
    // SAFETY: the arrays have `count` elements.
    let status =
        unsafe { sys::bpf_prog_query_opts(index as i32, attach_type(side), &raw mut options) };
    if status < 0 {
        bail!(std::io::Error::from_raw_os_error(-status));
    }
    // SAFETY: both variants are the same number.
    let count = unsafe { options.__bindgen_anon_1.count } as usize;
    let pairs = programs.iter().zip(links).take(count);
    Ok(pairs
        .map(|(&id, link)| HookProgram::new(id, link, ""))
        .collect())
}
