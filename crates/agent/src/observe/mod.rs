// SPDX-License-Identifier: Apache-2.0
//! penstockd observe.

use anyhow::{Result, bail};

/// Options of `penstockd observe`.
#[derive(clap::Args, Debug)]
pub struct Args {}

/// Runs the command.
///
/// # Errors
/// One line: what is wrong and what to do.
pub fn run(_: Args) -> Result<()> {
    bail!("observe is not part of this build")
}

pub mod bursts;
pub mod fan_in;
pub mod quantiles;
pub mod record;
pub mod report;
pub mod text;
pub mod trace;
pub mod verdict;
