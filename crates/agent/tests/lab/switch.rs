// SPDX-License-Identifier: Apache-2.0
//! Two hosts and a switch between them: `left` sends to `right` through the switch's port `right`, a
//! token bucket filter.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::JoinHandle;
use std::time::Duration;

use penstock_linux::link::{self, Change};
use penstock_linux::netns::NetNs;
use penstock_linux::qdisc::{self, Tbf};
use penstock_linux::testkit::{self, Bpffs, Dumbbell, Process};
use penstockd::port::Port;

use super::Agent;
use super::delay::Delay;

/// Address of the sender.
pub const LEFT: &str = "10.98.0.1";

/// Address of the receiver.
pub const RIGHT: &str = "10.98.0.2";

/// The network, and a bpffs for the agent's pins.
pub struct SwitchLab {
    network: Dumbbell,
    bpffs: Bpffs,
}

impl SwitchLab {
    /// Rate and buffer of the port, bits per second and bytes.
    pub fn new(rate_bps: u64, buffer_bytes: u32) -> SwitchLab {
        let port = Tbf {
            rate_bps,
            burst_bytes: 4096,
            limit_bytes: buffer_bytes,
        };
        let [left, right] = [LEFT, RIGHT].map(|address| format!("{address}/24"));
        let network = Dumbbell::new(&[left], &[right], port);
        let lab = SwitchLab {
            network,
            bpffs: Bpffs::mount(),
        };
        for host in ["left", "right"] {
            for (netns, interface) in [(host, "eth0"), ("switch", host)] {
                let change = || link::change(interface, &[Change::GsoMaxSegments(1)]);
                lab.netns(netns).run(change).unwrap().unwrap();
            }
            lab.set_sysctl(host, "net/ipv4/ip_local_port_range", "1024 65535");
            lab.keep_flows_on_one_cpu(host);
        }
        lab
    }

    /// Frames between the switch and `left` take this time, in each direction.
    pub fn delay(&self, time: Duration) -> Delay {
        let switch = self.netns("switch");
        super::run(switch, "ip link set left nomaster");
        super::run(switch, "ip link add wire type veth peer name left2");
        super::run(switch, "ip link set left2 master bridge");
        for end in ["wire", "left2"] {
            super::run(switch, &format!("ip link set {end} up gso_max_segs 1"));
        }
        Delay::new(switch, ["left", "wire"], time)
    }

    /// The namespace `left`, `switch` or `right`.
    pub fn netns(&self, host: &str) -> &NetNs {
        match host {
            "left" => &self.network.left,
            "switch" => &self.network.switch,
            "right" => &self.network.right,
            _ => panic!("{host}: expected left, switch or right"),
        }
    }

    /// One CPU takes all packets of a host, as a card's hash does for each flow. Without that, the first data
    /// may arrive on one CPU while another turns the handshake into a connection, and Linux 6.18 then
    /// finds neither and answers with a reset.
    fn keep_flows_on_one_cpu(&self, host: &str) {
        let script = "mount -t sysfs sysfs /sys && cd /sys/class/net/eth0/queues/rx-0 && \
                      if [ -e rps_cpus ]; then echo 1 > rps_cpus; fi";
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", script]);
        let output = || testkit::output(&mut command, super::LIMIT);
        let output = self.netns(host).run(output).unwrap();
        assert!(output.status.success(), "{output:?}");
    }

    /// Hosts whose CPUs are taken acknowledge late. With a long RTO, what times out was lost. From Linux 6.11 on.
    pub fn time_out_late(&self) {
        let name = "net/ipv4/tcp_rto_min_us";
        if Path::new("/proc/sys").join(name).exists() {
            for host in ["left", "right"] {
                self.set_sysctl(host, name, "1000000");
            }
        }
    }

    fn set_sysctl(&self, host: &str, name: &str, value: &str) {
        let path = Path::new("/proc/sys").join(name);
        let written = self.netns(host).run(|| std::fs::write(&path, value));
        written.unwrap().unwrap();
    }

    /// penstockd at the switch.
    pub fn agent(&self) -> Agent<'_> {
        Agent {
            netns: self.netns("switch"),
            pins: self.pins(),
        }
    }

    /// penstockd with this scheme and these options at the port `right`, which it serves until it is ended.
    pub fn attach(&self, scheme: &str, options: &[&str], limit: Duration) -> (Process, Port) {
        let words = [&["attach", "right", "--stay", "--scheme", scheme], options].concat();
        let process = self.agent().start_at("right", &words, limit);
        (process, self.agent().port("right"))
    }

    /// A thread that lives in the namespace of a host.
    pub fn spawn<T: Send + 'static>(
        &self,
        host: &str,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> JoinHandle<T> {
        self.netns(host).spawn(work).unwrap()
    }

    /// Folder of all pins.
    pub fn pins(&self) -> PathBuf {
        self.bpffs.path().to_owned()
    }

    /// Packets that the port dropped.
    pub fn drops(&self) -> u64 {
        let root = self
            .netns("switch")
            .run(|| qdisc::root(link::get("right")?.index));
        root.unwrap().unwrap().counters.drops.into()
    }

    /// A counter of TCP (RFC 4022), summed over both hosts: `EstabResets`, `RetransSegs` ...
    pub fn tcp_counter(&self, name: &str) -> u64 {
        let hosts = [self.netns("left"), self.netns("right")];
        let counters = hosts.map(|host| testkit::tcp_counter(host, name));
        counters.into_iter().sum()
    }
}
