// SPDX-License-Identifier: Apache-2.0
//! What the controller sustains: copies of SYNs and FINs a second on one core, many at a time and one by
//! one, and the time from a SYN at the switch to the notice at the shim's host, queues being reported
//! every millisecond; waiting for the report (T), and at once.
//!
//! `cargo run --release -p penstock-controller --example controller_load`; with a number behind `--`, so many
//! further switches are connected.

use anyhow::{Context, Result};
use etherparse::{PacketBuilder, TcpOptionElement};
use penstock_controller::config::Config;
use penstock_controller::openflow::{Frames, kind};
use penstock_controller::server::Server;
use penstock_sdn::message::{Agent, Body, Key, Notice, Order, QueueReport};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;
use std::io::{Read, Write};
use std::net::{IpAddr, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const DATAPATH: u64 = 1;
const SECRET: &[u8] = b"a secret of sixteen bytes or more";
const EVENTS: u32 = 1_000_000;
/// Those that come one by one, and the pause between them: longer than the controller takes for one.
const SINGLE_EVENTS: u32 = 20_000;
const PAUSE: Duration = Duration::from_micros(50);
const ROUNDS: usize = 2_000;
const BURST: u16 = 8;
/// Hosts that send, each at a port of its own; one more receives.
const HOSTS: u8 = 32;
const RECEIVER: u8 = 100;

fn main() -> Result<()> {
    let others = std::env::args().nth(1).map_or(Ok(0), |text| text.parse())?;
    for at_once in [false, true] {
        println!("{}", measure(at_once, others)?);
    }
    Ok(())
}

/// The processor time that a thread has used, seconds.
fn busy(thread: &Path) -> Result<f64> {
    let text = std::fs::read_to_string(Path::new("/proc").join(thread).join("schedstat"))?;
    let ns: f64 = text.split(' ').next().unwrap_or_default().parse()?;
    Ok(ns / 1e9)
}

fn measure(at_once: bool, others: u64) -> Result<String> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("controller.toml");
    let key = folder.path().join("key");
    std::fs::write(&key, SECRET)?;
    let agent = |name: &str, number| format!("[agent.{name}]\nnumber = {number}\nkey = {key:?}\n");
    std::fs::write(
        &path,
        format!(
            "openflow = \"127.0.0.1:0\"\nagents = \"127.0.0.1:0\"\n\
             [controller]\nkind = \"sicc\"\nduration = \"1 ms\"\nat_once = {at_once}\n\
             [watch.port]\ndatapath = \"1\"\nport = {RECEIVER}\nbuffer = \"100 kB\"\n{}{}",
            agent("shim", 1),
            agent("switch", 2)
        ),
    )?;
    let mut server = Server::new(&Config::read(&path)?)?;
    let (switches, agents) = server.addresses()?;
    let stop = Arc::new(AtomicBool::new(false));
    let asked = stop.clone();
    let (name, named) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || {
        let own = std::fs::read_link("/proc/thread-self")?;
        name.send(own).context("its name")?;
        server.run(&asked)
    });
    let serving: PathBuf = named.recv()?;

    let _others = (0..others)
        .map(|other| connect(switches, DATAPATH + 1 + other))
        .collect::<Result<Vec<_>>>()?;
    let mut stream = connect(switches, DATAPATH)?;
    for host in (1..=HOSTS).chain([RECEIVER]) {
        stream.write_all(&packet_in(host.into(), 3, &segment(host, 1, 9, false)))?;
    }
    // Latency first, on an idle controller.
    let mut shim = greet(agents, 1, Body::Hello(vec![IpAddr::from([10, 0, 0, 1])]))?;
    let mut reporter = greet(agents, 2, Body::Hello(Vec::new()))?;
    let mut waits = Vec::new();
    let mut port = 10_000u16;
    let mut bytes = [0; 2000];
    for _ in 0..ROUNDS {
        // A SYN comes at any time between two reports.
        std::thread::sleep(Duration::from_micros(2_000 + u64::from(port) % 1000));
        let begun = Instant::now();
        for _ in 0..BURST {
            port = port.checked_add(1).unwrap_or(10_000);
            stream.write_all(&packet_in(1, 2, &segment(1, RECEIVER, port, true)))?;
        }
        let mut next = begun + Duration::from_micros(u64::from(port) * 7 % 1000);
        while begun.elapsed() < Duration::from_millis(100) {
            if at_once {
                next = begun + Duration::from_millis(100);
            } else if Instant::now() >= next {
                next += Duration::from_millis(1);
                let queues = vec![(u32::from(RECEIVER), 0)];
                let report = QueueReport {
                    datapath: DATAPATH,
                    queues,
                };
                let sealed = reporter.1.seal(&Body::Queues(report));
                reporter.0.send(&sealed)?;
            }
            if is_readable(&shim.0, next)
                && let Ok(length) = shim.0.recv(&mut bytes)
                && shim
                    .1
                    .unseal(&bytes[..length])
                    .is_ok_and(|body| is_on(&body))
            {
                waits.push(begun.elapsed().as_secs_f64() * 1e6);
                break;
            }
        }
        for one in 0..BURST {
            stream.write_all(&packet_in(1, 2, &end(1, RECEIVER, port - one)))?;
        }
        // The next burst finds the end of this one's clamp.
        let queues = vec![(u32::from(RECEIVER), 0)];
        let report = QueueReport {
            datapath: DATAPATH,
            queues,
        };
        let sealed = reporter.1.seal(&Body::Queues(report));
        reporter.0.send(&sealed)?;
    }
    waits.sort_by(f64::total_cmp);
    let at = |share: f64| waits.get((waits.len() as f64 * share) as usize).copied();

    // Then as many copies as it takes: half SYNs, half FINs of the same flows.
    let host = |one: u16| 1 + (one % u16::from(HOSTS)) as u8;
    let batch: Vec<u8> = (0..1000u16)
        .flat_map(|one| {
            let (port, host) = (20_000 + one, host(one));
            let frames = [
                segment(host, RECEIVER, port, true),
                end(host, RECEIVER, port),
            ];
            frames.map(|frame| packet_in(host.into(), 2, &frame))
        })
        .flatten()
        .collect();
    let is_over = Arc::new(AtomicBool::new(false));
    let over = is_over.clone();
    let reports = std::thread::spawn(move || {
        while !over.load(Ordering::Relaxed) {
            let queues = vec![(u32::from(RECEIVER), 0)];
            let report = QueueReport {
                datapath: DATAPATH,
                queues,
            };
            let _ = reporter.0.send(&reporter.1.seal(&Body::Queues(report)));
            std::thread::sleep(Duration::from_millis(1));
        }
    });
    let idle = busy(&serving)?;
    for number in 0..SINGLE_EVENTS / 2 {
        let (port, host) = (20_000 + number as u16 % 1000, host(number as u16));
        for frame in [
            segment(host, RECEIVER, port, true),
            end(host, RECEIVER, port),
        ] {
            stream.write_all(&packet_in(host.into(), 2, &frame))?;
            let next = Instant::now() + PAUSE;
            while Instant::now() < next {
                std::hint::spin_loop();
            }
        }
    }
    let single = busy(&serving)? - idle;
    let (begun, before) = (Instant::now(), busy(&serving)?);
    for _ in 0..EVENTS / 2000 {
        stream.write_all(&batch)?;
    }
    // Its answer follows all that was sent.
    stream.write_all(&[4, kind::ECHO_REQUEST, 0, 8, 0, 0, 0, 1])?;
    wait(&mut stream, kind::ECHO_REPLY)?;
    let (wall, used) = (begun.elapsed().as_secs_f64(), busy(&serving)? - before);
    is_over.store(true, Ordering::Relaxed);
    reports
        .join()
        .map_err(|_| anyhow::anyhow!("the reports panicked"))?;
    stop.store(true, Ordering::Relaxed);
    thread
        .join()
        .map_err(|_| anyhow::anyhow!("the controller panicked"))??;
    Ok(format!(
        "{{\"at_once\": {at_once}, \"switches\": {}, \"events_per_s\": {:.0}, \"events_per_core_s\": {:.0}, \
         \"single_events_per_core_s\": {:.0}, \"notices\": {}, \"wait_us\": {{\"p50\": {:.0}, \"p99\": {:.0}}}}}",
        others + 1,
        f64::from(EVENTS) / wall,
        f64::from(EVENTS) / used,
        f64::from(SINGLE_EVENTS) / single,
        waits.len(),
        at(0.5).context("no notice")?,
        at(0.99).context("no notice")?
    ))
}

fn is_on(body: &Body) -> bool {
    let is_on = |notice: &Notice| matches!(notice.order, Order::On(..));
    matches!(body, Body::Notices(all) if all.iter().any(is_on))
}

/// Waits for a datagram until then; a socket's own timeout counts in jiffies.
fn is_readable(socket: &UdpSocket, until: Instant) -> bool {
    let left = until.saturating_duration_since(Instant::now());
    let left = Timespec::try_from(left).ok();
    let mut polled = [PollFd::new(socket, PollFlags::IN)];
    matches!(poll(&mut polled, left.as_ref()), Ok(1..))
}

/// A switch that is ready: HELLO, features and ports.
fn connect(address: std::net::SocketAddr, datapath: u64) -> Result<TcpStream> {
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
fn wait(stream: &mut TcpStream, wanted: u8) -> Result<u32> {
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

fn greet(address: std::net::SocketAddr, number: u16, body: Body) -> Result<(UdpSocket, Agent)> {
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

fn message(kind: u8, xid: u32, body: &[u8]) -> Vec<u8> {
    let mut out = vec![4, kind];
    out.extend((body.len() as u16 + 8).to_be_bytes());
    out.extend(xid.to_be_bytes());
    out.extend(body);
    out
}

/// A copy, as the rule for `reason` makes it.
fn packet_in(port: u32, reason: u64, frame: &[u8]) -> Vec<u8> {
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

fn segment(from: u8, to: u8, port: u16, is_syn: bool) -> Vec<u8> {
    frame(from, to, port, is_syn, !is_syn)
}

fn end(from: u8, to: u8, port: u16) -> Vec<u8> {
    frame(from, to, port, false, false)
}

fn frame(from: u8, to: u8, port: u16, is_syn: bool, is_ack: bool) -> Vec<u8> {
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
