// SPDX-License-Identifier: Apache-2.0
//! Bridges of Open vSwitch, controllers in threads, and packets of hosts.

use crate::testbed::Switch;
use penstock_controller::config::Config;
use penstock_controller::server::Server;
use penstock_controller::status::Status;
use penstock_sdn::message::{Notice, Order};
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Longer than anything takes on a loaded machine.
pub const PATIENCE: Duration = Duration::from_secs(60);
pub const SECRET: &[u8] = b"a secret of sixteen bytes or more";
pub const A: &str = "02:00:00:00:00:01";
pub const B: &str = "02:00:00:00:00:02";

/// The 8 flows that are new at once, and what their source is to do.
pub const FLOWS: u16 = 8;

/// A controller in a thread.
pub struct Running {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    pub switches: SocketAddr,
    pub agents: SocketAddr,
    pub metrics: SocketAddr,
    pub status: String,
}

impl Running {
    /// With a name, and further lines of its configuration.
    pub fn new(bed: &Switch, name: &str, lines: &str) -> Running {
        Running::with(bed, name, lines, "")
    }

    /// The same, with further lines of the shims' agent.
    pub fn with(bed: &Switch, name: &str, lines: &str, shims: &str) -> Running {
        let any = "127.0.0.1:0".parse().expect("an address");
        let listen = |metrics| {
            let lines = format!("{lines}\nmetrics = \"{metrics}\"");
            let path = configure(bed, name, &lines, shims, [any, any]);
            Server::new(&Config::read(path.as_ref()).expect("it is right"))
        };
        let (status, mut metrics) = (bed.path(name), free_address());
        let mut server = listen(metrics)
            .or_else(|_| {
                metrics = free_address(); // a connection took that one meanwhile
                listen(metrics)
            })
            .expect("it listens");
        let (switches, agents) = server.addresses().expect("it has");
        let stop = Arc::new(AtomicBool::new(false));
        let asked = stop.clone();
        let thread = std::thread::spawn(move || server.run(&asked).expect("it serves"));
        Running {
            stop,
            thread: Some(thread),
            switches,
            agents,
            metrics,
            status,
        }
    }

    pub fn wait(&self, what: &str, wanted: impl Fn(&Status) -> bool) -> Status {
        self.wait_with(what, || (), wanted)
    }

    /// Waits until the switches have copied the SYNs of one `incast`.
    pub fn wait_for_copies(&self) -> Status {
        self.wait("copies", |status| {
            status.counters.copies == u64::from(FLOWS)
        })
    }

    /// Waits until the status is as wanted; what is done meanwhile is done again and again.
    pub fn wait_with(
        &self,
        what: &str,
        again: impl Fn(),
        wanted: impl Fn(&Status) -> bool,
    ) -> Status {
        let begun = Instant::now();
        loop {
            let mut text = String::new();
            let mut stream = UnixStream::connect(&self.status).expect("it listens");
            stream.read_to_string(&mut text).expect("it answers");
            let status: Status = serde_json::from_str(&text).expect("a status");
            if wanted(&status) {
                return status;
            }
            assert!(begun.elapsed() < PATIENCE, "{what}: {status:?}");
            again();
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// The metrics, once they are as wanted.
    pub fn metrics(&self, wanted: impl Fn(&str) -> bool) -> String {
        let begun = Instant::now();
        loop {
            let mut text = String::new();
            let mut stream = TcpStream::connect(self.metrics).expect("it listens");
            stream
                .write_all(b"GET /metrics HTTP/1.1\r\n\r\n")
                .and_then(|()| stream.read_to_string(&mut text))
                .expect("it answers");
            if wanted(&text) {
                return text;
            }
            assert!(begun.elapsed() < PATIENCE, "metrics: {text}");
        }
    }

    pub fn stop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().expect("it ends");
        }
    }
}

/// Writes a controller's configuration, and returns where it is: with a name, further lines of it and of the
/// shims' agent, and where it listens for switches and agents.
pub fn configure(
    bed: &Switch,
    name: &str,
    lines: &str,
    shims: &str,
    [switches, agents]: [SocketAddr; 2],
) -> String {
    let (key, status) = (bed.path("key"), bed.path(name));
    std::fs::write(&key, SECRET).expect("it is written");
    let text = format!(
        "{lines}\nopenflow = \"{switches}\"\nagents = \"{agents}\"\nstatus = \"{status}\"\n\
         [controller]\nkind = \"sicc\"\n\
         [watch.b]\ndatapath = \"2\"\nport = 1\nbuffer = \"100 kB\"\n\
         [agent.a]\nnumber = 1\nkey = \"{key}\"\n{shims}\n\
         [agent.switch]\nnumber = 2\nkey = \"{key}\"\n"
    );
    let path = bed.path(&format!("{name}.toml"));
    std::fs::write(&path, text).expect("it is written");
    path
}

/// An address that is free now.
pub fn free_address() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a socket");
    listener.local_addr().expect("it has one")
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// Two bridges with a link, and a host's port at each.
pub fn bed() -> Switch {
    bridged(2, &[(1, 2)])
}

/// So many bridges, each with a host's port of number 1, and links between them, whose ports have the numbers
/// that follow, in this order.
pub fn bridged(bridges: u32, links: &[(u32, u32)]) -> Switch {
    let bed = Switch::new();
    for bridge in 1..=bridges {
        let (name, host) = (format!("br{bridge}"), format!("host{bridge}"));
        let settings = format!(
            "datapath_type=dummy fail-mode=secure protocols=OpenFlow13 \
             other-config:datapath-id={bridge:0>16}"
        );
        let mut words = format!("add-br {name} -- set bridge {name} {settings}");
        words += &port(bridge, &host, "type=dummy", 1);
        let ends = links
            .iter()
            .flat_map(|(one, other)| [(one, other), (other, one)]);
        for (number, (_, far)) in ends.filter(|(near, _)| **near == bridge).enumerate() {
            words += &end(bridge, *far, number + 2);
        }
        bed.vsctl(&words.split_whitespace().collect::<Vec<_>>());
    }
    bed
}

/// A link between two bridges that have none.
pub fn link(bed: &Switch, one: u32, other: u32) {
    let words = end(one, other, 2) + &end(other, one, 2);
    bed.vsctl(&words.split_whitespace().skip(1).collect::<Vec<_>>());
}

/// The words that give a bridge its end of a link.
fn end(near: u32, far: u32, number: usize) -> String {
    let kind = format!("type=patch options:peer=l{far}-{near}");
    port(near, &format!("l{near}-{far}"), &kind, number)
}

fn port(bridge: u32, name: &str, kind: &str, number: usize) -> String {
    let interface = format!("set interface {name} {kind} ofport_request={number}");
    format!(" -- add-port br{bridge} {name} -- {interface}")
}

pub fn packet(from: &str, to: &str, port: u16, flags: &str) -> String {
    let last = |mac: &str| mac[mac.len() - 1..].to_owned();
    format!(
        "in_port(1),eth(src={from},dst={to}),eth_type(0x0800),\
         ipv4(src=10.0.0.{},dst=10.0.0.{},proto=6,tos=0,ttl=64,frag=no),\
         tcp(src={port},dst=80),tcp_flags({flags})",
        last(from),
        last(to)
    )
}

/// The packets that have left by a host's port.
pub fn sent(bed: &Switch, bridge: &str, port: &str) -> u64 {
    let target = format!("unix:{}", bed.path(&format!("{bridge}.mgmt")));
    let printed = bed.run("ovs-ofctl", &["-OOpenFlow13", "dump-ports", &target, port]);
    let text = String::from_utf8(printed.stdout).expect("text");
    let (_, rest) = text.split_once("tx pkts=").expect("a counter");
    let (number, _) = rest.split_once(',').expect("more counters");
    number.parse().expect("a number")
}

/// The rules of a bridge.
pub fn rules(bed: &Switch, bridge: &str) -> String {
    let target = format!("unix:{}", bed.path(&format!("{bridge}.mgmt")));
    let printed = bed.run("ovs-ofctl", &["-OOpenFlow13", "dump-flows", &target]);
    String::from_utf8(printed.stdout).expect("text")
}

/// The digests of the controllers' rules in a bridge.
pub fn digests(bed: &Switch, bridge: &str) -> BTreeSet<u64> {
    let text = rules(bed, bridge);
    let cookies = text.split("cookie=0x").skip(1);
    let digits = cookies.map(|rest| rest.split(',').next().unwrap_or_default());
    let cookies = digits.map(|digits| u64::from_str_radix(digits, 16).expect("a cookie"));
    cookies.map(|cookie| cookie >> 8).collect()
}

/// Has the bridges connect to these controllers.
pub fn connect(bed: &Switch, bridges: &[&str], controllers: &[&Running]) {
    let targets: Vec<_> = controllers
        .iter()
        .map(|one| format!("tcp:{}", one.switches))
        .collect();
    for bridge in bridges {
        let words = ["set-controller", bridge].into_iter();
        let words: Vec<_> = words.chain(targets.iter().map(String::as_str)).collect();
        bed.vsctl(&words);
    }
}

/// Has both bridges connect to these controllers, and waits until each knows the link and both hosts.
pub fn begin(bed: &Switch, controllers: &[&Running]) {
    connect(bed, &["br1", "br2"], controllers);
    let link = ["0000000000000001:2 0000000000000002:2".to_owned()];
    for controller in controllers {
        controller.wait("switches", |status| status.switches.len() == 2);
        controller.wait("the link", |status| status.links == link);
        find_hosts(bed, controller, 2);
    }
    until_routed(bed, &["br1", "br2"]);
}

/// Waits until a controller knows the hosts of so many bridges. Nothing is known of them: what they send
/// is flooded, and a copy of it shows where they are.
pub fn find_hosts(bed: &Switch, controller: &Running, bridges: u32) {
    for number in 1..=bridges {
        let (own, other) = (host(number), host(number % bridges + 1));
        let place = format!("{number:016}:1");
        controller.wait_with(
            "a host",
            || send(bed, &format!("host{number}"), &own, &other),
            |status| status.hosts.get(&own).is_some_and(|at| *at == place),
        );
    }
}

/// The host at a bridge.
pub fn host(bridge: u32) -> String {
    format!("02:00:00:00:00:{bridge:02}")
}

/// Waits until each bridge has the rules of one kind, with a route for each pair of two hosts that leads
/// through it.
pub fn until_routed(bed: &Switch, bridges: &[&str]) {
    let routes = bridges.len() * (bridges.len() - 1);
    until("rules of one kind, with routes forth and back", || {
        bridges.iter().all(|bridge| {
            digests(bed, bridge).len() == 1
                && rules(bed, bridge).matches("priority=10,").count() >= routes.min(4)
        })
    });
}

/// A packet of no flow.
pub fn send(bed: &Switch, host: &str, from: &str, to: &str) {
    bed.receive(host, &packet(from, to, 1, "ack"));
}

pub fn until(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

pub fn guest() -> IpAddr {
    IpAddr::from([10, 0, 0, 1])
}

pub fn expected() -> [Notice; 1] {
    [Notice {
        source: guest(),
        destination: IpAddr::from([10, 0, 0, 2]),
        order: Order::On(1460, None),
    }]
}

/// Begins flows from host A to host B.
pub fn incast(bed: &Switch, first: u16) {
    for port in first..first + FLOWS {
        bed.receive("host1", &packet(A, B, port, "syn"));
    }
}

/// The network takes a packet from host A to host B.
pub fn forwards(bed: &Switch) {
    let before = sent(bed, "br2", "host2");
    send(bed, "host1", A, B);
    until("the packet arrives", || sent(bed, "br2", "host2") > before);
}
