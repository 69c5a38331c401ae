// SPDX-License-Identifier: Apache-2.0
//! Three namespaces: `senders`, a switch, `receivers`.

use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// The namespaces of one test, removed with it.
pub struct Net {
    senders: String,
    switch: String,
    receivers: String,
}

impl Net {
    /// Four addresses at each end. Towards the receivers the switch has a port of 500 Mb/s with room
    /// for 8 MB: little is lost there.
    pub fn new() -> Net {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = |end: &str| format!("traffic-{}-{number}-{end}", std::process::id());
        let net = Net {
            senders: name("s"),
            switch: name("m"),
            receivers: name("r"),
        };
        let (s, m, r) = (&net.senders, &net.switch, &net.receivers);
        for netns in [s, m, r] {
            run(&format!("ip netns add {netns}"));
        }
        run(&format!("ip -n {m} link add bridge type bridge"));
        run(&format!("ip -n {m} link set bridge up"));
        for (end, port, side) in [(s, "left", 0), (r, "right", 1)] {
            run(&format!(
                "ip -n {m} link add {port} type veth peer name host netns {end}"
            ));
            run(&format!("ip -n {m} link set {port} master bridge up"));
            for host in 1..=4 {
                run(&format!(
                    "ip -n {end} addr add 10.9.{side}.{host}/16 dev host"
                ));
            }
            run(&format!("ip -n {end} link set host up"));
        }
        run(&format!(
            "tc -n {m} qdisc add dev right root tbf rate 500mbit burst 64kb limit 8mb"
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
            r#"{{"hosts": {{{}, {}}}, "ports": {{"left->right": {{"netns": "/run/netns/{}", "interface": "right"}}}}}}"#,
            end("sender", &self.senders, 0),
            end("receiver", &self.receivers, 1),
            self.switch
        )
    }

    /// From now on nothing comes back from the receivers.
    pub fn mute_receivers(&self) {
        let m = &self.switch;
        run(&format!(
            "tc -n {m} qdisc add dev left root tbf rate 1mbit burst 2kb limit 1"
        ));
    }

    /// The receivers are heard again.
    pub fn unmute_receivers(&self) {
        run(&format!("tc -n {} qdisc del dev left root", self.switch));
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
        for netns in [&self.senders, &self.switch, &self.receivers] {
            let _ = Command::new("ip").args(["netns", "del", netns]).status();
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
