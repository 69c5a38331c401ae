// SPDX-License-Identifier: Apache-2.0
//! Writes the manual page and the completions of penstock-controller: `cargo run --example manuals -- DIR`.

#[path = "../src/cli.rs"]
mod cli;

use clap::CommandFactory;
use clap_complete::{Shell, generate_to};

fn main() -> std::io::Result<()> {
    let folder = std::env::args_os().nth(1).unwrap_or_else(|| ".".into());
    std::fs::create_dir_all(&folder)?;
    clap_mangen::generate_to(cli::Cli::command(), &folder)?;
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        generate_to(
            shell,
            &mut cli::Cli::command(),
            "penstock-controller",
            &folder,
        )?;
    }
    Ok(())
}
