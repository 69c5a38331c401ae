// SPDX-License-Identifier: Apache-2.0
//! The controller, as it runs, with two switches and an agent: from the first packet to a notice.

mod testbed;

use penstock_controller::config::Config;
use penstock_controller::server::Server;
use penstock_controller::status::Status;
use penstock_sdn::message::{Agent, Body, Key, Notice, Order, QueueReport};
use std::collections::BTreeSet;
use std::io::Read;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use testbed::Switch;

/// Longer than anything takes on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(60);
const SECRET: &[u8] = b"a secret of sixteen bytes or more";
const A: &str = "02:00:00:00:00:01";
const B: &str = "02:00:00:00:00:02";

/// A controller in a thread.
struct Running {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    switches: SocketAddr,
    agents: SocketAddr,
    status: String,
}

impl Running {
    fn new(bed: &Switch) -> Running {
        let (key, status) = (bed.path("key"), bed.path("status.sock"));
        std::fs::write(&key, SECRET).expect("it is written");
        let config = format!(
            "openflow = \"127.0.0.1:0\"\nagents = \"127.0.0.1:0\"\nstatus = \"{status}\"\n\
             [controller]\nkind = \"sicc\"\n\
             [watch.b]\ndatapath = \"2\"\nport = 1\nbuffer = \"100 kB\"\n\
             [agent.a]\nnumber = 1\nkey = \"{key}\"\n\
             [agent.switch]\nnumber = 2\nkey = \"{key}\"\n"
        );
        let path = bed.path("controller.toml");
        std::fs::write(&path, config).expect("it is written");
        let config = Config::read(path.as_ref()).expect("it is right");
        let mut server = Server::new(&config).expect("it listens");
        let (switches, agents) = server.addresses().expect("it has");
        let stop = Arc::new(AtomicBool::new(false));
        let asked = stop.clone();
        let thread = std::thread::spawn(move || server.run(&asked).expect("it serves"));
        Running {
            stop,
            thread: Some(thread),
            switches,
            agents,
            status,
        }
    }

    fn wait(&self, what: &str, wanted: impl Fn(&Status) -> bool) -> Status {
        self.wait_with(what, || (), wanted)
    }

    /// Waits until the status is as wanted; what is done meanwhile is done again and again.
    fn wait_with(&self, what: &str, again: impl Fn(), wanted: impl Fn(&Status) -> bool) -> Status {
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

    fn stop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().expect("it ends");
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// Two bridges with a link, and a host's port at each.
fn bed() -> Switch {
    let bed = Switch::new();
    for (bridge, other) in [("1", "2"), ("2", "1")] {
        let name = format!("br{bridge}");
        let (link, peer) = (format!("to{other}"), format!("peer=to{bridge}"));
        let host = format!("host{bridge}");
        let datapath = format!("other-config:datapath-id={bridge:0>16}");
        let commands: [&[&str]; 4] = [
            &["add-br", &name],
            &[
                "--",
                "set",
                "bridge",
                &name,
                "datapath_type=dummy",
                "fail-mode=secure",
                "protocols=OpenFlow13",
                &datapath,
            ],
            &[
                "--",
                "add-port",
                &name,
                &host,
                "--",
                "set",
                "interface",
                &host,
                "type=dummy",
                "ofport_request=1",
            ],
            &[
                "--",
                "add-port",
                &name,
                &link,
                "--",
                "set",
                "interface",
                &link,
                "type=patch",
                "ofport_request=2",
            ],
        ];
        let options = format!("options:{peer}");
        bed.vsctl(&[&commands.concat()[..], &[&options]].concat());
    }
    bed
}

fn packet(from: &str, to: &str, port: u16, flags: &str) -> String {
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
fn sent(bed: &Switch, bridge: &str, port: &str) -> u64 {
    let target = format!("unix:{}", bed.path(&format!("{bridge}.mgmt")));
    let printed = bed.run("ovs-ofctl", &["-OOpenFlow13", "dump-ports", &target, port]);
    let text = String::from_utf8(printed.stdout).expect("text");
    let (_, rest) = text.split_once("tx pkts=").expect("a counter");
    let (number, _) = rest.split_once(',').expect("more counters");
    number.parse().expect("a number")
}

/// The generations of the controllers' rules in a bridge.
fn generations(bed: &Switch, bridge: &str) -> BTreeSet<u64> {
    let target = format!("unix:{}", bed.path(&format!("{bridge}.mgmt")));
    let printed = bed.run("ovs-ofctl", &["-OOpenFlow13", "dump-flows", &target]);
    let text = String::from_utf8(printed.stdout).expect("text");
    let cookies = text.split("cookie=0x").skip(1);
    let digits = cookies.map(|rest| rest.split(',').next().unwrap_or_default());
    let cookies = digits.map(|digits| u64::from_str_radix(digits, 16).expect("a cookie"));
    cookies.map(|cookie| cookie >> 8).collect()
}

/// The datagrams of one agent.
struct Host {
    socket: UdpSocket,
    agent: Agent,
}

impl Host {
    fn new(controller: &Running, number: u16, body: &Body) -> Host {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        socket.connect(controller.agents).expect("a socket");
        let patience = Some(Duration::from_millis(200));
        socket.set_read_timeout(patience).expect("a socket");
        let agent = Agent::new(Key::new(SECRET), number, 1000 + u64::from(number));
        let mut host = Host { socket, agent };
        let begun = Instant::now();
        // The challenge, and the sign of life.
        for _ in 0..2 {
            while !host.exchange(body) {
                assert!(begun.elapsed() < PATIENCE, "the controller does not answer");
            }
        }
        host
    }

    /// Sends a message; whether there was an answer.
    fn exchange(&mut self, body: &Body) -> bool {
        let sealed = self.agent.seal(body);
        self.socket.send(&sealed).expect("it is sent");
        self.receive().is_some()
    }

    fn receive(&mut self) -> Option<Vec<Notice>> {
        let mut bytes = [0; 2000];
        let length = self.socket.recv(&mut bytes).ok()?;
        Some(
            self.agent
                .unseal(&bytes[..length])
                .expect("of the controller"),
        )
    }
}

#[test]
fn incast_is_foreseen_across_two_switches() {
    let bed = bed();
    let mut controller = Running::new(&bed);
    let target = format!("tcp:{}", controller.switches);
    for bridge in ["br1", "br2"] {
        // Rules of two earlier controllers.
        for stale in ["41", "42"] {
            let target = format!("unix:{}", bed.path(&format!("{bridge}.mgmt")));
            let rule =
                format!("cookie=0x50656e0000{stale}00,table=1,priority={stale},actions=drop");
            bed.run("ovs-ofctl", &["-OOpenFlow13", "add-flow", &target, &rule]);
        }
        bed.vsctl(&["set-controller", bridge, &target]);
    }
    controller.wait("switches", |status| status.switches.len() == 2);
    let link = ["0000000000000001:2 0000000000000002:2".to_owned()];
    controller.wait("the link", |status| status.links == link);

    // Nothing is known of the hosts: what they send is flooded, and a copy of it shows where they are.
    let from = |host, from, to| bed.receive(host, &packet(from, to, 1, "ack"));
    controller.wait_with(
        "host A",
        || from("host1", A, B),
        |status| status.hosts.len() == 1,
    );
    let is_known = |status: &Status| status.hosts.len() == 2;
    let status = controller.wait_with("host B", || from("host2", B, A), is_known);
    assert_eq!(status.hosts[A], "0000000000000001:1");
    assert_eq!(status.hosts[B], "0000000000000002:1");

    let begun = Instant::now();
    while ["br1", "br2"]
        .iter()
        .any(|bridge| generations(&bed, bridge).len() != 1)
    {
        assert!(
            begun.elapsed() < PATIENCE,
            "rules of earlier controllers are gone"
        );
    }

    let guest = IpAddr::from([10, 0, 0, 1]);
    let mut shim = Host::new(&controller, 1, &Body::Hello(vec![guest]));
    let report = Body::Queues(QueueReport {
        datapath: 2,
        queues: vec![(1, 0)],
    });
    let mut agent = Host::new(&controller, 2, &Body::Hello(Vec::new()));
    while shim.receive().is_some() {}

    for port in 0..8 {
        bed.receive("host1", &packet(A, B, 2000 + port, "syn"));
    }
    controller.wait("copies", |status| status.copies == 8);
    let sealed = agent.agent.seal(&report);
    agent.socket.send(&sealed).expect("it is sent");
    shim.socket
        .set_read_timeout(Some(PATIENCE))
        .expect("a socket");
    let notices = shim.receive().expect("a notice");
    let expected = Notice {
        source: guest,
        destination: IpAddr::from([10, 0, 0, 2]),
        order: Order::On(1460, None),
    };
    assert_eq!(notices, [expected]);

    // Without the controller the network forwards as before.
    controller.stop();
    let before = sent(&bed, "br2", "host2");
    from("host1", A, B);
    let begun = Instant::now();
    while sent(&bed, "br2", "host2") <= before {
        assert!(begun.elapsed() < PATIENCE, "the packet arrives");
    }
}
