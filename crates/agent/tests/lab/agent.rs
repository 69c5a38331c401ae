// SPDX-License-Identifier: Apache-2.0
//! penstockd in the laboratory.

use super::Lab;
use penstockd::port::{PinsArg, Port};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// The program under test.
pub const PENSTOCKD: &str = env!("CARGO_BIN_EXE_penstockd");

/// A running penstockd, killed with the value.
pub struct Running(Child);

impl Running {
    pub fn signal(&self, signal: i32) {
        // SAFETY: a child of ours that was not waited for.
        assert_eq!(unsafe { libc::kill(self.0.id() as i32, signal) }, 0);
    }

    pub fn kill(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }

    /// Memory in use, kB.
    pub fn resident_kb(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.0.id())).unwrap();
        let line = status
            .lines()
            .find(|line| line.starts_with("VmRSS:"))
            .unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }

    /// Waits for its end, which must be a good one.
    pub fn wait(mut self) {
        assert!(self.0.wait().unwrap().success());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Lab {
    fn command(&self, program: &Path, host: &str, arguments: &str) -> Command {
        let enter = self.enter(host);
        let mut words = enter.split(' ');
        let mut command = Command::new(words.next().unwrap());
        command
            .args(words)
            .arg(program)
            .args(arguments.split_whitespace());
        command
    }

    /// Runs penstockd to its end; panics if it refuses.
    pub fn penstockd(&self, host: &str, arguments: &str) -> String {
        let mut command = self.command(Path::new(PENSTOCKD), host, arguments);
        let output = command.arg("--pins").arg(self.pins()).output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "penstockd {arguments}: {told}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Starts a penstockd that stays, with the laboratory's pins.
    pub fn start(&self, program: &Path, host: &str, arguments: &str) -> Running {
        let pins = self.pins();
        self.start_plain(
            program,
            host,
            &format!("{arguments} --pins {}", pins.display()),
        )
    }

    /// The same, with the pins that it finds by itself.
    pub fn start_plain(&self, program: &Path, host: &str, arguments: &str) -> Running {
        let mut command = self.command(program, host, arguments);
        Running(
            command
                .stdout(Stdio::null())
                .stderr(Stdio::inherit())
                .spawn()
                .unwrap(),
        )
    }

    /// The maps of an attached port.
    pub fn port(&self, interface: &str) -> Port {
        PinsArg { dir: self.pins() }.open(interface).unwrap()
    }
}
