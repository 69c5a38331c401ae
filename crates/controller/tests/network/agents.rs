// SPDX-License-Identifier: Apache-2.0
//! Agents of a shim and of a switch.

use crate::bed::{PATIENCE, Running, SECRET, guest};
use penstock_sdn::message::{Agent, Body, Key, Notice, QueueReport};
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

/// The datagrams of one agent.
pub struct Host {
    pub socket: UdpSocket,
    pub agent: Agent,
}

impl Host {
    pub fn new(controller: &Running, number: u16, body: &Body) -> Host {
        Host::at(controller.agents, number, body)
    }

    /// Of a controller that listens there.
    pub fn at(controller: SocketAddr, number: u16, body: &Body) -> Host {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        socket.connect(controller).expect("a socket");
        let patience = Some(Duration::from_millis(200));
        socket.set_read_timeout(patience).expect("a socket");
        let session = u64::from_ne_bytes(penstock_sdn::random().expect("the kernel has some"));
        let agent = Agent::new(Key::new(SECRET), number, session);
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
    pub fn exchange(&mut self, body: &Body) -> bool {
        let sealed = self.agent.seal(body);
        self.socket.send(&sealed).expect("it is sent");
        self.receive().is_some()
    }

    pub fn receive(&mut self) -> Option<Body> {
        let mut bytes = [0; 2000];
        let length = self.socket.recv(&mut bytes).ok()?;
        let body = self.agent.unseal(&bytes[..length]);
        Some(body.expect("of the controller"))
    }
}

/// The agents of a shim and of a switch, as one controller knows them.
pub struct Agents {
    pub shim: Host,
    pub switch: Host,
}

impl Agents {
    pub fn new(controller: &Running) -> Agents {
        Agents::at(controller.agents)
    }

    /// Of a controller that listens there.
    pub fn at(controller: SocketAddr) -> Agents {
        Agents::of(controller, &Body::Hello(vec![guest()]))
    }

    /// The same with a shim that greets so.
    pub fn of(controller: SocketAddr, hello: &Body) -> Agents {
        let mut shim = Host::at(controller, 1, hello);
        let switch = Host::at(controller, 2, &Body::Hello(Vec::new()));
        while shim.receive().is_some() {}
        shim.socket
            .set_read_timeout(Some(PATIENCE))
            .expect("a socket");
        Agents { shim, switch }
    }

    /// Reports an empty queue, and returns the notices.
    pub fn report(&mut self) -> Vec<Notice> {
        self.send_report();
        match self.shim.receive() {
            Some(Body::Notices(notices)) => notices,
            other => panic!("a notice: {other:?}"),
        }
    }

    /// How long a notice is waited for.
    pub fn be_patient_for(&mut self, time: Duration) {
        let socket = &self.shim.socket;
        socket.set_read_timeout(Some(time)).expect("a socket");
    }

    /// The notices of the next message, if one comes.
    pub fn notices(&mut self) -> Vec<Notice> {
        match self.shim.receive() {
            Some(Body::Notices(notices)) => notices,
            _ => Vec::new(),
        }
    }

    pub fn send_report(&mut self) {
        let report = Body::Queues(QueueReport {
            datapath: 2,
            queues: vec![(1, 0)],
        });
        let sealed = self.switch.agent.seal(&report);
        self.switch.socket.send(&sealed).expect("it is sent");
    }
}
