// SPDX-License-Identifier: Apache-2.0
//! penstockd in a laboratory.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use penstock_linux::netns::NetNs;
use penstock_linux::testkit::{self, Process, until};
use penstockd::port::pins::program_pin;
use penstockd::port::{PinsArg, Port, Side};

use super::LIMIT;

/// The program under test.
pub const PENSTOCKD: &str = env!("CARGO_BIN_EXE_penstockd");

/// Whether a command succeeded, and what it printed.
pub fn outcome(output: &Output) -> (bool, String) {
    let printed = [output.stdout.as_slice(), output.stderr.as_slice()].concat();
    (
        output.status.success(),
        String::from_utf8_lossy(&printed).into_owned(),
    )
}

/// penstockd in one namespace, with one folder of pins.
pub struct Agent<'lab> {
    pub netns: &'lab NetNs,
    pub pins: PathBuf,
}

impl Agent<'_> {
    /// Runs penstockd with arguments as they are, and returns how it ended.
    pub fn output(&self, arguments: &[impl AsRef<OsStr>]) -> Output {
        let mut command = Command::new(PENSTOCKD);
        command.args(arguments);
        self.netns
            .run(|| testkit::output(&mut command, LIMIT))
            .unwrap()
    }

    /// Runs a command with the laboratory's pins; whether it succeeded, and what it printed.
    pub fn attempt(&self, arguments: &[&str]) -> (bool, String) {
        outcome(&self.output(&self.with_pins(arguments)))
    }

    /// Runs a command that must succeed, with the laboratory's pins.
    #[track_caller]
    pub fn ok(&self, arguments: &[&str]) -> String {
        let (succeeded, printed) = self.attempt(arguments);
        assert!(succeeded, "penstockd {}: {printed}", arguments.join(" "));
        printed
    }

    /// Runs a command that must be refused, in one line.
    #[track_caller]
    pub fn refused(&self, arguments: &[&str]) -> String {
        let (succeeded, printed) = self.attempt(arguments);
        assert!(
            !succeeded,
            "penstockd {} is not refused",
            arguments.join(" ")
        );
        assert_eq!(printed.trim_end().lines().count(), 1, "{printed}");
        printed
    }

    /// Starts a penstockd that stays, with the laboratory's pins, for at most `limit`.
    pub fn start(&self, arguments: &[&str], limit: Duration) -> Process {
        let mut command = Command::new(PENSTOCKD);
        command.args(self.with_pins(arguments));
        self.spawn(command.stdout(Stdio::null()), limit)
    }

    /// The same with a command that attaches an interface. Returns once it has.
    pub fn start_at(&self, interface: &str, arguments: &[&str], limit: Duration) -> Process {
        let process = self.start(arguments, limit);
        let pin = program_pin(&PinsArg::at(&self.pins).of(interface), Side::Ingress);
        until("the port is attached", || pin.exists());
        process
    }

    /// Starts a copy of penstockd as a daemon with a configuration, which names the pins.
    pub fn daemon(&self, program: &Path, config: &Path, limit: Duration) -> Process {
        let mut command = Command::new(program);
        command.args(["run", "--config"]).arg(config);
        self.spawn(command.stdout(Stdio::null()), limit)
    }

    /// Starts a command in the namespace.
    pub fn spawn(&self, command: &mut Command, limit: Duration) -> Process {
        self.netns.run(|| Process::spawn(command, limit)).unwrap()
    }

    /// The maps of an attached port.
    pub fn port(&self, interface: &str) -> Port {
        PinsArg::at(&self.pins).open(interface).unwrap()
    }

    fn with_pins(&self, arguments: &[&str]) -> Vec<String> {
        let mut all: Vec<String> = arguments.iter().map(|word| (*word).to_owned()).collect();
        if !arguments.contains(&"--pins") {
            all.extend(["--pins".to_owned(), self.pins.display().to_string()]);
        }
        all
    }
}
