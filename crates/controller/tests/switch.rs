// SPDX-License-Identifier: Apache-2.0
//! Against Open vSwitch, its datapath in user space, without any interface of this machine.

mod testbed;

use penstock_controller::openflow::{
    Action, Field, FlowMod, Frames, Instruction, Match, Message, Port, PortChange, Role, Route,
    Version, Writer,
};
use penstock_core::flow::flag;
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::{Duration, Instant};
use testbed::Switch;

/// Longer than any answer takes on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// The controller's end of a connection.
struct Connection {
    stream: UnixStream,
    frames: Frames,
    version: Version,
    out: Writer,
}

impl Connection {
    fn accept(listener: &UnixListener) -> Connection {
        let (stream, _) = listener.accept().expect("the switch connects");
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
        Connection {
            stream,
            frames: Frames::default(),
            version: Version::V13,
            out: Writer::new(Version::V13),
        }
    }

    fn send(&mut self) {
        let bytes = std::mem::take(self.out.bytes());
        self.stream.write_all(&bytes).expect("the switch reads");
    }

    /// What `wanted` takes from the messages of the switch, with errors never among them.
    fn wait<T>(&mut self, mut wanted: impl FnMut(Message<'_>) -> Option<T>) -> T {
        self.send();
        let mut bytes = [0; 4096];
        loop {
            while let Some((header, body)) = self.frames.take().expect("lengths are right") {
                let message = Message::read(self.version, header, body).expect("it is read");
                match message {
                    Message::EchoRequest(data) => self.out.echo_reply(header.xid, data),
                    Message::Error { kind, code, .. } => panic!("error {kind}, {code}"),
                    other => {
                        if let Some(found) = wanted(other) {
                            return found;
                        }
                    }
                }
            }
            self.send();
            let read = self.stream.read(&mut bytes).expect("it answers");
            assert_ne!(read, 0, "the switch has closed the connection");
            self.frames.push(&bytes[..read]);
        }
    }
}

fn ports(message: Message<'_>) -> Option<Vec<Port>> {
    match message {
        Message::Ports(ports, false) => Some(ports),
        _ => None,
    }
}

fn converses(wire: &str, version: Version) {
    let switch = Switch::new();
    let socket = switch.path("controller.sock");
    let listener = UnixListener::bind(Path::new(&socket)).expect("a socket");
    let protocols = format!("protocols={wire}");
    let target = format!("unix:{socket}");
    let bridge = ["add-br", "br0", "--", "set", "bridge", "br0"];
    let settings = ["datapath_type=dummy", "fail-mode=secure", &*protocols];
    let ports_of = ["--", "add-port", "br0", "p1", "--", "add-port", "br0", "p2"];
    let numbers = [
        "--",
        "set",
        "interface",
        "p1",
        "type=dummy",
        "ofport_request=1",
    ];
    let second = [
        "--",
        "set",
        "interface",
        "p2",
        "type=dummy",
        "ofport_request=2",
    ];
    let controller = ["--", "set-controller", "br0", &*target];
    switch.vsctl(
        &[
            &bridge[..],
            &settings,
            &ports_of,
            &numbers,
            &second,
            &controller,
        ]
        .concat(),
    );
    let mut connection = Connection::accept(&listener);
    connection.out.hello();
    let agreed = connection.wait(|message| match message {
        Message::Hello(version) => Some(version),
        _ => None,
    });
    assert_eq!(agreed, Some(version));
    connection.version = version;
    connection.out.set_version(version);

    connection.out.features();
    let auxiliary = connection.wait(|message| match message {
        Message::Features { auxiliary, .. } => Some(auxiliary),
        _ => None,
    });
    assert_eq!(auxiliary, 0);
    connection.out.role(Role::Master, 3);
    let role = connection.wait(|message| match message {
        Message::Role(role, election) => Some((role, election)),
        _ => None,
    });
    assert_eq!(role, (Role::Master, 3));
    connection.out.ports();
    let mut found = connection.wait(ports);
    found.sort_by_key(|port| port.number);
    let numbers: Vec<_> = found.iter().map(|one| one.number).collect();
    assert_eq!(numbers[..2], [1, 2]);

    // Copies of SYNs, cut after 60 bytes, and all by port 2.
    let rule = |table, matches, instructions| FlowMod {
        cookie: 7,
        table,
        priority: 1,
        matches: Match(matches),
        instructions,
    };
    let syn = vec![
        Field::EthType(0x0800),
        Field::IpProto(6),
        Field::TcpFlags(flag::SYN.into(), flag::SYN.into()),
    ];
    let copies = vec![
        Instruction::Apply(vec![Action::Copy(60)]),
        Instruction::Goto(1),
    ];
    connection.out.add(&FlowMod {
        priority: 2,
        ..rule(0, syn, copies)
    });
    connection
        .out
        .add(&rule(0, vec![], vec![Instruction::Goto(1)]));
    let forward = vec![Instruction::Apply(vec![Action::Output(2)])];
    connection.out.add(&rule(1, vec![], forward));
    connection.out.barrier();
    connection.wait(|message| (message == Message::Barrier).then_some(()));

    let destination = [2, 0, 0, 0, 0, 2];
    let ends = vec![
        Field::EthSrc([2, 0, 0, 0, 0, 1]),
        Field::EthDst(destination),
    ];
    let forward = vec![Instruction::Apply(vec![Action::Output(2)])];
    connection.out.add(&FlowMod {
        cookie: 8,
        ..rule(1, ends, forward)
    });
    // Of the rules with these cookies, one has a destination.
    connection.out.rules(1, 0, !15);
    let routes = connection.wait(|message| match message {
        Message::Routes(routes, false) => Some(routes),
        _ => None,
    });
    assert_eq!(
        routes,
        [Route {
            destination,
            port: 2
        }]
    );
    let packet = |flags| {
        format!(
            "in_port(1),eth(src=02:00:00:00:00:01,dst=02:00:00:00:00:02),eth_type(0x0800),\
             ipv4(src=10.0.0.1,dst=10.0.0.2,proto=6,tos=0,ttl=64,frag=no),\
             tcp(src=1000,dst=80),tcp_flags({flags})"
        )
    };
    switch.receive("p1", &packet("ack"));
    switch.receive("p1", &packet("syn"));
    let (cookie, in_port, flags) = connection.wait(|message| match message {
        Message::PacketIn {
            cookie,
            in_port,
            data,
            ..
        } => Some((cookie, in_port, data.get(47).copied())),
        _ => None,
    });
    assert_eq!((cookie, in_port, flags), (7, Some(1), Some(2)));

    connection.out.packet_out(&[Action::Output(2)], &[0; 60]);
    connection.send();
    // Both packets and that of the controller; forwarding takes its time.
    let target = format!("unix:{}", switch.path("br0.mgmt"));
    let protocol = format!("-O{wire}");
    let has_sent = || {
        let printed = switch.run("ovs-ofctl", &[&protocol, "dump-ports", &target, "p2"]);
        let text = String::from_utf8(printed.stdout).expect("text");
        text.contains("tx pkts=3,")
    };
    let begun = Instant::now();
    while !has_sent() {
        assert!(begun.elapsed() < PATIENCE, "three packets leave");
        std::thread::sleep(Duration::from_millis(5));
    }

    switch.vsctl(&["del-port", "br0", "p2"]);
    let gone = connection.wait(|message| match message {
        Message::PortStatus(change, port) => Some((change, port.number)),
        _ => None,
    });
    assert_eq!(gone, (PortChange::Deleted, 2));
}

#[test]
fn converses_in_1_3() {
    converses("OpenFlow13", Version::V13);
}

#[test]
fn converses_in_1_5() {
    converses("OpenFlow15", Version::V15);
}
