// SPDX-License-Identifier: Apache-2.0
//! Open vSwitch of our own: its database and its daemon in a folder, its datapath in user space, with
//! ports that are no interfaces of this machine.

use std::collections::BTreeMap;
use std::process::{Child, Command, Output, Stdio};

/// A database and a switch of our own, in a folder.
pub struct Switch {
    folder: tempfile::TempDir,
    /// By the names of their programs.
    processes: BTreeMap<String, Child>,
}

impl Drop for Switch {
    fn drop(&mut self) {
        for process in self.processes.values_mut() {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

impl Switch {
    /// Both run; there is no bridge.
    pub fn new() -> Switch {
        let mut switch = Switch {
            folder: tempfile::tempdir().expect("a folder"),
            processes: BTreeMap::new(),
        };
        let database = switch.path("conf.db");
        let schema = "/usr/share/openvswitch/vswitch.ovsschema";
        switch.run("ovsdb-tool", &["create", &database, schema]);
        let socket = format!("--remote=punix:{}", switch.path("db.sock"));
        switch.start("ovsdb-server", &[&database, &socket]);
        switch.vsctl(&["--no-wait", "init"]);
        switch.start_daemon();
        switch
    }

    /// Starts the switch's daemon.
    pub fn start_daemon(&mut self) {
        let remote = format!("unix:{}", self.path("db.sock"));
        self.start("ovs-vswitchd", &[&remote, "--enable-dummy=override"]);
    }

    /// Starts it again, and waits until it is as it was configured.
    #[allow(dead_code)] // by those tests that need it
    pub fn start_daemon_again(&mut self) {
        self.start_daemon();
        self.vsctl(&["set", "open_vswitch", ".", "external-ids:again=yes"]);
    }

    /// Kills it: bridges, ports and rules are gone until it starts again.
    #[allow(dead_code)] // by those tests that need it
    pub fn kill_daemon(&mut self) {
        let mut process = self.processes.remove("ovs-vswitchd").expect("it runs");
        process.kill().expect("it is ours");
        process.wait().expect("it has ended");
        let _ = std::fs::remove_file(self.path("ovs-vswitchd.ctl"));
    }

    /// A path in its folder.
    pub fn path(&self, name: &str) -> String {
        let path = self.folder.path().join(name);
        path.to_str().expect("text").to_owned()
    }

    fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        let folder = self.folder.path();
        command.args(arguments).stdin(Stdio::null());
        command.env("OVS_RUNDIR", folder).env("OVS_DBDIR", folder);
        command.env("OVS_LOGDIR", folder).current_dir(folder);
        command
    }

    fn start(&mut self, program: &str, arguments: &[&str]) {
        let pid = format!("--pidfile={}", self.path(&format!("{program}.pid")));
        let control = format!("--unixctl={}", self.path(&format!("{program}.ctl")));
        let mut command = self.command(program, arguments);
        command.args([&pid, &control]);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let process = command.spawn().expect("openvswitch-switch is installed");
        self.processes.insert(program.to_owned(), process);
    }

    /// What a program prints; it must succeed.
    pub fn run(&self, program: &str, arguments: &[&str]) -> Output {
        let done = self.command(program, arguments).output();
        let done = done.expect("openvswitch-switch is installed");
        assert!(done.status.success(), "{program} {arguments:?}: {done:?}");
        done
    }

    /// Changes the configuration, and waits until it has.
    pub fn vsctl(&self, arguments: &[&str]) {
        let database = format!("--db=unix:{}", self.path("db.sock"));
        // It waits for the database.
        self.run("ovs-vsctl", &[&["--retry", &*database], arguments].concat());
    }

    /// A packet arrives at a port.
    pub fn receive(&self, port: &str, packet: &str) {
        let control = self.path("ovs-vswitchd.ctl");
        let arguments = ["-t", &control, "netdev-dummy/receive", port, packet];
        self.run("ovs-appctl", &arguments);
    }
}
