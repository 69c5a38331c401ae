// SPDX-License-Identifier: Apache-2.0
//! Standard output: unlike `println!`, a failed write is an error, not a panic.

use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Serialize;

use crate::format;

/// Prints text for people. Control characters, as the names of interfaces may have, are replaced.
///
/// # Errors
/// The reader has gone away, or the disk is full.
pub fn print(text: &str) -> Result<()> {
    write(&format::printable_lines(text))
}

/// Prints that there is no port in a folder of pins.
///
/// # Errors
/// As [`print`].
pub fn print_no_port(pins: &Path) -> Result<()> {
    print(&format!("no port is attached in {}\n", pins.display()))
}

/// Writes a value for programs, as JSON.
///
/// # Errors
/// As [`print`].
pub fn write_json(value: &impl Serialize) -> Result<()> {
    write(&(serde_json::to_string_pretty(value)? + "\n"))
}

/// Writes text for programs as it is.
///
/// # Errors
/// As [`print`].
pub fn write(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .context("cannot write to standard output")
}
