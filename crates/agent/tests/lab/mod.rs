// SPDX-License-Identifier: Apache-2.0
//! Laboratories for the agent, of network namespaces that go with their values. They need root.
//!
//! | item | use |
//! |---|---|
//! | [`PortLab`] | two hosts on one cable: what commands and daemon do at a port |
//! | [`SwitchLab`] | two hosts and a switch with a congested port: what schemes do to TCP |
//! | [`credit`] | the same with Grant, at the port or behind it |
//! | [`Agent`] | penstockd in a namespace, with the laboratory's pins |
//! | [`raw`], [`delay`] | frames past the TCP of a host; a cable that takes time |
//! | [`stream`], [`transfers`] | TCP that goes on until stopped; transfers whose bytes are checked |
//!
//! Each wait has a limit (`penstock_linux::testkit`).

#![allow(dead_code, unused_imports, reason = "each test uses a part")]

mod agent;
pub mod credit;
pub mod delay;
mod port;
pub mod raw;
pub mod stream;
mod switch;
pub mod transfers;

use std::process::Command;
use std::time::Duration;

use penstock_linux::netns::NetNs;
use penstock_linux::testkit;

pub use agent::{Agent, PENSTOCKD, outcome};
pub use port::{PORT, PortLab};
pub use switch::{LEFT, RIGHT, SwitchLab};

/// Limit of a command that should take a second.
pub const LIMIT: Duration = Duration::from_secs(60);

/// Runs a line of words as a program in a namespace, and returns what it printed.
///
/// # Panics
/// It failed.
#[track_caller]
pub fn run(netns: &NetNs, line: &str) -> String {
    let mut words = line.split_whitespace();
    let mut command = Command::new(words.next().unwrap());
    command.args(words);
    let output = netns.run(|| testkit::output(&mut command, LIMIT)).unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{line}: {errors}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}
