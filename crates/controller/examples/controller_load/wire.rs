// SPDX-License-Identifier: Apache-2.0
//! A switch and agents, as the controller sees them.

use crate::{HOSTS, RECEIVER, SECRET};
use anyhow::Result;
use etherparse::{PacketBuilder, TcpOptionElement};
use penstock_controller::openflow::{Frames, kind};
use penstock_sdn::message::{Agent, Body, Key};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;
use std::io::{Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::time::Instant;

/// Waits for a datagram until then; a socket's own timeout counts in jiffies.
pub fn is_readable(socket: &UdpSocket, until: Instant) -> bool {
    let left = until.saturating_duration_since(Instant::now());
    let left = Timespec::try_from(left).ok();
    let mut polled = [PollFd::new(socket, PollFlags::IN)];
    matches!(poll(&mut polled, left.as_ref()), Ok(1..))
}

/// A switch that is ready: HELLO, features and ports.
pub fn connect(address: std::net::SocketAddr, datapath: u64) -> Result<TcpStream> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    stream.write_all(&[4, kind::HELLO, 0, 8, 0, 0, 0, 1])?;
    let xid = wait(&mut stream, kind::FEATURES_REQUEST)?;
    let mut body = datapath.to_be_bytes().to_vec();
    body.extend([0, 0, 0, 0, 254, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    stream.write_all(&message(kind::FEATURES_REPLY, xid, &body))?;
    let xid = wait(&mut stream, kind::MULTIPART_REQUEST)?;
    let mut body = vec![0, 13, 0, 0, 0, 0, 0, 0];
    for port in (1..=HOSTS).chain([RECEIVER]) {
        let mut one = vec![0, 0, 0, port, 0, 0, 0, 0, 2, 0, 0, 0, 1, port, 0, 0];
        one.resize(64, 0);
        body.extend(one);
    }
    stream.write_all(&message(kind::MULTIPART_REPLY, xid, &body))?;
    // The rules, written when the network has settled.
    wait(&mut stream, kind::BARRIER_REQUEST)?;
    // From now on all that the controller sends is read and dropped, but for what `wait` wants.
    Ok(stream)
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

pub fn greet(address: std::net::SocketAddr, number: u16, body: Body) -> Result<(UdpSocket, Agent)> {
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

pub fn segment(from: u8, to: u8, port: u16, is_syn: bool) -> Vec<u8> {
    frame(from, to, port, is_syn, !is_syn)
}

pub fn end(from: u8, to: u8, port: u16) -> Vec<u8> {
    frame(from, to, port, false, false)
}

pub fn frame(from: u8, to: u8, port: u16, is_syn: bool, is_ack: bool) -> Vec<u8> {
    let builder = PacketBuilder::ethernet2([2, 0, 0, 0, 0, from], [2, 0, 0, 0, 0, to])
        .ipv4([10, 0, 0, from], [10, 0, 0, to], 64)
        .tcp(port, 80, 1, 1000);
    let builder = if is_syn {
        let options = [
            TcpOptionElement::MaximumSegmentSize(1460),
            TcpOptionElement::WindowScale(7),
        ];
        builder.syn().options(&options).expect("options fit")
    } else if is_ack {
        builder.ack(1)
    } else {
        builder.fin()
    };
    let mut bytes = Vec::new();
    builder.write(&mut bytes, &[]).expect("a frame");
    bytes
}
