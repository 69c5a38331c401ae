// SPDX-License-Identifier: Apache-2.0
//! Two namespaces, `senders` and `receivers`, and a veth between them.

use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// The namespaces of one test, removed with it.
pub struct Net {
    senders: String,
    receivers: String,
}

impl Net {
    /// Four addresses at each end. The senders' end is a port of 500 Mb/s, wide enough in bytes that
    /// nothing is lost: a sender would notice a loss in its own namespace, unlike one in a switch.
    pub fn new() -> Net {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = |end: &str| format!("traffic-{}-{number}-{end}", std::process::id());
        let net = Net {
            senders: name("s"),
            receivers: name("r"),
        };
        let (s, r) = (&net.senders, &net.receivers);
        for end in [s, r] {
            run(&format!("ip netns add {end}"));
        }
        run(&format!(
            "ip -n {s} link add port type veth peer name port netns {r}"
        ));
        for (end, side) in [(s, 0), (r, 1)] {
            for host in 1..=4 {
                run(&format!(
                    "ip -n {end} addr add 10.9.{side}.{host}/16 dev port"
                ));
            }
            run(&format!("ip -n {end} link set port up"));
        }
        run(&format!(
            "tc -n {s} qdisc add dev port root tbf rate 500mbit burst 64kb limit 8mb"
        ));
        net
    }

    /// HOSTS.json.
    pub fn hosts(&self) -> String {
        let end = |kind: &str, netns: &str, side: u32| {
            let host = |n| {
                format!(
                    r#""{kind}{n}": {{"netns": "/run/netns/{netns}", "address": "10.9.{side}.{n}"}}"#
                )
            };
            (1..=4).map(host).collect::<Vec<_>>().join(",")
        };
        format!(
            r#"{{"hosts": {{{}, {}}}, "ports": {{"left->right": {{"netns": "/run/netns/{}", "interface": "port"}}}}}}"#,
            end("sender", &self.senders, 0),
            end("receiver", &self.receivers, 1),
            self.senders
        )
    }

    /// From now on nothing comes back from the receivers.
    pub fn mute_receivers(&self) {
        let r = &self.receivers;
        run(&format!(
            "tc -n {r} qdisc add dev port root tbf rate 1mbit burst 2kb limit 1"
        ));
    }

    /// The receivers are heard again.
    pub fn unmute_receivers(&self) {
        run(&format!("tc -n {} qdisc del dev port root", self.receivers));
    }

    /// A switch of net.ipv4 at the senders.
    pub fn sysctl(&self, name: &str) -> String {
        let netns = &self.senders;
        let text = run(&format!(
            "nsenter --net=/run/netns/{netns} cat /proc/sys/net/ipv4/{name}"
        ));
        text.trim().to_owned()
    }

    /// A TCP counter of /proc/net/snmp, of both ends together.
    pub fn tcp_counter(&self, name: &str) -> u64 {
        let of = |netns: &str| {
            let text = run(&format!(
                "nsenter --net=/run/netns/{netns} cat /proc/net/snmp"
            ));
            let mut lines = text.lines().filter(|line| line.starts_with("Tcp:"));
            let (names, values) = (lines.next().unwrap(), lines.next().unwrap());
            let at = names.split(' ').position(|known| known == name).unwrap();
            values.split(' ').nth(at).unwrap().parse::<u64>().unwrap()
        };
        of(&self.senders) + of(&self.receivers)
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        for end in [&self.senders, &self.receivers] {
            let _ = Command::new("ip").args(["netns", "del", end]).status();
        }
    }
}

/// Runs a command of words; returns what it says.
fn run(line: &str) -> String {
    let mut words = line.split(' ');
    let output = Command::new(words.next().unwrap()).args(words).output();
    let output = output.unwrap_or_else(|error| panic!("{line}: {error} (needs iproute2)"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{line}: {said} (needs root)");
    String::from_utf8(output.stdout).unwrap()
}
