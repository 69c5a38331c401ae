// SPDX-License-Identifier: Apache-2.0
//! The daemon's conversation with SICC's controller: queues and notices, and what is forged, repeated
//! or of a controller that was restarted. Needs root.

#![allow(clippy::unwrap_used)]

mod lab;

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use lab::raw::Raw;
use lab::{PORT, PortLab};
use libbpf_rs::MapCore;
use penstock_linux::testkit::{PATIENCE, Process, until};
use penstock_sdn::message::{
    Ask, Body, ETHERTYPE, FlowOptions, FlowReport, Key, Notice, OptionsReport, Order, Peer,
    Received, frame,
};

const SECRET: &[u8] = b"a secret of sixteen bytes or more";
const NUMBER: u16 = 5;
const GUEST: &str = "10.0.0.2";
const OTHER: &str = "10.0.0.1";

/// A controller that does what the test wants.
struct Controller {
    socket: UdpSocket,
    peer: Peer,
    agent: Option<SocketAddr>,
    /// What it has sent.
    sent: Vec<Vec<u8>>,
}

impl Controller {
    fn new(lab: &PortLab) -> Controller {
        let bind = || UdpSocket::bind("127.0.0.1:0");
        let socket = lab.near().run(bind).unwrap().unwrap();
        let patience = Some(Duration::from_millis(100));
        socket.set_read_timeout(patience).unwrap();
        Controller {
            socket,
            peer: Peer::new(Key::new(SECRET), NUMBER),
            agent: None,
            sent: Vec::new(),
        }
    }

    /// The next message of the agent, after the challenge.
    fn next(&mut self) -> Body {
        let begun = Instant::now();
        let mut bytes = [0; 2000];
        loop {
            assert!(begun.elapsed() < PATIENCE, "the agent is silent");
            let Ok((length, from)) = self.socket.recv_from(&mut bytes) else {
                continue;
            };
            match self.peer.unseal(&bytes[..length], 77).unwrap() {
                Received::Answer(answer) => drop(self.socket.send_to(&answer, from).unwrap()),
                Received::Body(body) => {
                    self.agent = Some(from);
                    return body;
                }
            }
        }
    }

    /// The next one that `wanted` takes.
    fn wait<T>(&mut self, wanted: impl Fn(Body) -> Option<T>) -> T {
        loop {
            if let Some(found) = wanted(self.next()) {
                return found;
            }
        }
    }

    /// Orders until so many pairs are clamped: without signs of life, which the test does not send all
    /// the time, the agent begins other sessions, and an order of one before is lost.
    fn order(&mut self, lab: &PortLab, order: Order, pairs: u64) {
        self.order_by(lab, notice(order), pairs, Controller::send_again);
    }

    /// The same with a way of sending.
    fn order_by(
        &mut self,
        lab: &PortLab,
        notice: Notice,
        pairs: u64,
        send: impl Fn(&Controller, &[u8]),
    ) {
        let begun = Instant::now();
        while lab.status()["clamped_pairs"] != pairs {
            assert!(
                begun.elapsed() < PATIENCE,
                "{notice:?} is not taken: {}",
                lab.log()
            );
            self.wait(guests);
            let sealed = self.peer.seal(&Body::Notices(vec![notice])).unwrap();
            send(self, &sealed);
            self.sent.push(sealed);
        }
    }

    fn send_again(&self, sealed: &[u8]) {
        self.socket.send_to(sealed, self.agent.unwrap()).unwrap();
    }
}

fn notice(order: Order) -> Notice {
    Notice {
        source: GUEST.parse().unwrap(),
        destination: OTHER.parse().unwrap(),
        order,
    }
}

/// The daemon with a shim, and this in its table `sdn`.
fn daemon(lab: &PortLab, controllers: &[&Controller], sdn: &str) -> Process {
    let port = "scheme = \"sicc\"\ncontroller.duration = \"60 min\"";
    let guests = format!("guests = {{ {PORT} = [\"{GUEST}\"] }}");
    daemon_with(lab, port, controllers, &format!("{guests}\n{sdn}"))
}

/// The daemon with these lines for the port, and in its table `sdn`.
fn daemon_with(lab: &PortLab, port: &str, controllers: &[&Controller], sdn: &str) -> Process {
    let key = lab.folder.path().join("key");
    std::fs::write(&key, SECRET).unwrap();
    let address = |one: &&Controller| one.socket.local_addr().unwrap().to_string();
    let addresses: Vec<String> = controllers.iter().map(address).collect();
    lab.daemon(&format!(
        "[port.{PORT}]\n{port}\n[sdn]\ncontroller = {addresses:?}\nnumber = {NUMBER}\nkey = {key:?}\n{sdn}"
    ))
}

fn guests(body: Body) -> Option<Vec<IpAddr>> {
    match body {
        Body::Hello(guests) => Some(guests),
        _ => None,
    }
}

#[test]
fn queues_go_to_the_controller_and_notices_to_the_shim() {
    let lab = PortLab::quiet();
    lab.congest();
    let (mut controller, mut second) = (Controller::new(&lab), Controller::new(&lab));
    let switch = format!("[sdn.switch]\ndatapath = \"2a\"\nports = {{ {PORT} = 7 }}\n");
    let _daemon = daemon(&lab, &[&controller, &second], &switch);
    let guest: IpAddr = GUEST.parse().unwrap();
    // Once it is challenged it names its guests at once, before any report: until then none is clamped.
    assert_eq!(guests(controller.next()), Some(vec![guest]));
    let report = controller.wait(|body| match body {
        Body::Queues(report) if !report.queues.is_empty() => Some(report),
        _ => None,
    });
    assert_eq!((report.datapath, report.queues), (0x2a, vec![(7, 0)]));
    until("the shim is there", || {
        lab.status_of(PORT)["scheme"] == "sicc"
    });

    controller.order(&lab, Order::On(1448, Some(7)), 1);
    controller.order(&lab, Order::Off, 0);

    // The ON again, one that is changed, and one of another key; then an order that is right.
    let on = controller.sent[0].clone();
    let mut changed = on.clone();
    changed[40] ^= 1;
    controller.send_again(&on);
    controller.send_again(&changed);
    controller.send_again(&[0; 100]);
    let before = controller.wait(guests);
    assert_eq!(before, [guest]);
    assert_eq!(lab.status()["clamped_pairs"], 0, "none was taken");

    // Another controller takes its place: the agent begins another session.
    controller.peer = Peer::new(Key::new(SECRET), NUMBER);
    assert_eq!(controller.wait(guests), [guest]);
    controller.send_again(&on);
    controller.order(&lab, Order::On(1448, None), 1);
    controller.order(&lab, Order::Off, 0);

    // Without the first, the second goes on; what the first began ends by the second's word.
    assert_eq!(second.wait(guests), [guest]);
    controller.order(&lab, Order::On(1448, None), 1);
    drop(controller);
    second.order(&lab, Order::Off, 0);
    second.order(&lab, Order::On(1448, None), 1);
}

/// Another pair than that of [`notice`]: its order shows that all frames before it were seen.
fn marker(order: Order) -> Notice {
    let destination = "10.0.0.9".parse().unwrap();
    Notice {
        destination,
        ..notice(order)
    }
}

#[test]
fn frames_are_taken_on_their_way_to_the_guest_and_not_from_it() {
    let lab = PortLab::quiet();
    let mut controller = Controller::new(&lab);
    let _daemon = daemon(&lab, &[&controller], "frames = true\n");
    until("the shim is there", || {
        lab.status_of(PORT)["scheme"] == "sicc"
    });
    let network = lab.near().run(|| Raw::new(PORT)).unwrap();
    let of = |sealed: &[u8]| frame([2; 6], sealed);
    let by_frame = |_: &Controller, sealed: &[u8]| network.send_whole(&of(sealed));
    let on = Order::On(1448, Some(7));
    controller.order_by(&lab, notice(on), 1, by_frame);
    // The last is among those taken; earlier ones may have come before the shim took any.
    let again = controller.sent.last().unwrap().clone();
    controller.order_by(&lab, notice(Order::Off), 0, by_frame);
    let guest = lab.far().run(|| Raw::new("eth0")).unwrap();

    // One again, one that is changed, and one that is right, but comes from the guest.
    let fresh = controller
        .peer
        .seal(&Body::Notices(vec![notice(on)]))
        .unwrap();
    let mut changed = fresh.clone();
    changed[40] ^= 1;
    network.send_whole(&of(&again));
    network.send_whole(&of(&changed));
    guest.send_whole(&of(&fresh));
    network.send_whole(&of(&[0; 100]));
    network.send_whole(&of(&[]));
    controller.order_by(&lab, marker(on), 1, by_frame);
    controller.order_by(&lab, marker(Order::Off), 0, by_frame);

    // The guest gets none of them, but those of another type.
    let mut other = of(&again);
    other[13] += 1;
    network.send_whole(&other);
    let mut bytes = [0; 2000];
    let types: Vec<[u8; 2]> = std::iter::from_fn(|| {
        // The kernel's header of 10 bytes precedes the frame.
        let found = guest.receive(&mut bytes, Duration::from_millis(900));
        found.map(|_| [bytes[22], bytes[23]])
    })
    .collect();
    assert!(types.contains(&(ETHERTYPE + 1).to_be_bytes()), "{types:?}");
    assert!(!types.contains(&ETHERTYPE.to_be_bytes()), "{types:?}");
}

#[test]
fn frames_of_several_controllers_are_taken() {
    let lab = PortLab::quiet();
    let mut controllers = [Controller::new(&lab), Controller::new(&lab)];
    let _daemon = daemon(&lab, &controllers.each_ref(), "frames = true\n");
    until("the shim is there", || {
        lab.status_of(PORT)["scheme"] == "sicc"
    });
    let network = lab.near().run(|| Raw::new(PORT)).unwrap();
    let by_frame = |_: &Controller, sealed: &[u8]| network.send_whole(&frame([2; 6], sealed));
    for controller in &mut controllers {
        controller.order_by(&lab, notice(Order::On(1448, Some(7))), 1, by_frame);
        controller.order_by(&lab, notice(Order::Off), 0, by_frame);
    }
}

const DATAPATH: u64 = 0x2a;
const NUMBER_OF_PORT: u32 = 7;

fn asked(body: Body) -> Option<Ask> {
    match body {
        Body::Ask(ask) => Some(ask),
        _ => None,
    }
}

/// The port has so many flows.
fn number(port: u32, flows: u32) -> Body {
    Body::Flows(FlowReport {
        datapath: DATAPATH,
        flows: vec![(port, flows)],
    })
}

/// The flows of the port, and those that a controller has counted.
fn flows(lab: &PortLab) -> (Option<u64>, Option<u64>) {
    let status = lab.status();
    let of = |key: &str| status[key].as_u64();
    (of("flows"), of("flows_by_controller"))
}

/// Sends this until it is so, as often as the agent asks.
fn send_until(controller: &mut Controller, body: &Body, what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "{what}");
        controller.wait(asked);
        let sealed = controller.peer.seal(body).unwrap();
        controller.send_again(&sealed);
        controller.sent.push(sealed);
    }
}

/// The daemon with a port whose flows a controller counts, at an agent that takes few.
fn counted(lab: &PortLab, controller: &Controller) -> Process {
    let port = "scheme = \"fairq\"\ncontroller = { kind = \"flow-counts\" }";
    let switch = format!(
        "[sdn.switch]\ndatapath = \"2a\"\ninterval = \"0 s\"\nports = {{ {PORT} = {NUMBER_OF_PORT} }}\n"
    );
    daemon_with(lab, port, &[controller], &switch)
}

#[test]
fn a_port_takes_the_number_of_flows_of_a_controller_that_lives() {
    let lab = PortLab::quiet();
    lab.congest();
    let mut controller = Controller::new(&lab);
    let _daemon = counted(&lab, &controller);
    let ask = controller.wait(asked);
    assert_eq!(
        (ask.datapath, ask.ports),
        (DATAPATH, vec![(NUMBER_OF_PORT, true)])
    );
    let is = |flows_now: u64| move |lab: &PortLab| flows(lab) == (Some(flows_now), Some(flows_now));
    let forty = number(NUMBER_OF_PORT, 40);
    send_until(&mut controller, &forty, "40 flows", || is(40)(&lab));
    // One that was taken is not taken again, nor one that is changed, of another port, or an agent's own.
    let old = controller.sent.last().unwrap().clone();
    let more = number(NUMBER_OF_PORT, 41);
    send_until(&mut controller, &more, "41 flows", || is(41)(&lab));
    let mut changed = controller.peer.seal(&number(NUMBER_OF_PORT, 9)).unwrap();
    changed[40] ^= 1;
    for forged in [&old, &changed] {
        controller.send_again(forged);
    }
    let other = controller.peer.seal(&number(8, 9)).unwrap();
    controller.send_again(&other);
    send_until(&mut controller, &number(8, 9), "a later message", || {
        assert_ne!(flows(&lab).0, Some(40));
        assert_ne!(flows(&lab).0, Some(9));
        flows(&lab).1.is_none() // the number has become old: the port counts itself
    });
    assert_eq!(flows(&lab), (Some(0), None));
    // No more are believed than the port may have.
    let most = u64::from(penstockd::attach::FLOWS);
    let all = number(NUMBER_OF_PORT, u32::MAX);
    send_until(&mut controller, &all, "all flows", || is(most)(&lab));
}

#[test]
fn a_port_learns_what_the_syns_of_flows_offered() {
    let lab = PortLab::quiet();
    lab.congest();
    let mut controller = Controller::new(&lab);
    let _daemon = counted(&lab, &controller);
    controller.wait(asked);
    let flow = |port: u16, mss_bytes, scales| FlowOptions {
        source: ([10, 0, 0, 1], port).into(),
        destination: ([10, 0, 0, 2], 80).into(),
        mss_bytes,
        scales,
    };
    let report = Body::Options(OptionsReport {
        datapath: DATAPATH,
        port: NUMBER_OF_PORT,
        flows: vec![
            flow(1, 1460, Some([7, 15])), // more than the largest
            flow(0, 1460, Some([7, 9])),
            flow(3, 40, None), // the MSS is raised to the least
            flow(2, 1460, Some([7, 9])),
        ],
    });
    let known = || {
        let map = lab.agent().port(PORT).map("known").unwrap();
        let value = |key: Vec<u8>| {
            map.lookup(&key, libbpf_rs::MapFlags::ANY)
                .ok()??
                .get(8..12)
                .map(<[u8]>::to_vec)
        };
        let mut values: Vec<Vec<u8>> = map.keys().filter_map(value).collect();
        values.sort();
        values
    };
    let entry = |mss: u16, scales: [u8; 2]| [mss.to_ne_bytes(), scales].concat();
    let mut expected = vec![entry(536, [0xfe, 0xfe]), entry(1460, [7, 9])];
    expected.sort();
    send_until(&mut controller, &report, "the flows are known", || {
        known() == expected
    });
}
