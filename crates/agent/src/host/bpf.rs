// SPDX-License-Identifier: Apache-2.0
//! Calls of bpf(2) that libbpf-rs lacks: programs by number, name and pin, and runs of a program.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use libbpf_rs::{Program, libbpf_sys as sys};

/// The name of the program with the number `id`, if it exists and we may open it.
pub fn program_name(id: u32) -> Option<String> {
    name_of(&program_by_id(id)?)
}

/// The name of a program, at most 15 letters.
pub fn name_of(program: &impl AsFd) -> Option<String> {
    let program = program_info(program)?;
    // SAFETY: the kernel ends the name with a zero.
    let name = unsafe { CStr::from_ptr(program.name.as_ptr()) };
    Some(name.to_string_lossy().into_owned())
}

/// The program with the number `id`, if it exists and we may open it.
pub fn program_by_id(id: u32) -> Option<OwnedFd> {
    // SAFETY: the descriptor, if there is one, is ours.
    unsafe {
        let fd = sys::bpf_prog_get_fd_by_id(id);
        (fd >= 0).then(|| OwnedFd::from_raw_fd(fd))
    }
}

/// The number of the program pinned at `pin`, if there is one.
pub fn pinned(pin: &Path) -> Option<u32> {
    let program = Program::fd_from_pinned_path(pin).ok()?;
    program_info(&program).map(|info| info.id)
}

/// The kernel's information about a program.
pub fn program_info(program: &impl AsFd) -> Option<sys::bpf_prog_info> {
    let mut info = sys::bpf_prog_info::default();
    let mut length = size_of::<sys::bpf_prog_info>() as u32;
    // SAFETY: `info` is valid and has `length` bytes.
    let status = unsafe {
        sys::bpf_obj_get_info_by_fd(
            program.as_fd().as_raw_fd(),
            (&raw mut info).cast(),
            &raw mut length,
        )
    };
    (status == 0).then_some(info)
}

/// A path for the kernel.
///
/// # Errors
/// It contains a zero byte.
pub fn c_path(path: &Path) -> Result<std::ffi::CString> {
    Ok(std::ffi::CString::new(path.as_os_str().as_encoded_bytes())?)
}

/// Pins a program at `pin` in place of another; one that is pinned there already stays.
///
/// # Errors
/// The file system refuses.
pub fn pin_program(program: &impl AsFd, pin: &Path) -> Result<()> {
    match program_info(program) {
        Some(info) if pinned(pin) == Some(info.id) => Ok(()),
        _ => pin_over(program, pin),
    }
}

/// Pins an object at `pin`, atomically replacing what is pinned there.
///
/// # Errors
/// The file system refuses.
pub fn pin_over(object: &impl AsFd, pin: &Path) -> Result<()> {
    let new = pin_next_to(object, pin)?;
    std::fs::rename(&new, pin).with_context(|| pin.display().to_string())
}

/// The path next to `pin` at which its successor is pinned first.
pub fn successor(pin: &Path) -> PathBuf {
    let name = pin.file_name().unwrap_or_default().to_string_lossy();
    pin.with_file_name(format!("{name}_new"))
}

/// Pins an object as the successor of what is pinned at `pin`; returns where.
///
/// # Errors
/// The file system refuses.
pub fn pin_next_to(object: &impl AsFd, pin: &Path) -> Result<PathBuf> {
    let new = successor(pin);
    // May be left by a process that was killed at this point.
    std::fs::remove_file(&new).ok();
    let path = c_path(&new)?;
    // SAFETY: a valid descriptor and C string.
    let status = unsafe { sys::bpf_obj_pin(object.as_fd().as_raw_fd(), path.as_ptr()) };
    if status < 0 {
        bail!(
            "{}: {}",
            new.display(),
            std::io::Error::from_raw_os_error(-status)
        );
    }
    Ok(new)
}

/// What a program is run with, each part as its type needs it.
#[derive(Default)]
pub struct TestRun<'data> {
    /// Its context, which the kernel may change.
    pub context: Option<&'data mut [u8]>,
    /// A packet.
    pub packet: Option<&'data [u8]>,
    /// Room for the packet as it leaves.
    pub packet_out: Option<&'data mut [u8]>,
    /// How often it runs; 0: once.
    pub repeat: i32,
}

/// What a run returned.
pub struct TestResult {
    /// By the program, the last time.
    pub value: u32,
    /// Of one run.
    pub nanoseconds: u32,
    /// Of the packet that left.
    pub packet_bytes: usize,
}

/// Runs a program (BPF_PROG_TEST_RUN).
///
/// # Errors
/// The kernel refuses.
pub fn test_run(program: &impl AsFd, run: TestRun<'_>) -> io::Result<TestResult> {
    let mut options = sys::bpf_test_run_opts {
        sz: size_of::<sys::bpf_test_run_opts>() as sys::size_t,
        repeat: run.repeat,
        ..Default::default()
    };
    if let Some(context) = run.context {
        options.ctx_in = context.as_mut_ptr().cast();
        options.ctx_size_in = context.len() as u32;
    }
    if let Some(packet) = run.packet {
        options.data_in = packet.as_ptr().cast();
        options.data_size_in = packet.len() as u32;
    }
    if let Some(out) = run.packet_out {
        options.data_out = out.as_mut_ptr().cast();
        options.data_size_out = out.len() as u32;
    }
    let program = program.as_fd().as_raw_fd();
    // SAFETY: the descriptor and what the options point to are valid for the call.
    let status = unsafe { sys::bpf_prog_test_run_opts(program, &raw mut options) };
    match status < 0 {
        true => Err(io::Error::from_raw_os_error(-status)),
        false => Ok(TestResult {
            value: options.retval,
            nanoseconds: options.duration,
            packet_bytes: options.data_size_out as usize,
        }),
    }
}

/// Offset of `ifindex` in `struct __sk_buff`.
const IFINDEX: usize = 40;

/// The context of a packet on the interface with this index.
pub fn context_on(index: u32) -> [u8; IFINDEX + 4] {
    let mut context = [0; IFINDEX + 4];
    context[IFINDEX..].copy_from_slice(&index.to_ne_bytes());
    context
}
