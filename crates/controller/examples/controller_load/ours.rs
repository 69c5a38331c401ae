// SPDX-License-Identifier: Apache-2.0
//! Our controller, in this process.

use crate::running::Running;
use crate::wire::{
    Reporter, answer, any, connect, end, greet, is_readable, others, packet_in, syn, wait,
};
use crate::{DATAPATH, HOSTS, RECEIVER, REPORT_PORTS, quantiles};
use anyhow::Result;
use penstock_controller::openflow::kind;
use penstock_sdn::message::{Body, Notice, Order};
use std::io::Write;
use std::net::{IpAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const EVENTS: u32 = 1_000_000;
/// Those that come one by one, and the pause between them: longer than the controller takes for one.
const SINGLE_EVENTS: u32 = 20_000;
const PAUSE: Duration = Duration::from_micros(50);
const ROUNDS: usize = 2_000;
const BURST: u16 = 8;
/// The default of penstockd.
const T: Duration = Duration::from_micros(500);
/// Reports that are sent for their cost.
const REPORTS: u32 = 20_000;
/// After which a notice is lost.
const PATIENCE: Duration = Duration::from_millis(100);

/// What it sustains next to `others` more switches, in one line of JSON.
pub fn measure(at_once: bool, count: u64) -> Result<String> {
    let running = Running::start(at_once)?;
    others(running.switches, DATAPATH + 1..DATAPATH + 1 + count)?;
    let mut stream = connect(running.switches, DATAPATH)?;
    for host in (1..=HOSTS).chain([RECEIVER]) {
        stream.write_all(&packet_in(host.into(), 3, &any(host, 1)))?;
    }
    let mut reporter = Reporter::new(running.agents)?;
    // On an idle controller.
    let waits = waits_for_notices(&running, &mut stream, &mut reporter, at_once)?;
    let notices = waits.len();
    let [p50, p99] = quantiles(waits)?;
    let is_over = AtomicBool::new(false);
    let taken = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                let _ = reporter.report_empty();
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        let taken = copies_taken(&running, &mut stream);
        is_over.store(true, Ordering::Relaxed);
        taken
    })?;
    let reported = time_for_reports(&running, &mut reporter)?;
    running.end()?;
    Ok(format!(
        "{{\"at_once\": {at_once}, \"switches\": {}, \"events_per_s\": {:.0}, \"events_per_core_s\": {:.0}, \
         \"single_events_per_core_s\": {:.0}, \"reports_per_core_s\": {:.0}, \"notices\": {notices}, \
         \"wait_us\": {{\"p50\": {p50:.0}, \"p99\": {p99:.0}}}}}",
        count + 1,
        f64::from(EVENTS) / taken.wall_s,
        f64::from(EVENTS) / taken.busy_s,
        f64::from(SINGLE_EVENTS) / taken.single_s,
        f64::from(REPORTS) / reported,
    ))
}

/// Microseconds from the SYNs of a burst to the notice at the shim's host.
fn waits_for_notices(
    running: &Running,
    stream: &mut TcpStream,
    reporter: &mut Reporter,
    at_once: bool,
) -> Result<Vec<f64>> {
    let guest = IpAddr::from([10, 0, 0, 1]);
    let (shim, mut agent) = greet(running.agents, 1, Body::Hello(vec![guest]))?;
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
        while begun.elapsed() < PATIENCE {
            if at_once {
                next = begun + PATIENCE;
            } else if Instant::now() >= next {
                next += T;
                reporter.report_empty()?;
            }
            if is_readable(&shim, next)
                && let Ok(length) = shim.recv(&mut bytes)
                && let Ok(body) = agent.unseal(&bytes[..length])
                && is_on(&body)
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
        reporter.report_empty()?;
    }
    Ok(waits)
}

fn is_on(body: &Body) -> bool {
    let is_on = |notice: &Notice| matches!(notice.order, Order::On(..));
    matches!(body, Body::Notices(all) if all.iter().any(is_on))
}

/// The seconds in which copies were taken.
struct Taken {
    /// The controller's own, of [`SINGLE_EVENTS`].
    single_s: f64,
    /// Of [`EVENTS`], many at a time.
    wall_s: f64,
    busy_s: f64,
}

/// As many copies as it takes, of connections that begin, are answered and end.
fn copies_taken(running: &Running, stream: &mut TcpStream) -> Result<Taken> {
    let copies = |one: u16| {
        let (port, host) = (20_000 + one % 1000, 1 + (one % u16::from(HOSTS)) as u8);
        [
            packet_in(host.into(), 2, &syn(host, RECEIVER, port)),
            packet_in(RECEIVER.into(), 2, &answer(host, RECEIVER, port)),
            packet_in(host.into(), 2, &end(host, RECEIVER, port)),
        ]
    };
    let idle = running.busy()?;
    let singles = (0..(SINGLE_EVENTS / 3) as u16).flat_map(copies);
    paced(singles, |copy| Ok(stream.write_all(&copy)?))?;
    let single_s = running.busy()? - idle;

    let batch: Vec<u8> = (0..1000).flat_map(copies).flatten().collect();
    let (begun, before) = (Instant::now(), running.busy()?);
    for _ in 0..EVENTS / 3000 {
        stream.write_all(&batch)?;
    }
    // Its answer follows all that was sent.
    stream.write_all(&[4, kind::ECHO_REQUEST, 0, 8, 0, 0, 0, 1])?;
    wait(stream, kind::ECHO_REPLY)?;
    Ok(Taken {
        single_s,
        wall_s: begun.elapsed().as_secs_f64(),
        busy_s: running.busy()? - before,
    })
}

/// The controller's own seconds for [`REPORTS`], in which one port of twelve has a queue.
fn time_for_reports(running: &Running, reporter: &mut Reporter) -> Result<f64> {
    let before = running.busy()?;
    paced(0..REPORTS, |number| {
        let queue = |port| u32::from(port % 12 == number % 12) * 30_000;
        reporter.report((1..=REPORT_PORTS).map(|port| (port, queue(port))).collect())
    })?;
    std::thread::sleep(Duration::from_millis(50));
    Ok(running.busy()? - before)
}

/// Sends one after the other, with [`PAUSE`] after each.
fn paced<T>(all: impl IntoIterator<Item = T>, mut send: impl FnMut(T) -> Result<()>) -> Result<()> {
    for one in all {
        send(one)?;
        let next = Instant::now() + PAUSE;
        while Instant::now() < next {
            std::hint::spin_loop();
        }
    }
    Ok(())
}
