// SPDX-License-Identifier: Apache-2.0
//! Standard output: unlike `println!`, a failed write is an error, not a panic.

use std::io::Write;

use anyhow::{Context, Result};

use crate::format;

/// Prints text for people. Control characters, as the names of interfaces may have, are replaced.
///
/// # Errors
/// The reader has gone away, or the disk is full.
pub fn print(text: &str) -> Result<()> {
    write(&format::printable_lines(text))
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
