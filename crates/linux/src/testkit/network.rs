// SPDX-License-Identifier: Apache-2.0
//! Networks of namespaces.

use std::net::IpAddr;

use crate::counters::Counters;
use crate::link::{self, Change};
use crate::netns::NetNs;
use crate::qdisc::Tbf;

/// A new network namespace whose loopback is up.
///
/// # Panics
/// The test does not run as root.
#[track_caller]
pub fn namespace() -> NetNs {
    let made = NetNs::create().and_then(|netns| {
        netns.run(|| link::change("lo", &[Change::Up]))??;
        Ok(netns)
    });
    made.unwrap_or_else(|error| panic!("{error}: run this test as root"))
}

/// Joins two interfaces, which it creates with so many queues, by a cable; both are up.
///
/// # Panics
/// One of the names is taken.
#[track_caller]
pub fn cable((near, near_name): (&NetNs, &str), (far, far_name): (&NetNs, &str), queues: u32) {
    let up = |netns: &NetNs, name: &str| netns.run(|| link::change(name, &[Change::Up]))?;
    let made = near
        .run(|| link::create_veth(near_name, far_name, far, queues))
        .and_then(|created| created)
        .and_then(|()| up(near, near_name))
        .and_then(|()| up(far, far_name));
    made.unwrap_or_else(|error| panic!("{error}"));
}

/// Gives an interface an address with its prefix: `10.0.0.1/24`.
///
/// # Panics
/// The interface has it already, or it is no address.
#[track_caller]
pub fn address(netns: &NetNs, interface: &str, address: &str) {
    let parsed = address
        .split_once('/')
        .and_then(|(ip, prefix)| Some((ip.parse::<IpAddr>().ok()?, prefix.parse().ok()?)));
    let (ip, prefix) = parsed.unwrap_or_else(|| panic!("{address}: expected as 10.0.0.1/24"));
    netns
        .run(|| link::add_address(interface, ip, prefix))
        .and_then(|added| added)
        .unwrap_or_else(|error| panic!("{error}"));
}

/// A counter of TCP in a namespace: `EstabResets`, `RetransSegs` ... (RFC 4022), or one of Linux's
/// own, `TCPTimeouts`.
///
/// # Panics
/// The kernel has none of this name.
#[track_caller]
pub fn tcp_counter(netns: &NetNs, name: &str) -> u64 {
    let counters = netns.run(Counters::read).and_then(|counters| counters);
    let counters = counters.unwrap_or_else(|error| panic!("{error}"));
    let value = counters
        .get("Tcp", name)
        .or_else(|| counters.get("TcpExt", name));
    value.unwrap_or_else(|| panic!("this kernel has no counter Tcp {name}"))
}

/// Two hosts on one cable.
#[derive(Debug)]
pub struct Pair {
    /// The host of the first interface.
    pub near: NetNs,
    /// The host of the second.
    pub far: NetNs,
}

impl Pair {
    /// Each end is the name of its interface, and its address: `("eth0", "10.0.0.1/24")`.
    ///
    /// # Panics
    /// The test does not run as root.
    #[track_caller]
    pub fn new(near: (&str, &str), far: (&str, &str)) -> Pair {
        Pair::with_queues(near, far, 1)
    }

    /// The same, of interfaces with so many queues.
    ///
    /// # Panics
    /// As [`Pair::new`].
    #[track_caller]
    pub fn with_queues(near: (&str, &str), far: (&str, &str), queues: u32) -> Pair {
        let pair = Pair {
            near: namespace(),
            far: namespace(),
        };
        cable((&pair.near, near.0), (&pair.far, far.0), queues);
        address(&pair.near, near.0, near.1);
        address(&pair.far, far.0, far.1);
        pair
    }
}

/// Two hosts, `left` and `right`, each with its interface `eth0`, and a switch between them. The
/// switch's ports are called as the hosts; its port `right` is a token bucket filter.
#[derive(Debug)]
pub struct Dumbbell {
    /// One host.
    pub left: NetNs,
    /// The switch.
    pub switch: NetNs,
    /// The other host.
    pub right: NetNs,
}

impl Dumbbell {
    /// The addresses of each host, all in one subnet, and the switch's port towards `right`.
    ///
    /// # Panics
    /// The test does not run as root.
    #[track_caller]
    pub fn new<A: AsRef<str>>(left: &[A], right: &[A], port: Tbf) -> Dumbbell {
        let network = Dumbbell {
            left: namespace(),
            switch: namespace(),
            right: namespace(),
        };
        let switch = &network.switch;
        let bridged = |port: &str| link::change(port, &[Change::Bridge("bridge")]);
        let made = switch
            .run(|| {
                link::create_bridge("bridge")?;
                link::change("bridge", &[Change::Up])
            })
            .and_then(|made| made);
        made.unwrap_or_else(|error| panic!("{error}"));
        for (host, name, addresses) in [
            (&network.left, "left", left),
            (&network.right, "right", right),
        ] {
            cable((switch, name), (host, "eth0"), 1);
            let joined = switch.run(|| bridged(name)).and_then(|joined| joined);
            joined.unwrap_or_else(|error| panic!("{error}"));
            for text in addresses {
                address(host, "eth0", text.as_ref());
            }
        }
        network.limit("right", port);
        network
    }

    /// Makes the switch's port towards a host a token bucket filter.
    ///
    /// # Panics
    /// There is no such port.
    #[track_caller]
    pub fn limit(&self, port: &str, tbf: Tbf) {
        let limited = self
            .switch
            .run(|| tbf.put_on(link::get(port)?.index))
            .and_then(|limited| limited);
        limited.unwrap_or_else(|error| panic!("{error}"));
    }
}
