// SPDX-License-Identifier: Apache-2.0
//! penstockd watch.

use anyhow::{Result, bail};

/// Options of `penstockd watch`.
#[derive(clap::Args, Debug)]
pub struct Args {}

/// Runs the command.
///
/// # Errors
/// One line: what is wrong and what to do.
pub fn run(_: Args) -> Result<()> {
    bail!("watch is not part of this build")
}
