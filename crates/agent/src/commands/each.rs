// SPDX-License-Identifier: Apache-2.0
//! A command for several ports.

use anyhow::{Result, anyhow};

/// Does `work` at each port, and prints `words` for each where it succeeds.
///
/// # Errors
/// In one line, all that was refused; the other ports are done nevertheless.
pub fn each_port(
    interfaces: Vec<String>,
    words: &str,
    work: impl Fn(&str) -> Result<()>,
) -> Result<()> {
    let mut refusals = Vec::new();
    for interface in interfaces {
        match work(&interface) {
            Ok(()) => println!("{interface}: {words}"),
            Err(error) => refusals.push(format!("{error:#}")),
        }
    }
    match refusals.is_empty() {
        true => Ok(()),
        false => Err(anyhow!(refusals.join("; "))),
    }
}
