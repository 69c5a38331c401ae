// SPDX-License-Identifier: Apache-2.0
//! Two hosts on one cable, and a bpffs.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use penstock_linux::netns::NetNs;
use penstock_linux::testkit::{Bpffs, Pair, Process};
use penstockd::port::PinsArg;
use serde_json::Value;

use super::{Agent, PENSTOCKD, run};

/// The interface under test; its namespace is `near`.
pub const PORT: &str = "eth1";

/// A daemon's life in a test.
const LIMIT: Duration = Duration::from_secs(180);

pub struct PortLab {
    hosts: Pair,
    bpffs: Bpffs,
    /// For files that tests write.
    pub folder: tempfile::TempDir,
}

impl PortLab {
    pub fn new() -> PortLab {
        PortLab::with_queues(1)
    }

    /// A port with so many queues.
    pub fn with_queues(queues: u32) -> PortLab {
        let ends = ((PORT, "10.0.0.1/24"), ("eth0", "10.0.0.2/24"));
        PortLab {
            hosts: Pair::with_queues(ends.0, ends.1, queues),
            bpffs: Bpffs::mount(),
            folder: tempfile::tempdir().unwrap(),
        }
    }

    /// The same without IPv6, whose neighbour discovery sends packets of its own.
    pub fn quiet() -> PortLab {
        let lab = PortLab::new();
        for netns in [lab.near(), lab.far()] {
            let off = || std::fs::write("/proc/sys/net/ipv6/conf/all/disable_ipv6", "1");
            netns.run(off).unwrap().unwrap();
        }
        lab
    }

    /// Limits the port's rate below that of a [`Stream`](super::stream::Stream), which then fills
    /// its queue.
    pub fn congest(&self) {
        self.run(&format!(
            "tc qdisc replace dev {PORT} root tbf rate 20mbit burst 5k limit 128k"
        ));
    }

    /// The host of the port.
    pub fn near(&self) -> &NetNs {
        &self.hosts.near
    }

    /// The host at the other end.
    pub fn far(&self) -> &NetNs {
        &self.hosts.far
    }

    /// Where the bpffs is mounted.
    pub fn bpffs(&self) -> &Path {
        self.bpffs.path()
    }

    /// The folder of all pins.
    pub fn pins(&self) -> PathBuf {
        self.bpffs().join("penstock")
    }

    /// The folder of the port's pins.
    pub fn port_folder(&self) -> PathBuf {
        PinsArg::at(self.pins()).of(PORT)
    }

    /// penstockd at the port.
    pub fn agent(&self) -> Agent<'_> {
        Agent {
            netns: self.near(),
            pins: self.pins(),
        }
    }

    /// Runs a program at the port, as in `tc qdisc show`.
    #[track_caller]
    pub fn run(&self, line: &str) -> String {
        run(self.near(), line)
    }

    /// As [`Agent::ok`].
    #[track_caller]
    pub fn ok(&self, arguments: &[&str]) -> String {
        self.agent().ok(arguments)
    }

    /// As [`Agent::refused`].
    #[track_caller]
    pub fn refused(&self, arguments: &[&str]) -> String {
        self.agent().refused(arguments)
    }

    /// As [`Agent::output`].
    pub fn output(&self, arguments: &[&str]) -> Output {
        self.agent().output(arguments)
    }

    /// Starts a penstockd that stays, with the laboratory's pins.
    pub fn start(&self, arguments: &[&str]) -> Process {
        self.agent().start(arguments, LIMIT)
    }

    /// The port's status as JSON.
    #[track_caller]
    pub fn status(&self) -> Value {
        let text = self.ok(&["status", PORT, "--for", "50 ms", "--json"]);
        serde_json::from_str::<Value>(&text).unwrap()[0].clone()
    }

    /// The status of an interface as JSON; null if it is not attached.
    pub fn status_of(&self, interface: &str) -> Value {
        let status = ["status", interface, "--for", "1 ms", "--json"];
        match self.agent().attempt(&status) {
            (true, text) => serde_json::from_str::<Value>(&text).unwrap()[0].clone(),
            (false, _) => Value::Null,
        }
    }

    /// What a port has as long as it is attached: its number, and those of its maps.
    pub fn identity(&self) -> (u32, Vec<u32>) {
        (self.agent().port(PORT).id, self.maps())
    }

    /// The kernel's numbers of the maps of all ports.
    pub fn maps(&self) -> Vec<u32> {
        let names = ["config", "port", "stats_0", "flows4", "flows6"];
        let id = |name: &str| {
            let pin = PinsArg::at(self.pins()).shared().join(name);
            let map = libbpf_rs::MapHandle::from_pinned_path(pin).unwrap();
            libbpf_rs::MapCore::info(&map).unwrap().info.id
        };
        names.map(id).to_vec()
    }

    /// Starts the daemon with a configuration, and no more privileges than its systemd unit gives.
    pub fn daemon(&self, ports: &str) -> Process {
        self.daemon_of_service(ports, None)
    }

    /// The same, with the socket on which systemd waits for its state.
    pub fn daemon_of_service(&self, ports: &str, notify: Option<&Path>) -> Process {
        self.configure(ports);
        self.start_daemon(notify)
    }

    /// The same with the configuration as it is.
    pub fn start_daemon(&self, notify: Option<&Path>) -> Process {
        let mut command = Command::new("setpriv");
        command
            .args(["--bounding-set=-all,+net_admin,+perfmon,+bpf", PENSTOCKD])
            .args(["run", "--config"])
            .arg(self.config());
        let log = std::fs::File::create(self.folder.path().join("log")).unwrap();
        command.stderr(log);
        if let Some(socket) = notify {
            command.env("NOTIFY_SOCKET", socket);
        }
        self.agent().spawn(&mut command, LIMIT)
    }

    /// The daemon's configuration.
    pub fn config(&self) -> PathBuf {
        self.folder.path().join("penstockd.toml")
    }

    /// Writes the daemon's configuration.
    pub fn configure(&self, ports: &str) {
        self.configure_with("stale = \"400 ms\"\nheartbeat = \"50 ms\"", ports);
    }

    /// The same with other settings of the agent.
    pub fn configure_with(&self, agent: &str, ports: &str) {
        let pins = self.pins();
        let text = format!("[agent]\npins = \"{}\"\n{agent}\n{ports}", pins.display());
        std::fs::write(self.config(), text).unwrap();
    }

    /// The log of the last daemon so far.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }
}
