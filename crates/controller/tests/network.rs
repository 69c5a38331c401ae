// SPDX-License-Identifier: Apache-2.0
//! The controller, as it runs, with two switches and an agent: from the first packet to a notice, alone
//! and with another controller, and what is left when one of them ends.

mod testbed;

use etherparse::{PacketBuilder, TcpOptionElement};
use penstock_controller::config::Config;
use penstock_controller::server::Server;
use penstock_controller::status::Status;
use penstock_sdn::message::{
    Agent, Ask, Body, ETHERTYPE, FlowOptions, FlowReport, Key, Notice, OptionsReport, Order,
    QueueReport, frame, of_frame,
};
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
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

/// The 8 flows that are new at once, and what their source is to do.
const FLOWS: u16 = 8;

/// A controller in a thread.
struct Running {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    switches: SocketAddr,
    agents: SocketAddr,
    metrics: SocketAddr,
    status: String,
}

impl Running {
    /// With a name, and further lines of its configuration.
    fn new(bed: &Switch, name: &str, lines: &str) -> Running {
        Running::with(bed, name, lines, "")
    }

    /// The same, with further lines of the shims' agent.
    fn with(bed: &Switch, name: &str, lines: &str, shims: &str) -> Running {
        let (key, status) = (bed.path("key"), bed.path(name));
        std::fs::write(&key, SECRET).expect("it is written");
        let metrics = free_address();
        let config = format!(
            "{lines}\nmetrics = \"{metrics}\"\nopenflow = \"127.0.0.1:0\"\nagents = \"127.0.0.1:0\"\nstatus = \"{status}\"\n\
             [controller]\nkind = \"sicc\"\n\
             [watch.b]\ndatapath = \"2\"\nport = 1\nbuffer = \"100 kB\"\n\
             [agent.a]\nnumber = 1\nkey = \"{key}\"\n{shims}\n\
             [agent.switch]\nnumber = 2\nkey = \"{key}\"\n"
        );
        let path = bed.path(&format!("{name}.toml"));
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
            metrics,
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

    /// The metrics, once they are as wanted.
    fn metrics(&self, wanted: impl Fn(&str) -> bool) -> String {
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

    fn stop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().expect("it ends");
        }
    }
}

/// An address that is free now.
fn free_address() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a socket");
    listener.local_addr().expect("it has one")
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

/// The rules of a bridge.
fn rules(bed: &Switch, bridge: &str) -> String {
    let target = format!("unix:{}", bed.path(&format!("{bridge}.mgmt")));
    let printed = bed.run("ovs-ofctl", &["-OOpenFlow13", "dump-flows", &target]);
    String::from_utf8(printed.stdout).expect("text")
}

/// The digests of the controllers' rules in a bridge.
fn digests(bed: &Switch, bridge: &str) -> BTreeSet<u64> {
    let text = rules(bed, bridge);
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

    fn receive(&mut self) -> Option<Body> {
        let mut bytes = [0; 2000];
        let length = self.socket.recv(&mut bytes).ok()?;
        let body = self.agent.unseal(&bytes[..length]);
        Some(body.expect("of the controller"))
    }
}

/// Has both bridges connect to these controllers, and waits until each knows the link and both hosts.
fn begin(bed: &Switch, controllers: &[&Running]) {
    let targets: Vec<_> = controllers
        .iter()
        .map(|one| format!("tcp:{}", one.switches))
        .collect();
    for bridge in ["br1", "br2"] {
        let targets = targets.iter().map(String::as_str);
        bed.vsctl(
            &["set-controller", bridge]
                .into_iter()
                .chain(targets)
                .collect::<Vec<_>>(),
        );
    }
    let link = ["0000000000000001:2 0000000000000002:2".to_owned()];
    for controller in controllers {
        controller.wait("switches", |status| status.switches.len() == 2);
        controller.wait("the link", |status| status.links == link);
        // Nothing is known of the hosts: what they send is flooded, and a copy of it shows where they are.
        let is_at = |status: &Status, host: &str, place: &str| {
            status.hosts.get(host).is_some_and(|at| at == place)
        };
        controller.wait_with(
            "host A",
            || send(bed, "host1", A, B),
            |status| is_at(status, A, "0000000000000001:1"),
        );
        controller.wait_with(
            "host B",
            || send(bed, "host2", B, A),
            |status| is_at(status, B, "0000000000000002:1"),
        );
    }
    until("rules of one kind, with routes forth and back", || {
        ["br1", "br2"].iter().all(|bridge| {
            digests(bed, bridge).len() == 1
                && rules(bed, bridge).matches("priority=10,").count() == 2
        })
    });
}

/// A packet of no flow.
fn send(bed: &Switch, host: &str, from: &str, to: &str) {
    bed.receive(host, &packet(from, to, 1, "ack"));
}

fn until(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The agents of a shim and of a switch, as one controller knows them.
struct Agents {
    shim: Host,
    switch: Host,
}

impl Agents {
    fn new(controller: &Running) -> Agents {
        let mut shim = Host::new(controller, 1, &Body::Hello(vec![guest()]));
        let switch = Host::new(controller, 2, &Body::Hello(Vec::new()));
        while shim.receive().is_some() {}
        shim.socket
            .set_read_timeout(Some(PATIENCE))
            .expect("a socket");
        Agents { shim, switch }
    }

    /// Reports an empty queue, and returns the notices.
    fn report(&mut self) -> Vec<Notice> {
        self.send_report();
        match self.shim.receive() {
            Some(Body::Notices(notices)) => notices,
            other => panic!("a notice: {other:?}"),
        }
    }

    fn send_report(&mut self) {
        let report = Body::Queues(QueueReport {
            datapath: 2,
            queues: vec![(1, 0)],
        });
        let sealed = self.switch.agent.seal(&report);
        self.switch.socket.send(&sealed).expect("it is sent");
    }
}

fn guest() -> IpAddr {
    IpAddr::from([10, 0, 0, 1])
}

fn expected() -> [Notice; 1] {
    [Notice {
        source: guest(),
        destination: IpAddr::from([10, 0, 0, 2]),
        order: Order::On(1460, None),
    }]
}

/// Begins flows from host A to host B.
fn incast(bed: &Switch, first: u16) {
    for port in first..first + FLOWS {
        bed.receive("host1", &packet(A, B, port, "syn"));
    }
}

/// The network takes a packet from host A to host B.
fn forwards(bed: &Switch) {
    let before = sent(bed, "br2", "host2");
    send(bed, "host1", A, B);
    until("the packet arrives", || sent(bed, "br2", "host2") > before);
}

#[test]
fn incast_is_foreseen_across_two_switches() {
    let bed = bed();
    let mut controller = Running::new(&bed, "one", "");
    for bridge in ["br1", "br2"] {
        // Rules of two earlier controllers.
        for stale in ["41", "42"] {
            let target = format!("unix:{}", bed.path(&format!("{bridge}.mgmt")));
            let rule =
                format!("cookie=0x50656e0000{stale}00,table=1,priority={stale},actions=drop");
            bed.run("ovs-ofctl", &["-OOpenFlow13", "add-flow", &target, &rule]);
        }
    }
    begin(&bed, &[&controller]);
    let mut agents = Agents::new(&controller);
    incast(&bed, 2000);
    controller.wait("copies", |status| {
        status.counters.copies == u64::from(FLOWS)
    });
    assert_eq!(agents.report(), expected());

    // Without the controller the network forwards as before; another one knows soon what it knew.
    let before = digests(&bed, "br2");
    let metrics =
        controller.metrics(|text| text.contains("incasts_total{port=\"0000000000000002:1\"} 1"));
    for line in [
        "penstock_controller_hosts 2",
        "penstock_controller_flows{port=\"0000000000000002:1\"} 8",
        "penstock_controller_copies_total 8",
        "penstock_controller_refused_messages_total{agent=\"1\"} 0",
        "# EOF",
    ] {
        assert!(metrics.lines().any(|one| one == line), "{line}: {metrics}");
    }
    controller.stop();
    forwards(&bed);
    let again = Running::new(&bed, "again", "");
    begin(&bed, &[&again]);
    assert_eq!(digests(&bed, "br2"), before);
    let mut agents = Agents::new(&again);
    incast(&bed, 3000);
    again.wait("copies", |status| {
        status.counters.copies >= u64::from(FLOWS)
    });
    assert_eq!(agents.report(), expected());
}

#[test]
fn a_switch_that_comes_back_is_as_before() {
    let bed = bed();
    let controller = Running::new(&bed, "one", "");
    begin(&bed, &[&controller]);
    let before = digests(&bed, "br2");
    // Its connection is cut; then its rules are lost, as when it starts again.
    bed.vsctl(&["set-controller", "br2", "tcp:127.0.0.1:1"]);
    controller.wait("it is gone", |status| status.written == 1);
    forwards(&bed);
    let target = format!("unix:{}", bed.path("br2.mgmt"));
    bed.run("ovs-ofctl", &["-OOpenFlow13", "del-flows", &target]);
    bed.vsctl(&[
        "set-controller",
        "br2",
        &format!("tcp:{}", controller.switches),
    ]);
    until("its rules are there", || digests(&bed, "br2") == before);
    forwards(&bed);
}

#[test]
fn controllers_that_all_write_leave_no_gap() {
    let bed = bed();
    let mut first = Running::new(&bed, "first", "");
    let second = Running::new(&bed, "second", "");
    begin(&bed, &[&first, &second]);
    let mut agents = [&first, &second].map(Agents::new);
    incast(&bed, 2000);
    for (controller, agents) in [&first, &second].into_iter().zip(&mut agents) {
        controller.wait("copies", |status| {
            status.counters.copies == u64::from(FLOWS)
        });
        assert_eq!(controller.wait("", |_| true).written, 2);
        assert_eq!(agents.report(), expected());
    }
    let before = digests(&bed, "br1");
    first.stop();
    incast(&bed, 3000);
    second.wait("copies", |status| {
        status.counters.copies == 2 * u64::from(FLOWS)
    });
    assert_eq!(agents[1].report(), expected());
    forwards(&bed);
    assert_eq!(digests(&bed, "br1"), before);
}

#[test]
fn one_writes_and_another_takes_its_place() {
    let bed = bed();
    let lines = format!("writes = \"one\"\nkey = \"{}\"", bed.path("key"));
    let mut first = Running::new(&bed, "first", &lines);
    begin(&bed, &[&first]);
    let second = Running::new(&bed, "second", &lines);
    begin(&bed, &[&first, &second]);
    // Each sees the frames of the one that writes, and which that is does not change.
    for _ in 0..3 {
        let written = [&first, &second].map(|one| one.wait("", |_| true).written);
        assert_eq!(written, [2, 0]);
        std::thread::sleep(Duration::from_secs(1));
    }
    // The other one foresees as well.
    let mut agents = Agents::new(&second);
    incast(&bed, 2000);
    second.wait("copies", |status| {
        status.counters.copies == u64::from(FLOWS)
    });
    assert_eq!(agents.report(), expected());

    first.stop();
    second.wait("it writes", |status| status.written == 2);
    forwards(&bed);
    // The first comes back, and waits.
    let first = Running::new(&bed, "again", &lines);
    begin(&bed, &[&first, &second]);
    let written = [&first, &second].map(|one| one.wait("", |_| true).written);
    assert_eq!(written, [0, 2]);
}

/// The frames of messages that have left by a port, without the headers of Ethernet.
fn frames(file: &str) -> Vec<Vec<u8>> {
    let bytes = std::fs::read(file).expect("the switch writes it");
    let mut rest = bytes.get(24..).unwrap_or_default();
    let mut found = Vec::new();
    // Four numbers of 32 bits, of which the third is the length, precede each packet of a pcap.
    while let Some((length, packets)) = rest.get(8..12).zip(rest.get(16..)) {
        let length = u32::from_le_bytes(length.try_into().expect("4 bytes"));
        let Some((packet, after)) = packets.split_at_checked(length as usize) else {
            break; // it is being written
        };
        if packet.get(12..14) == Some(&ETHERTYPE.to_be_bytes()) {
            found.push(packet[14..].to_vec());
        }
        rest = after;
    }
    found
}

#[test]
fn notices_leave_as_frames_by_the_port_of_the_guest_and_those_of_guests_end() {
    let bed = bed();
    let files = ["host1", "host2"].map(|host| bed.path(&format!("{host}.pcap")));
    for (host, file) in ["host1", "host2"].iter().zip(&files) {
        let option = format!("options:tx_pcap={file}");
        bed.vsctl(&["set", "interface", host, &option]);
    }
    let controller = Running::with(&bed, "one", "", "frames = true");
    begin(&bed, &[&controller]);
    let mut agents = Agents::new(&controller);
    incast(&bed, 2000);
    controller.wait("copies", |status| {
        status.counters.copies == u64::from(FLOWS)
    });
    agents.send_report();
    until("the frame leaves", || !frames(&files[0]).is_empty());
    let mut shim = agents.shim;
    let sent = frames(&files[0]);
    let message = of_frame(&sent[0]).expect("a message");
    assert_eq!(
        shim.agent.unseal(message),
        Ok(Body::Notices(expected().to_vec()))
    );
    assert!(shim.agent.unseal(message).is_err(), "only once");

    // Host A sends it to B, whose shim would be asked: it ends at the port where it enters.
    let forged = frame([2, 0, 0, 0, 0, 2], message);
    let hex: String = forged.iter().map(|byte| format!("{byte:02x}")).collect();
    let copies = controller.wait("any", |_| true).counters.copies;
    bed.receive("host1", &hex);
    let target = format!("unix:{}", bed.path("br1.mgmt"));
    let dropped = || {
        let rule = "table=0,dl_type=0x88b5";
        let printed = bed.run("ovs-ofctl", &["-OOpenFlow13", "dump-flows", &target, rule]);
        let text = String::from_utf8(printed.stdout).expect("text");
        text.contains("n_packets=1,") && text.contains("actions=drop")
    };
    until("the rule takes it", dropped);
    assert!(frames(&files[1]).is_empty(), "B gets nothing");
    assert_eq!(controller.wait("any", |_| true).counters.copies, copies);
}

/// A SYN, SYN-ACK, FIN or RST between the hosts, as bytes.
fn whole(from: u8, to: u8, ports: (u16, u16), flags: &str, ack: u32) -> String {
    let builder = PacketBuilder::ethernet2([2, 0, 0, 0, 0, from], [2, 0, 0, 0, 0, to])
        .ipv4([10, 0, 0, from], [10, 0, 0, to], 64)
        .tcp(ports.0, ports.1, 500, 1000);
    let options = [
        TcpOptionElement::MaximumSegmentSize(1000 + u16::from(from)),
        TcpOptionElement::WindowScale(from),
    ];
    let builder = match flags {
        "syn" => builder.syn().options(&options).expect("they fit"),
        "syn-ack" => builder.syn().ack(ack).options(&options).expect("they fit"),
        "fin" => builder.fin().ack(ack),
        "rst" => builder.rst(),
        _ => panic!("{flags}"),
    };
    let mut bytes = Vec::new();
    builder.write(&mut bytes, &[]).expect("a frame");
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn an_agent_that_asks_gets_the_flows_of_a_port_and_their_scales() {
    let bed = bed();
    let controllers = ["one", "two"].map(|name| Running::new(&bed, name, ""));
    begin(&bed, &controllers.each_ref());
    let hello = Body::Hello(Vec::new());
    let mut agents = controllers.each_ref().map(|one| Host::new(one, 2, &hello));
    let ask = |agent: &mut Host, wants_all| {
        let ports = vec![(1, wants_all), (7, wants_all)];
        let sealed = agent.agent.seal(&Body::Ask(Ask { datapath: 2, ports }));
        agent.socket.send(&sealed).expect("it is sent");
    };
    let wait_for = |agent: &mut Host, wanted: &Body| {
        let begun = Instant::now();
        loop {
            ask(agent, true);
            while let Some(body) = agent.receive() {
                if body == *wanted {
                    return;
                }
            }
            assert!(begun.elapsed() < PATIENCE, "{wanted:?}");
        }
    };
    let number = |flows| {
        let flows = vec![(1, flows)];
        Body::Flows(FlowReport { datapath: 2, flows })
    };
    let send = |host: &str, frame: String| bed.receive(host, &frame);
    for agent in &mut agents {
        wait_for(agent, &number(0));
    }
    send("host1", whole(1, 2, (4000, 80), "syn", 0));
    send("host1", whole(1, 2, (4001, 80), "syn", 0));
    agents
        .iter_mut()
        .for_each(|agent| wait_for(agent, &number(2)));
    send("host2", whole(2, 1, (80, 4000), "syn-ack", 501));
    let options = Body::Options(OptionsReport {
        datapath: 2,
        port: 1,
        flows: vec![FlowOptions {
            source: ([10, 0, 0, 1], 4000).into(),
            destination: ([10, 0, 0, 2], 80).into(),
            mss_bytes: 1001,
            scales: Some([1, 2]),
        }],
    });
    agents
        .iter_mut()
        .for_each(|agent| wait_for(agent, &options));
    // One ends, the other is refused.
    send("host1", whole(1, 2, (4000, 80), "fin", 501));
    send("host2", whole(2, 1, (80, 4001), "rst", 0));
    agents
        .iter_mut()
        .for_each(|agent| wait_for(agent, &number(0)));
    // Without asking, nothing more comes.
    let [agent, _] = &mut agents;
    std::thread::sleep(Duration::from_secs(4));
    while agent.receive().is_some() {}
    send("host1", whole(1, 2, (4002, 80), "syn", 0));
    controllers[0].wait("the copy", |status| status.counters.copies == 6);
    assert_eq!(agent.receive(), None);
}
