// SPDX-License-Identifier: Apache-2.0
//! Writes the manual pages, the configuration as packaged and the completions of penstockd:
//! `cargo run --example manuals -- DIR`.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::CommandFactory;
use clap_complete::{Shell, generate_to};
use penstockd::cli::Cli;
use penstockd::reference;

fn main() -> Result<()> {
    let folder = std::env::args_os().nth(1).map(PathBuf::from);
    let folder = folder.context("name the folder to write to")?;
    std::fs::create_dir_all(&folder)?;
    clap_mangen::generate_to(Cli::command(), &folder)?;
    std::fs::write(folder.join("penstockd.toml"), reference::configuration())?;
    std::fs::write(folder.join("penstockd.toml.5"), reference::manual())?;
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        generate_to(shell, &mut Cli::command(), "penstockd", &folder)?;
    }
    Ok(())
}
