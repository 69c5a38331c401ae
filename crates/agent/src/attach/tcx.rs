// SPDX-License-Identifier: Apache-2.0
//! Programs on the two tcx hooks of an interface (Linux 6.6). Several tools' programs stand there in a
//! row; ours return `TCX_NEXT`, so the others run too. A link holds a program, a pin holds the link.

use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use libbpf_rs::Link;
use libbpf_rs::libbpf_sys as sys;
use libbpf_rs::query::LinkTypeInfo;
use serde::Serialize;

use crate::host::bpf::{c_path, program_name};
use crate::host::requirements;

/// One of the two hooks of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Packets that leave by the port.
    Egress,
    /// Packets that enter by it.
    Ingress,
}

impl Side {
    /// Both, in the order in which programs are put on: what leaves is watched before ACKs are
    /// changed.
    pub const BOTH: [Side; 2] = [Side::Egress, Side::Ingress];

    /// As in the names of programs and pins.
    pub const fn name(self) -> &'static str {
        match self {
            Side::Egress => "egress",
            Side::Ingress => "ingress",
        }
    }

    const fn attach_type(self) -> sys::bpf_attach_type {
        match self {
            Side::Egress => sys::BPF_TCX_EGRESS,
            Side::Ingress => sys::BPF_TCX_INGRESS,
        }
    }
}

/// A program on a hook.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Attached {
    /// The kernel's number of the program.
    pub id: u32,
    /// Its name, at most 15 letters.
    pub name: String,
    /// The kernel's number of its link; 0 if there is none.
    pub link: u32,
}

/// Puts `program` last on a hook and pins the link.
///
/// # Errors
/// The kernel refuses.
pub fn attach(program: &impl AsFd, interface: u32, side: Side, pin: &Path) -> Result<()> {
    let mut options = sys::bpf_link_create_opts {
        sz: size_of::<sys::bpf_link_create_opts>() as sys::size_t,
        ..Default::default()
    };
    options.__bindgen_anon_1.tcx = Default::default();
    // SAFETY: both descriptors and the options are valid for the call.
    let link = unsafe {
        let fd = sys::bpf_link_create(
            program.as_fd().as_raw_fd(),
            interface as i32,
            side.attach_type(),
            &raw const options,
        );
        if fd < 0 {
            return Err(std::io::Error::from_raw_os_error(-fd))
                .with_context(|| format!("may not attach at {}", side.name()));
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

/// A pinned link of ours with the interface it is on, 0 if that is gone. None if nothing is there.
///
/// # Errors
/// Something else is pinned there.
pub fn open(pin: &Path, side: Side) -> Result<Option<(Link, u32)>> {
    if !pin.exists() {
        return Ok(None);
    }
    let told = || pin.display().to_string();
    let foreign = || {
        anyhow!(
            "{} is not penstockd's {} link; remove it, or choose another folder with --pins",
            pin.display(),
            side.name()
        )
    };
    if !is_link(pin).with_context(told)? {
        return Err(foreign());
    }
    let link = Link::open(pin).with_context(told)?;
    let Ok(LinkTypeInfo::Tcx(tcx)) = link.info().map(|info| info.info) else {
        return Err(foreign());
    };
    if tcx.attach_type as u32 != side.attach_type() {
        return Err(foreign());
    }
    Ok(Some((link, tcx.ifindex)))
}

/// Whether a link is pinned at `pin`, and not a map or a program.
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

/// The programs on a hook, in the order in which they run.
///
/// # Errors
/// The kernel is older than 6.6 or the interface is gone.
pub fn query(interface: u32, side: Side) -> Result<Vec<Attached>> {
    let mut programs = [0u32; 64];
    let mut links = [0u32; 64];
    let mut options = sys::bpf_prog_query_opts {
        sz: size_of::<sys::bpf_prog_query_opts>() as sys::size_t,
        prog_ids: programs.as_mut_ptr(),
        link_ids: links.as_mut_ptr(),
        ..Default::default()
    };
    options.__bindgen_anon_1.count = programs.len() as u32;
    // SAFETY: the arrays are as long as `count` says.
    let status =
        unsafe { sys::bpf_prog_query_opts(interface as i32, side.attach_type(), &raw mut options) };
    if status < 0 {
        bail!(std::io::Error::from_raw_os_error(-status));
    }
    // SAFETY: both variants are the same number.
    let count = unsafe { options.__bindgen_anon_1.count } as usize;
    let found = programs.iter().zip(links).take(count);
    Ok(found
        .map(|(&id, link)| Attached {
            id,
            name: program_name(id).unwrap_or_default(),
            link,
        })
        .collect())
}

/// Whether the kernel has tcx, by asking what is on the loopback of this network namespace.
pub fn is_available() -> bool {
    query(1, Side::Ingress).is_ok()
}

/// tcx, on which other tools' programs stay in their order.
///
/// # Errors
/// What is done instead.
pub fn require() -> Result<&'static str> {
    match is_available() {
        true => Ok("links on the tcx hooks"),
        false => bail!(
            "no tcx (Linux {}.{}): filters of clsact are used",
            requirements::TCX_SINCE.0,
            requirements::TCX_SINCE.1
        ),
    }
}
