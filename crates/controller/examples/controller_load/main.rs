// SPDX-License-Identifier: Apache-2.0
//! What the controller sustains: copies of SYNs and FINs a second on one core, many at a time and one by
//! one, next to other switches; reports of 48 queues; and the time from a SYN at the switch to the notice at the
//! shim's host, queues being reported every 500 us; waiting for the report (T), and at once.
//!
//! `cargo run --release -p penstock-controller --example controller_load -- 1 8 64 1000`: with so many switches.
//! With `--against ADDRESS` the copies go to any controller that listens there, which answers each thousandth
//! with a barrier, and each SYN from port 60000 on (`evidence/sdn/osken_app.py`).

mod wire;

use anyhow::{Context, Result};
use penstock_controller::config::Config;
use penstock_controller::openflow::{Frames, kind};
use penstock_controller::server::Server;
use penstock_sdn::message::{Body, Notice, Order, QueueReport};
use std::io::{Read, Write};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use wire::{answer, any, connect, end, greet, is_readable, packet_in, syn, wait};

const DATAPATH: u64 = 1;
const SECRET: &[u8] = b"a secret of sixteen bytes or more";
const EVENTS: u32 = 1_200_000;
/// Those that come one by one, and the pause between them: longer than the controller takes for one.
const SINGLE_EVENTS: u32 = 21_000;
const PAUSE: Duration = Duration::from_micros(50);
const ROUNDS: usize = 2_000;
const BURST: u16 = 8;
/// The default of penstockd.
const T: Duration = Duration::from_micros(500);
/// Hosts that send, each at a port of its own; one more receives.
const HOSTS: u8 = 32;
const RECEIVER: u8 = 100;

/// The ports of a switch in a report, and reports that are sent for their cost.
const REPORT_PORTS: u32 = 48;
const REPORTS: u32 = 20_000;
/// Copies for another controller, and those that it gets one by one.
const OTHER_EVENTS: u32 = 100_000;
const OTHER_SINGLES: u16 = 1000;

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let [against, address] = &words[..]
        && against == "--against"
    {
        println!("{}", measure_other(address.parse()?)?);
        return Ok(());
    }
    let given: Result<Vec<u64>, _> = words.iter().map(|word| word.parse()).collect();
    let mut switches = given?;
    if switches.is_empty() {
        switches.push(1);
    }
    for (number, switches) in switches.into_iter().enumerate() {
        println!("{}", measure(false, switches.max(1) - 1)?);
        if number == 0 {
            println!("{}", measure(true, switches.max(1) - 1)?);
        }
    }
    Ok(())
}

/// What another controller sustains: all its threads together, as seen by one connection.
fn measure_other(address: std::net::SocketAddr) -> Result<String> {
    let mut stream = connect(address, DATAPATH)?;
    let begun_by = |port| packet_in(1, 2, &syn(1, RECEIVER, port));
    let ended_by = |port| packet_in(1, 2, &end(1, RECEIVER, port));
    let mut waits = Vec::new();
    for _ in 0..OTHER_SINGLES {
        std::thread::sleep(Duration::from_millis(2));
        let begun = Instant::now();
        stream.write_all(&begun_by(60_000))?;
        wait(&mut stream, kind::BARRIER_REQUEST)?;
        waits.push(begun.elapsed().as_secs_f64() * 1e6);
    }
    waits.sort_by(f64::total_cmp);
    let mut reader = stream.try_clone()?;
    let begun = Instant::now();
    let writer = std::thread::spawn(move || -> Result<()> {
        let both: Vec<u8> = (0..500)
            .flat_map(|one| [begun_by(20_000 + one), ended_by(20_000 + one)])
            .flatten()
            .collect();
        for _ in 0..OTHER_EVENTS / 1000 {
            stream.write_all(&both)?;
        }
        Ok(())
    });
    let (mut frames, mut bytes, mut answers) = (Frames::default(), vec![0; 65_536], 0);
    // The singles were counted, too.
    while answers < OTHER_EVENTS / 1000 {
        let length = reader.read(&mut bytes)?;
        anyhow::ensure!(length > 0, "the controller has closed the connection");
        frames.push(&bytes[..length]);
        while let Some((header, _)) = frames.take()? {
            answers += u32::from(header.kind == kind::BARRIER_REQUEST);
        }
    }
    let wall = begun.elapsed().as_secs_f64();
    writer
        .join()
        .map_err(|_| anyhow::anyhow!("the writer panicked"))??;
    let at = |share: f64| waits[(waits.len() as f64 * share) as usize];
    Ok(format!(
        "{{\"against\": \"{address}\", \"events_per_s\": {:.0}, \"answer_us\": {{\"p50\": {:.0}, \"p99\": {:.0}}}}}",
        f64::from(OTHER_EVENTS) / wall,
        at(0.5),
        at(0.99)
    ))
}

/// The processor time that a thread has used, seconds.
fn busy(thread: &Path) -> Result<f64> {
    let text = std::fs::read_to_string(Path::new("/proc").join(thread).join("schedstat"))?;
    let ns: f64 = text.split(' ').next().unwrap_or_default().parse()?;
    Ok(ns / 1e9)
}

/// The tables of the ports that are watched: the receiver's and as many as a report has.
fn watched() -> impl Iterator<Item = String> {
    let ports = (1..=REPORT_PORTS).chain([RECEIVER.into()]);
    ports.map(|port| {
        format!("[watch.port{port}]\ndatapath = \"1\"\nport = {port}\nbuffer = \"100 kB\"\n")
    })
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
             {}{}{}",
            watched().collect::<String>(),
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

    wire::others(switches, DATAPATH + 1..DATAPATH + 1 + others)?;
    let mut stream = connect(switches, DATAPATH)?;
    for host in (1..=HOSTS).chain([RECEIVER]) {
        stream.write_all(&packet_in(host.into(), 3, &any(host, 1)))?;
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
            stream.write_all(&packet_in(1, 2, &syn(1, RECEIVER, port)))?;
        }
        let mut next = begun + Duration::from_micros(u64::from(port) * 7 % 500);
        while begun.elapsed() < Duration::from_millis(100) {
            if at_once {
                next = begun + Duration::from_millis(100);
            } else if Instant::now() >= next {
                next += T;
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
            let port = port - one;
            stream.write_all(&packet_in(RECEIVER.into(), 2, &answer(1, RECEIVER, port)))?;
            stream.write_all(&packet_in(1, 2, &end(1, RECEIVER, port)))?;
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

    // Then as many copies as it takes, of connections that begin, are answered and end.
    let copies = |one: u16| {
        let (port, host) = (20_000 + one % 1000, 1 + (one % u16::from(HOSTS)) as u8);
        [
            packet_in(host.into(), 2, &syn(host, RECEIVER, port)),
            packet_in(RECEIVER.into(), 2, &answer(host, RECEIVER, port)),
            packet_in(host.into(), 2, &end(host, RECEIVER, port)),
        ]
    };
    let batch: Vec<u8> = (0..1000).flat_map(copies).flatten().collect();
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
        reporter
    });
    let idle = busy(&serving)?;
    for copy in (0..(SINGLE_EVENTS / 3) as u16).flat_map(copies) {
        stream.write_all(&copy)?;
        let next = Instant::now() + PAUSE;
        while Instant::now() < next {
            std::hint::spin_loop();
        }
    }
    let single = busy(&serving)? - idle;
    let (begun, before) = (Instant::now(), busy(&serving)?);
    for _ in 0..EVENTS / 3000 {
        stream.write_all(&batch)?;
    }
    // Its answer follows all that was sent.
    stream.write_all(&[4, kind::ECHO_REQUEST, 0, 8, 0, 0, 0, 1])?;
    wait(&mut stream, kind::ECHO_REPLY)?;
    let (wall, used) = (begun.elapsed().as_secs_f64(), busy(&serving)? - before);
    is_over.store(true, Ordering::Relaxed);
    let mut reporter = reports
        .join()
        .map_err(|_| anyhow::anyhow!("the reports panicked"))?;
    let before = busy(&serving)?;
    for number in 0..REPORTS {
        let queue = |port| u32::from(port % 12 == number % 12) * 30_000;
        let report = QueueReport {
            datapath: DATAPATH,
            queues: (1..=REPORT_PORTS).map(|port| (port, queue(port))).collect(),
        };
        reporter.0.send(&reporter.1.seal(&Body::Queues(report)))?;
        let next = Instant::now() + PAUSE;
        while Instant::now() < next {
            std::hint::spin_loop();
        }
    }
    std::thread::sleep(Duration::from_millis(50));
    let reported = busy(&serving)? - before;
    stop.store(true, Ordering::Relaxed);
    thread
        .join()
        .map_err(|_| anyhow::anyhow!("the controller panicked"))??;
    Ok(format!(
        "{{\"at_once\": {at_once}, \"switches\": {}, \"events_per_s\": {:.0}, \"events_per_core_s\": {:.0}, \
         \"single_events_per_core_s\": {:.0}, \"reports_per_core_s\": {:.0}, \"notices\": {}, \"wait_us\": {{\"p50\": {:.0}, \"p99\": {:.0}}}}}",
        others + 1,
        f64::from(EVENTS) / wall,
        f64::from(EVENTS) / used,
        f64::from(SINGLE_EVENTS) / single,
        f64::from(REPORTS) / reported,
        waits.len(),
        at(0.5).context("no notice")?,
        at(0.99).context("no notice")?
    ))
}

fn is_on(body: &Body) -> bool {
    let is_on = |notice: &Notice| matches!(notice.order, Order::On(..));
    matches!(body, Body::Notices(all) if all.iter().any(is_on))
}
