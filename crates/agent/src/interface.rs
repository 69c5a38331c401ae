// SPDX-License-Identifier: Apache-2.0
//! The network interfaces of this network namespace.

use std::ffi::{CStr, CString};

use anyhow::{Result, anyhow};
use penstock_sim::scenario::{Buffer, nearest};

/// The index of the interface `name`.
///
/// # Errors
/// There is none of this name, with the nearest one.
pub fn index(name: &str) -> Result<u32> {
    if let Some(index) = find(name) {
        return Ok(index);
    }
    let all = names();
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    let hint = match nearest(name, &all) {
        Some(near) => format!("did you mean {near}?"),
        None => format!("there are: {}", all.join(", ")),
    };
    Err(anyhow!(
        "no interface {name} in this network namespace; {hint}"
    ))
}

/// The index of the interface `name`, if there is one now.
pub fn find(name: &str) -> Option<u32> {
    let name = CString::new(name).ok()?;
    // SAFETY: a valid C string.
    match unsafe { libc::if_nametoindex(name.as_ptr()) } {
        0 => None,
        index => Some(index),
    }
}

/// The names of all interfaces.
pub fn names() -> Vec<String> {
    // SAFETY: the array ends with a zero index and is freed once.
    unsafe {
        let all = libc::if_nameindex();
        if all.is_null() {
            return Vec::new();
        }
        let mut names = Vec::new();
        let mut next = all;
        while (*next).if_index != 0 {
            let name = CStr::from_ptr((*next).if_name);
            names.push(name.to_string_lossy().into_owned());
            next = next.add(1);
        }
        libc::if_freenameindex(all);
        names
    }
}

/// What the interface can hold, as its qdisc says.
///
/// # Errors
/// The qdisc does not say.
pub fn buffer(name: &str, _index: u32) -> Result<Buffer> {
    Err(anyhow!(
        "the qdisc of {name} does not tell how much it holds; give it: --buffer \"128 kB\""
    ))
}
