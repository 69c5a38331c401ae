// SPDX-License-Identifier: Apache-2.0
//! A switch and agents, as the controller sees them.

use crate::{DATAPATH, HOSTS, RECEIVER, SECRET};
use anyhow::Result;
use etherparse::{IpHeaders, PacketBuilder, PacketBuilderStep, TcpHeader, TcpOptionElement};
use penstock_controller::openflow::{Frames, kind};
use penstock_sdn::message::{Agent, Body, Key, QueueReport};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::ops::Range;
use std::sync::mpsc::channel;
use std::time::Instant;

const OPTIONS: [TcpOptionElement; 2] = [
    TcpOptionElement::MaximumSegmentSize(1460),
    TcpOptionElement::WindowScale(7),
];
const CLIENT_SEQ: u32 = 1;
const SERVER_SEQ: u32 = 7;
const WINDOW: u16 = 1000;

/// Waits for a datagram until then; a socket's own timeout counts in jiffies.
pub fn is_readable(socket: &UdpSocket, until: Instant) -> bool {
    let left = until.saturating_duration_since(Instant::now());
    let left = Timespec::try_from(left).ok();
    let mut polled = [PollFd::new(socket, PollFlags::IN)];
    matches!(poll(&mut polled, left.as_ref()), Ok(1..))
}

/// A switch that has its rules.
pub fn connect(address: SocketAddr, datapath: u64) -> Result<TcpStream> {
    let mut switch = Switch::new(address, datapath)?;
    while !switch.answer()? {}
    // From now on all that the controller sends is read and dropped, but for what `wait` wants.
    Ok(switch.stream)
}

/// Switches that only answer the controller, in a thread of their own; returns when they have their rules.
pub fn others(address: SocketAddr, datapaths: Range<u64>) -> Result<()> {
    let switches: Result<Vec<_>> = datapaths.map(|one| Switch::new(address, one)).collect();
    let mut switches = switches?;
    let (ready, are_ready) = channel::<()>();
    std::thread::spawn(move || -> Result<()> {
        let mut left: BTreeSet<usize> = (0..switches.len()).collect();
        let mut ready = Some(ready);
        loop {
            if left.is_empty() {
                drop(ready.take());
            }
            let polled = switches.iter().map(|one| &one.stream);
            let mut polled: Vec<_> = polled.map(|one| PollFd::new(one, PollFlags::IN)).collect();
            poll(&mut polled, None)?;
            let readable = polled.iter().map(|one| !one.revents().is_empty());
            let readable: Vec<bool> = readable.collect();
            for (number, _) in readable.iter().enumerate().filter(|(_, is)| **is) {
                // When the controller ends, so does this.
                if switches[number].answer()? {
                    left.remove(&number);
                }
            }
        }
    });
    let _ = are_ready.recv(); // none is sent: the sender is dropped
    Ok(())
}

/// What a switch does before it forwards: HELLO, its number, its ports, its role, signs of life.
struct Switch {
    stream: TcpStream,
    datapath: u64,
    frames: Frames,
}

impl Switch {
    fn new(address: SocketAddr, datapath: u64) -> Result<Self> {
        let mut stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.write_all(&message(kind::HELLO, 1, &[]))?;
        let frames = Frames::default();
        Ok(Self {
            stream,
            datapath,
            frames,
        })
    }

    /// Reads once, and answers. Returns whether its rules were written: a barrier came.
    fn answer(&mut self) -> Result<bool> {
        let mut bytes = vec![0; 65_536];
        let length = self.stream.read(&mut bytes)?;
        anyhow::ensure!(length > 0, "the controller has closed the connection");
        self.frames.push(&bytes[..length]);
        let (mut has_rules, mut out) = (false, Vec::new());
        while let Some((header, body)) = self.frames.take()? {
            let (kind, body) = match header.kind {
                kind::FEATURES_REQUEST => {
                    let mut features = self.datapath.to_be_bytes().to_vec();
                    features.extend([0, 0, 0, 0, 254, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
                    (kind::FEATURES_REPLY, features)
                }
                kind::MULTIPART_REQUEST if body.starts_with(&[0, 13]) => {
                    (kind::MULTIPART_REPLY, ports())
                }
                // It has no rules, and gives the role that is asked for; a question alone finds EQUAL.
                kind::MULTIPART_REQUEST => (kind::MULTIPART_REPLY, body[..8].to_vec()),
                kind::ROLE_REQUEST => {
                    let mut role = body.to_vec();
                    role[3] = role[3].max(1);
                    (kind::ROLE_REPLY, role)
                }
                kind::ECHO_REQUEST => (kind::ECHO_REPLY, body.to_vec()),
                kind::BARRIER_REQUEST => {
                    has_rules = true;
                    (kind::BARRIER_REPLY, Vec::new())
                }
                _ => continue,
            };
            out.extend(message(kind, header.xid, &body));
        }
        self.stream.write_all(&out)?;
        Ok(has_rules)
    }
}

/// The description of its ports.
fn ports() -> Vec<u8> {
    let mut body = vec![0, 13, 0, 0, 0, 0, 0, 0];
    for port in (1..=HOSTS).chain([RECEIVER]) {
        let mut one = vec![0, 0, 0, port, 0, 0, 0, 0, 2, 0, 0, 0, 1, port, 0, 0];
        one.resize(64, 0);
        body.extend(one);
    }
    body
}

/// Reads until a message of this type; returns its number.
pub fn wait(stream: &mut TcpStream, wanted: u8) -> Result<u32> {
    let (mut frames, mut bytes) = (Frames::default(), vec![0; 65_536]);
    loop {
        let length = stream.read(&mut bytes)?;
        anyhow::ensure!(length > 0, "the controller has closed the connection");
        frames.push(&bytes[..length]);
        while let Some((header, _)) = frames.take()? {
            if header.kind == wanted {
                return Ok(header.xid);
            }
        }
    }
}

pub fn greet(address: SocketAddr, number: u16, body: Body) -> Result<(UdpSocket, Agent)> {
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    socket.connect(address)?;
    let mut agent = Agent::new(Key::new(SECRET), number, u64::from(number) + 7);
    let mut bytes = [0; 2000];
    for _ in 0..2 {
        socket.send(&agent.seal(&body))?;
        let length = socket.recv(&mut bytes)?;
        agent
            .unseal(&bytes[..length])
            .map_err(|why| anyhow::anyhow!("{why}"))?;
    }
    Ok((socket, agent))
}

/// The agent of the switch.
pub struct Reporter(UdpSocket, Agent);

impl Reporter {
    pub fn new(address: SocketAddr) -> Result<Self> {
        let (socket, agent) = greet(address, 2, Body::Hello(Vec::new()))?;
        Ok(Self(socket, agent))
    }

    /// The bytes in the queues of these ports.
    pub fn report(&mut self, queues: Vec<(u32, u32)>) -> Result<()> {
        let datapath = DATAPATH;
        let report = self.1.seal(&Body::Queues(QueueReport { datapath, queues }));
        self.0.send(&report)?;
        Ok(())
    }

    /// The receiver's queue is empty.
    pub fn report_empty(&mut self) -> Result<()> {
        self.report(vec![(RECEIVER.into(), 0)])
    }
}

pub fn message(kind: u8, xid: u32, body: &[u8]) -> Vec<u8> {
    let mut out = vec![4, kind];
    out.extend((body.len() as u16 + 8).to_be_bytes());
    out.extend(xid.to_be_bytes());
    out.extend(body);
    out
}

/// A copy, as the rule for `reason` makes it.
pub fn packet_in(port: u32, reason: u64, frame: &[u8]) -> Vec<u8> {
    let cookie = 0x0050_656e_u64 << 32 | reason;
    let mut body = vec![0xff; 4];
    body.extend((frame.len() as u16).to_be_bytes());
    body.extend([1, 0]);
    body.extend(cookie.to_be_bytes());
    body.extend([0, 1, 0, 12, 0x80, 0, 0, 4]);
    body.extend(port.to_be_bytes());
    body.extend([0; 6]);
    body.extend(frame);
    message(kind::PACKET_IN, 0, &body)
}

/// A client's first SYN.
pub fn syn(client: u8, server: u8, port: u16) -> Vec<u8> {
    let segment = between(client, server).tcp(port, 80, CLIENT_SEQ, WINDOW);
    written(segment.syn().options(&OPTIONS).expect("options fit"))
}

/// Its answer.
pub fn answer(client: u8, server: u8, port: u16) -> Vec<u8> {
    let segment = between(server, client).tcp(80, port, SERVER_SEQ, WINDOW);
    let segment = segment.syn().ack(CLIENT_SEQ + 1);
    written(segment.options(&OPTIONS).expect("options fit"))
}

/// The client's FIN, which acknowledges what it got.
pub fn end(client: u8, server: u8, port: u16) -> Vec<u8> {
    let segment = between(client, server).tcp(port, 80, CLIENT_SEQ + 1, WINDOW);
    written(segment.fin().ack(SERVER_SEQ + 1))
}

/// By which a host is learned.
pub fn any(from: u8, to: u8) -> Vec<u8> {
    written(between(from, to).tcp(9, 80, CLIENT_SEQ, WINDOW).ack(1))
}

fn between(from: u8, to: u8) -> PacketBuilderStep<IpHeaders> {
    PacketBuilder::ethernet2([2, 0, 0, 0, 0, from], [2, 0, 0, 0, 0, to]).ipv4(
        [10, 0, 0, from],
        [10, 0, 0, to],
        64,
    )
}

fn written(segment: PacketBuilderStep<TcpHeader>) -> Vec<u8> {
    let mut bytes = Vec::new();
    segment.write(&mut bytes, &[]).expect("a frame");
    bytes
}
