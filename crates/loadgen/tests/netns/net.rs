// SPDX-License-Identifier: Apache-2.0
//! Two hosts with four addresses each, and a switch between them.

use penstock_linux::link;
use penstock_linux::qdisc::{self, Tbf};
use penstock_linux::testkit::{self, Dumbbell};

/// The network of one test, removed with it.
pub struct Net(Dumbbell);

impl Net {
    /// Towards the receivers the switch has a port of 500 Mb/s with room for 8 MB: little is lost
    /// there.
    pub fn new() -> Net {
        let port = Tbf {
            rate_bps: 500_000_000,
            burst_bytes: 65_536,
            limit_bytes: 8 << 20,
        };
        let [left, right] =
            [0, 1].map(|side| [1, 2, 3, 4].map(|host| format!("10.9.{side}.{host}/16")));
        Net(Dumbbell::new(&left, &right, port))
    }

    /// HOSTS.json.
    pub fn hosts(&self) -> String {
        let end = |kind: &str, netns: String, side: u32| {
            let host =
                |n| format!(r#""{kind}{n}": {{"netns": "{netns}", "address": "10.9.{side}.{n}"}}"#);
            (1..=4).map(host).collect::<Vec<_>>().join(",")
        };
        let path = |netns: &penstock_linux::netns::NetNs| netns.path().display().to_string();
        format!(
            r#"{{"hosts": {{{}, {}}}, "ports": {{"left->right": {{"netns": "{}", "interface": "right"}}}}}}"#,
            end("sender", path(&self.0.left), 0),
            end("receiver", path(&self.0.right), 1),
            path(&self.0.switch)
        )
    }

    /// From now on nothing comes back from the receivers.
    pub fn mute_receivers(&self) {
        let nothing = Tbf {
            rate_bps: 1_000_000,
            burst_bytes: 2048,
            limit_bytes: 1,
        };
        self.0.limit("left", nothing);
    }

    /// Packets from the receivers pass again.
    pub fn unmute_receivers(&self) {
        let deleted = self
            .0
            .switch
            .run(|| qdisc::delete_root(link::get("left")?.index));
        deleted.unwrap().unwrap();
    }

    /// A sysctl of net.ipv4 at the senders.
    pub fn sysctl(&self, name: &str) -> String {
        let path = format!("/proc/sys/net/ipv4/{name}");
        let value = self.0.left.run(|| std::fs::read_to_string(path));
        value.unwrap().unwrap().trim().to_owned()
    }

    /// A TCP counter of /proc/net/snmp, of both ends together.
    pub fn tcp_counter(&self, name: &str) -> u64 {
        testkit::tcp_counter(&self.0.left, name) + testkit::tcp_counter(&self.0.right, name)
    }
}
