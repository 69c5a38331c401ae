// SPDX-License-Identifier: Apache-2.0
//! Another controller, which answers copies with barriers.

use crate::wire::{connect, end, packet_in, syn, wait};
use crate::{DATAPATH, RECEIVER, quantiles};
use anyhow::Result;
use penstock_controller::openflow::{Frames, kind};
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

const EVENTS: u32 = 100_000;
/// Those that it gets one by one.
const SINGLES: u16 = 1000;

/// What another controller sustains: all its threads together, as seen by one connection.
pub fn measure(address: SocketAddr) -> Result<String> {
    let mut stream = connect(address, DATAPATH)?;
    let begun_by = |port| packet_in(1, 2, &syn(1, RECEIVER, port));
    let ended_by = |port| packet_in(1, 2, &end(1, RECEIVER, port));
    let mut waits = Vec::new();
    for _ in 0..SINGLES {
        std::thread::sleep(Duration::from_millis(2));
        let begun = Instant::now();
        stream.write_all(&begun_by(60_000))?;
        wait(&mut stream, kind::BARRIER_REQUEST)?;
        waits.push(begun.elapsed().as_secs_f64() * 1e6);
    }
    let mut reader = stream.try_clone()?;
    let begun = Instant::now();
    let writer = std::thread::spawn(move || -> Result<()> {
        let both: Vec<u8> = (0..500)
            .flat_map(|one| [begun_by(20_000 + one), ended_by(20_000 + one)])
            .flatten()
            .collect();
        for _ in 0..EVENTS / 1000 {
            stream.write_all(&both)?;
        }
        Ok(())
    });
    let (mut frames, mut bytes, mut answers) = (Frames::default(), vec![0; 65_536], 0);
    // The singles were counted, too.
    while answers < EVENTS / 1000 {
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
    let [p50, p99] = quantiles(waits)?;
    Ok(format!(
        "{{\"against\": \"{address}\", \"events_per_s\": {:.0}, \"answer_us\": {{\"p50\": {p50:.0}, \"p99\": {p99:.0}}}}}",
        f64::from(EVENTS) / wall,
    ))
}
