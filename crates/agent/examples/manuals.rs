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
        let path = generate_to(shell, &mut Cli::command(), "penstockd", &folder)?;
        if shell == Shell::Zsh {
            std::fs::write(&path, with_interfaces(&std::fs::read_to_string(&path)?))?;
        }
    }
    Ok(())
}

/// The completions of zsh, with the host's interfaces where clap offers files.
fn with_interfaces(text: &str) -> String {
    let line = |line: &str| {
        let is_interface = ["interface -- ", "interfaces -- "].map(|start| line.contains(start));
        match is_interface.contains(&true) {
            true => line.replace(":_default'", ":_net_interfaces'"),
            false => line.to_owned(),
        }
    };
    text.lines().map(|text| line(text) + "\n").collect()
}
