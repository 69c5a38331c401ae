// SPDX-License-Identifier: Apache-2.0
//! Two nodes on one cable, each with a pod and with stand-ins for Cilium's programs
//! (`bpf/tests/cilium.bpf.c`). The first node's card is congested towards the second.

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use penstock_linux::link;
use penstock_linux::netns::NetNs;
use penstock_linux::qdisc;
use penstock_linux::testkit::{Bpffs, address, cable, create_netkit, join, namespace, tcp_counter};
use serde_json::Value;

use super::cilium::{Cilium, Setup};
use super::lab::{self, Agent, LIMIT, transfers};

/// The card of each node.
pub const UPLINK: &str = "eth0";
/// The host's end of each pod's pair.
pub const CONTAINER: &str = "lxc1";
/// The device of the tunnel.
pub const OVERLAY: &str = "cilium_vxlan";

/// Transfers at once, and the bytes of each.
pub const FLOWS: u64 = 8;
const BYTES: u64 = 500_000;

/// How a node's packets get to its pod and from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Routing {
    /// By the kernel's tables.
    Stack,
    /// By redirects.
    Bpf,
    /// By a tunnel.
    Vxlan,
}

/// What joins a pod to its node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pair {
    Veth,
    Netkit,
}

pub struct Node {
    pub netns: NetNs,
    pub pod: NetNs,
    pub cilium: Cilium,
}

pub struct Cluster {
    pub nodes: [Node; 2],
    bpffs: Bpffs,
}

impl Cluster {
    pub fn new(pair: Pair, routing: Routing) -> Cluster {
        Cluster::with(pair, routing, false)
    }

    /// `masquerades`: towards the other node, pods have the addresses of their nodes.
    pub fn with(pair: Pair, routing: Routing, masquerades: bool) -> Cluster {
        let [first, second] = [namespace(), namespace()];
        cable((&first, UPLINK), (&second, UPLINK), 1);
        let node = |number, netns| {
            let setup = Setup {
                number,
                pair,
                routing,
                masquerades,
            };
            Node::new(netns, setup)
        };
        let cluster = Cluster {
            nodes: [node(1, first), node(2, second)],
            bpffs: Bpffs::mount(),
        };
        let line = format!("tc qdisc replace dev {UPLINK} root tbf rate 20mbit burst 5k limit 64k");
        lab::run(&cluster.nodes[0].netns, &line);
        let server = &cluster.nodes[1];
        for (netns, address) in [(&server.pod, pod(2)), (&server.netns, host(2))] {
            let listen = || TcpListener::bind((address, transfers::PORT));
            transfers::serve_on(netns.run(listen).unwrap().unwrap());
        }
        cluster
    }

    /// penstockd on a node.
    pub fn agent(&self, node: usize) -> Agent<'_> {
        Agent {
            netns: &self.nodes[node].netns,
            pins: self.bpffs.path().join(format!("node{node}")),
        }
    }

    /// penstockd in the pod of a node.
    pub fn agent_in_pod(&self, node: usize) -> Agent<'_> {
        Agent {
            netns: &self.nodes[node].pod,
            pins: self.bpffs.path().join(format!("pod{node}")),
        }
    }

    /// The status of an interface of a node, over some milliseconds.
    #[track_caller]
    pub fn status(&self, node: usize, interface: &str) -> Value {
        let words = ["status", interface, "--for", "100 ms", "--json"];
        let text = self.agent(node).ok(&words);
        serde_json::from_str::<Value>(&text).unwrap()[0].clone()
    }

    /// Transfers from the first pod to the second; returns how many packets the first node's card dropped.
    #[track_caller]
    pub fn transfer(&self) -> u64 {
        self.transfer_to(pod(2))
    }

    /// The same to the second node itself.
    #[track_caller]
    pub fn transfer_to_node(&self) -> u64 {
        self.transfer_to(host(2))
    }

    fn transfer_to(&self, address: Ipv4Addr) -> u64 {
        let before = self.drops();
        let transfer = |id| {
            let work = move || transfer(address, id, BYTES);
            self.nodes[0].pod.spawn(work).unwrap()
        };
        let all: Vec<_> = (0..FLOWS).map(transfer).collect();
        all.into_iter()
            .for_each(|thread| join(thread, LIMIT).unwrap());
        self.drops() - before
    }

    /// Does something while the first pod sends to the second.
    pub fn busy<T>(&self, work: impl FnOnce() -> T) -> T {
        let is_over = Arc::new(AtomicBool::new(false));
        let over = is_over.clone();
        let send = move || {
            while !over.load(Ordering::Relaxed) {
                transfer(pod(2), 0, BYTES)?;
            }
            Ok::<_, std::io::Error>(())
        };
        let sender = self.nodes[0].pod.spawn(send).unwrap();
        let result = work();
        is_over.store(true, Ordering::Relaxed);
        join(sender, LIMIT).unwrap();
        result
    }

    fn drops(&self) -> u64 {
        let root = || qdisc::root(link::get(UPLINK)?.index);
        let root = self.nodes[0].netns.run(root).unwrap().unwrap();
        root.counters.drops.into()
    }

    /// Segments whose checksum was wrong when they reached a pod.
    pub fn wrong_checksums(&self) -> u64 {
        let pods = self.nodes.iter().map(|node| &node.pod);
        pods.map(|pod| tcp_counter(pod, "InCsumErrors")).sum()
    }
}

fn transfer(to: Ipv4Addr, id: u64, bytes: u64) -> std::io::Result<()> {
    let stream = TcpStream::connect((to, transfers::PORT))?;
    transfers::send(&mut transfers::patient(stream)?, id, bytes)
}

/// The address of a node, 1 or 2.
pub const fn host(number: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, number)
}

/// The address of its pod.
pub const fn pod(number: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 244, number, 2)
}

impl Node {
    fn new(netns: NetNs, setup: Setup) -> Node {
        let (pod, number, other) = (namespace(), setup.number, setup.other());
        match setup.pair {
            Pair::Veth => cable((&netns, CONTAINER), (&pod, "eth0"), 1),
            Pair::Netkit => {
                let create = || create_netkit(CONTAINER, "eth0", &pod);
                netns.run(create).unwrap().unwrap();
                lab::run(&netns, &format!("ip link set {CONTAINER} up"));
                lab::run(&pod, "ip link set eth0 up");
            }
        }
        let gateway = format!("10.244.{number}.1");
        address(&netns, UPLINK, &format!("{}/24", host(number)));
        address(&netns, CONTAINER, &format!("{gateway}/24"));
        address(&pod, "eth0", &format!("{}/24", self::pod(number)));
        lab::run(&pod, &format!("ip route add default via {gateway}"));
        lab::run(&pod, "ip link set eth0 mtu 1400"); // room for the headers of a tunnel
        let forward = || std::fs::write("/proc/sys/net/ipv4/ip_forward", "1");
        netns.run(forward).unwrap().unwrap();
        let route = format!("10.244.{other}.0/24 via {}", host(other));
        lab::run(&netns, &format!("ip route add {route}"));
        if setup.routing == Routing::Vxlan {
            let kind = "type vxlan external dstport 8472";
            lab::run(&netns, &format!("ip link add {OVERLAY} {kind}"));
            lab::run(&netns, &format!("ip link set {OVERLAY} up"));
        }
        let cilium = Cilium::start(&netns, setup);
        Node { netns, pod, cilium }
    }

    /// Replaces Cilium's programs by other ones in its links.
    pub fn upgrade_cilium(&mut self) {
        self.cilium.upgrade(&self.netns);
    }

    /// Removes Cilium's programs and attaches them again.
    pub fn restart_cilium(&mut self) {
        self.cilium.restart(&self.netns);
    }
}
