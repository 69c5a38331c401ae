// SPDX-License-Identifier: Apache-2.0
//! A place to try the agent: two network namespaces with a cable, a bpffs, and a transfer over TCP.
//! Removed when dropped, also when a test fails.

#![allow(dead_code, clippy::unwrap_used)]

use std::fs::File;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::Value;

/// The interface whose port is tried; its namespace is `near`.
pub const PORT: &str = "eth1";

pub struct Place {
    name: String,
    /// A bpffs of its own.
    pub bpffs: PathBuf,
}

fn sh(command: &str) -> Output {
    Command::new("sh").args(["-c", command]).output().unwrap()
}

pub fn must(command: &str) -> String {
    let output = sh(command);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{command}: {said}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Waits for what must come true; how long it takes is no matter of the test.
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < Duration::from_secs(30), "never: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

impl Place {
    pub fn new() -> Place {
        // SAFETY: asks only.
        let is_root = unsafe { libc::geteuid() } == 0;
        assert!(
            is_root,
            "this test makes network namespaces: run it as root"
        );
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("agent-{}-{next}", std::process::id());
        let bpffs = std::env::temp_dir().join(format!("{name}-bpffs"));
        let place = Place { name, bpffs };
        std::fs::create_dir_all(&place.bpffs).unwrap();
        must(&format!("mount -t bpf bpf {}", place.bpffs.display()));
        must(&format!(
            "ip netns add {near} && ip netns add {far} && \
             ip -n {near} link add {PORT} type veth peer name eth0 netns {far} && \
             ip -n {near} addr add 10.0.0.1/24 dev {PORT} && ip -n {near} link set {PORT} up && \
             ip -n {far} addr add 10.0.0.2/24 dev eth0 && ip -n {far} link set eth0 up && \
             ip -n {near} link set lo up",
            near = place.near(),
            far = place.far()
        ));
        place
    }

    pub fn near(&self) -> String {
        format!("{}-near", self.name)
    }

    pub fn far(&self) -> String {
        format!("{}-far", self.name)
    }

    /// The folder of pins.
    pub fn pins(&self) -> PathBuf {
        self.bpffs.join("penstock")
    }

    /// The folder of the port's pins.
    pub fn folder(&self) -> PathBuf {
        self.pins().join("v1").join(PORT)
    }

    /// The agent in the near namespace.
    pub fn penstockd(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("nsenter");
        command
            .arg(format!("--net=/run/netns/{}", self.near()))
            .arg(env!("CARGO_BIN_EXE_penstockd"))
            .args(arguments);
        command
    }

    /// Runs a command that must succeed; with `--pins` of this place.
    pub fn ok(&self, arguments: &[&str]) -> String {
        let (is_right, told) = self.try_it(arguments);
        assert!(is_right, "penstockd {}: {told}", arguments.join(" "));
        told
    }

    /// Runs a command that must be refused, in one line.
    pub fn refused(&self, arguments: &[&str]) -> String {
        let (is_right, told) = self.try_it(arguments);
        assert!(
            !is_right,
            "penstockd {} is not refused",
            arguments.join(" ")
        );
        assert_eq!(told.trim_end().lines().count(), 1, "{told}");
        told
    }

    fn try_it(&self, arguments: &[&str]) -> (bool, String) {
        let pins = self.pins();
        let mut command = self.penstockd(arguments);
        if !arguments.contains(&"--pins") {
            command.arg("--pins").arg(pins);
        }
        told(&command.output().unwrap())
    }

    /// The port's status as JSON.
    pub fn status(&self) -> Value {
        let text = self.ok(&["status", PORT, "--for", "50 ms", "--json"]);
        serde_json::from_str::<Value>(&text).unwrap()[0].clone()
    }

    /// The kernel's numbers of the port's maps.
    pub fn maps(&self) -> Vec<u32> {
        let names = ["config", "port", "counters", "flows4", "flows6"];
        let id = |name: &str| {
            let map = libbpf_rs::MapHandle::from_pinned_path(self.folder().join(name)).unwrap();
            libbpf_rs::MapCore::info(&map).unwrap().info.id
        };
        names.map(id).to_vec()
    }

    /// Starts the daemon with a configuration, and no more privileges than its systemd unit gives.
    pub fn daemon(&self, ports: &str) -> Child {
        self.configure(ports);
        Command::new("nsenter")
            .arg(format!("--net=/run/netns/{}", self.near()))
            .args(["setpriv", "--bounding-set=-all,+net_admin,+perfmon,+bpf"])
            .args([env!("CARGO_BIN_EXE_penstockd"), "run", "--config"])
            .arg(self.config())
            .spawn()
            .unwrap()
    }

    pub fn config(&self) -> PathBuf {
        std::env::temp_dir().join(format!("{}.toml", self.name))
    }

    /// Writes the daemon's configuration.
    pub fn configure(&self, ports: &str) {
        let pins = self.pins();
        let text = format!(
            "[agent]\npins = \"{}\"\nstale = \"400 ms\"\nheartbeat = \"50 ms\"\n{ports}",
            pins.display()
        );
        std::fs::write(self.config(), text).unwrap();
    }
}

/// Whether a command succeeded, and what it said.
pub fn told(output: &Output) -> (bool, String) {
    let said = [output.stdout.as_slice(), output.stderr.as_slice()].concat();
    (
        output.status.success(),
        String::from_utf8_lossy(&said).into_owned(),
    )
}

impl Drop for Place {
    fn drop(&mut self) {
        for namespace in [self.near(), self.far()] {
            sh(&format!("ip netns del {namespace}"));
        }
        sh(&format!("umount {}", self.bpffs.display()));
        std::fs::remove_dir(&self.bpffs).ok();
        std::fs::remove_file(self.config()).ok();
    }
}

/// Runs `what` in a network namespace, on a thread of its own.
pub fn within<T: Send + 'static>(
    namespace: &str,
    what: impl FnOnce() -> T + Send + 'static,
) -> JoinHandle<T> {
    let namespace = File::open(Path::new("/run/netns").join(namespace)).unwrap();
    std::thread::spawn(move || {
        // SAFETY: a valid descriptor; the thread is only ours.
        let status = unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) };
        assert_eq!(status, 0, "setns");
        what()
    })
}

/// Data that leaves by the port until it is ended.
pub struct Transfer {
    received: Arc<AtomicU64>,
    is_over: Arc<AtomicBool>,
    sender: JoinHandle<std::io::Result<u64>>,
    receiver: JoinHandle<std::io::Result<u64>>,
}

impl Transfer {
    pub fn begin(place: &Place) -> Transfer {
        let received = Arc::new(AtomicU64::new(0));
        let is_over = Arc::new(AtomicBool::new(false));
        let count = received.clone();
        let listener = within(&place.far(), || TcpListener::bind("10.0.0.2:7000"))
            .join()
            .unwrap()
            .unwrap();
        let receiver = within(&place.far(), move || {
            let (mut stream, _) = listener.accept()?;
            let mut buffer = vec![0; 1 << 16];
            loop {
                match stream.read(&mut buffer)? {
                    0 => return Ok(count.load(Ordering::Relaxed)),
                    n => count.fetch_add(n as u64, Ordering::Relaxed),
                };
            }
        });
        let over = is_over.clone();
        let sender = within(&place.near(), move || {
            let mut stream = TcpStream::connect("10.0.0.2:7000")?;
            let mut sent = 0;
            while !over.load(Ordering::Relaxed) {
                stream.write_all(&[7; 8192])?;
                sent += 8192;
                // Enough to be busy, and leaves the machine to others.
                std::thread::sleep(Duration::from_millis(1));
            }
            Ok(sent)
        });
        let transfer = Transfer {
            received,
            is_over,
            sender,
            receiver,
        };
        transfer.goes_on();
        transfer
    }

    /// Waits for more data to come through.
    pub fn goes_on(&self) {
        let before = self.received.load(Ordering::Relaxed);
        until("the transfer goes on", || {
            self.received.load(Ordering::Relaxed) > before + 50_000
        });
    }

    /// Ends it; the connection must have lived all the time, and every byte have come.
    pub fn end(self) {
        self.is_over.store(true, Ordering::Relaxed);
        let sent = self.sender.join().unwrap().unwrap();
        assert_eq!(self.receiver.join().unwrap().unwrap(), sent);
    }
}
