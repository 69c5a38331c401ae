// SPDX-License-Identifier: Apache-2.0
//! Two hosts and a switch between them, made of network namespaces: `left` sends to `right`
//! through the port `right` of `switch`, a TBF of some rate and room. Needs root and iproute2.

#![allow(dead_code, reason = "each test uses a part")]

pub mod agent;
pub mod offload;
pub mod traffic;

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::process::Command;
use std::thread::JoinHandle;

/// Address of the receiver.
pub const RIGHT: &str = "10.98.0.2";

/// Runs a program to its end; panics with what it told if it failed.
pub fn run(command: &str) -> String {
    let words: Vec<&str> = command.split(' ').collect();
    let output = Command::new(words[0]).args(&words[1..]).output();
    let output = output.unwrap_or_else(|error| panic!("{command}: {error}"));
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command}: {told}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The network and the folder of the agent's pins; gone with the value.
pub struct Lab {
    name: String,
}

impl Lab {
    /// `rate` and `room` of the port as `tc` reads them: `200mbit`, `32kb`.
    pub fn new(name: &str, rate: &str, room: &str) -> Lab {
        let name = format!("proof-{name}-{}", std::process::id());
        let lab = Lab { name };
        std::fs::create_dir(lab.pins()).unwrap();
        run(&format!("mount -t bpf bpf {}", lab.pins().display()));
        for host in ["left", "switch", "right"] {
            run(&format!("ip netns add {}", lab.namespace(host)));
        }
        lab.within("switch", "ip link add bridge type bridge");
        lab.within("switch", "ip link set bridge up");
        for (host, address) in [("left", "10.98.0.1"), ("right", RIGHT)] {
            let there = lab.namespace(host);
            lab.within(
                "switch",
                &format!("ip link add {host} type veth peer name eth0 netns {there}"),
            );
            lab.within(
                "switch",
                &format!("ip link set {host} master bridge up gso_max_segs 1"),
            );
            lab.within(host, &format!("ip address add {address}/24 dev eth0"));
            lab.within(host, "ip link set eth0 up gso_max_segs 1");
            lab.within(host, "ip link set lo up");
            lab.within(host, "sysctl -qw net.ipv4.ip_local_port_range=1024\t65535");
        }
        let port = format!("tc qdisc add dev right root tbf rate {rate} burst 4kb limit {room}");
        lab.within("switch", &port);
        lab
    }

    fn namespace(&self, host: &str) -> String {
        format!("{}-{host}", self.name)
    }

    /// What runs a program in the namespace of a host. Not `ip netns exec`, which hides the bpffs.
    pub fn enter(&self, host: &str) -> String {
        format!("nsenter --net=/run/netns/{}", self.namespace(host))
    }

    pub fn within(&self, host: &str, command: &str) -> String {
        run(&format!("{} {command}", self.enter(host)))
    }

    /// A thread that lives in the namespace of a host.
    pub fn spawn<T: Send + 'static>(
        &self,
        host: &str,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> JoinHandle<T> {
        let path = format!("/run/netns/{}", self.namespace(host));
        std::thread::spawn(move || {
            let file = File::open(path).unwrap();
            // SAFETY: changes the namespace of this thread alone.
            let entered = unsafe { libc::setns(file.as_raw_fd(), libc::CLONE_NEWNET) };
            assert_eq!(entered, 0, "entering a network namespace needs root");
            work()
        })
    }

    /// Folder of pins for this laboratory alone, on a bpffs of its own.
    pub fn pins(&self) -> PathBuf {
        PathBuf::from("/run").join(&self.name)
    }

    /// Packets that the port dropped.
    pub fn drops(&self) -> u64 {
        let told = self.within("switch", "tc -s -j qdisc show dev right root");
        let told: serde_json::Value = serde_json::from_str(&told).unwrap();
        told[0]["drops"].as_u64().unwrap()
    }

    /// A counter of TCP (RFC 4022), summed over both hosts: `EstabResets`, `RetransSegs` ...
    pub fn tcp_counter(&self, name: &str) -> u64 {
        let of = |host| {
            let read = || std::fs::read_to_string("/proc/thread-self/net/snmp").unwrap();
            let text = self.spawn(host, read).join().unwrap();
            let lines: Vec<&str> = text
                .lines()
                .filter(|line| line.starts_with("Tcp:"))
                .collect();
            let mut pairs = lines[0].split(' ').zip(lines[1].split(' '));
            let found = pairs
                .find(|(key, _)| *key == name)
                .unwrap_or_else(|| panic!("no {name}"));
            found.1.parse::<u64>().unwrap()
        };
        of("left") + of("right")
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        for host in ["left", "switch", "right"] {
            let _ = Command::new("ip")
                .args(["netns", "delete", &self.namespace(host)])
                .status();
        }
        let _ = Command::new("umount").arg(self.pins()).status();
        let _ = std::fs::remove_dir(self.pins());
    }
}
