// SPDX-License-Identifier: Apache-2.0
//! A command for several ports.

use anyhow::{Result, anyhow};

use crate::host::{output, signals};
use crate::port::PinsArg;

/// Does `work` at each port, and prints what it returns of each where it succeeds.
///
/// # Errors
/// In one line, all that was refused, or that nothing can be printed; all other ports are done
/// nevertheless.
pub fn each_port(
    pins: &PinsArg,
    interfaces: Vec<String>,
    work: impl Fn(&str) -> Result<String>,
) -> Result<()> {
    if interfaces.is_empty() {
        return output::print_no_port(&pins.dir);
    }
    signals::outlive_readers();
    let mut refusals = Vec::new();
    let mut printed = Ok(());
    for interface in interfaces {
        match work(&interface) {
            Ok(words) => printed = printed.and(output::print(&format!("{interface}: {words}\n"))),
            Err(error) => refusals.push(format!("{error:#}")),
        }
    }
    refusals.extend(printed.err().map(|error| format!("{error:#}")));
    match refusals.is_empty() {
        true => Ok(()),
        false => Err(anyhow!(refusals.join("; "))),
    }
}
