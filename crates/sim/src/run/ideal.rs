// SPDX-License-Identifier: Apache-2.0
//! The least time that a transfer takes: alone on the fabric, with windows that hold it whole.
//!
//! A connection's handshake, the request if there is one, and the data segment by segment over the
//! links of its path, each of which stores a packet before it sends it on. Slow start is no part of
//! it. What a transfer took over this is its slowdown, never below 1.

use super::ClientProfiles;
use crate::fabric::{Fabric, NO_MTU, Routes};
use crate::simulation::{ENDLESS, Record};
use crate::tcp::Config;
use penstock_scenario::units::Time;
use std::collections::HashMap;

/// Bytes of the timestamps option with its padding, in every segment where it is in use.
const TIMESTAMPS: u64 = 12;

/// Where equal paths differ in their links, the best of so many choices counts.
const CHOICES: u64 = 32;

/// Enters the ideal time of each record with an end, on a `fabric` as `spec` has it.
pub fn set_ideal_times(
    records: &mut [Record],
    fabric: &Fabric,
    ClientProfiles { profiles, configs }: &ClientProfiles,
    spec: &penstock_scenario::Fabric,
) {
    let is_any = matches!(spec, penstock_scenario::Fabric::Graph(_));
    let has_unequal_paths = is_any || !spec.port_at().is_empty();
    let choices = if has_unequal_paths { CHOICES } else { 1 };
    let mut paths = Paths {
        fabric,
        routes: Routes::new(fabric),
        choices,
        known: HashMap::new(),
    };
    let mut last = None;
    for record in records {
        if record.bytes >= ENDLESS {
            continue;
        }
        let profile = &profiles[record.traffic as usize];
        let config = &configs[profile.config as usize];
        let ends = (record.source, record.destination);
        let of = (
            ends,
            record.traffic,
            record.bytes,
            record.is_opening,
            record.request,
        );
        // Clients often repeat a transfer.
        let ideal = match last {
            Some((before, time)) if before == of => time,
            _ => paths.least(ends, record, config),
        };
        last = Some((of, ideal));
        record.ideal = Some(ideal);
    }
}

struct Paths<'a> {
    fabric: &'a Fabric,
    routes: Routes,
    choices: u64,
    known: HashMap<(u32, u32), Vec<Vec<u32>>>,
}

impl Paths<'_> {
    fn least(
        &mut self,
        (source, destination): (u32, u32),
        record: &Record,
        config: &Config,
    ) -> Time {
        let Paths {
            fabric,
            routes,
            choices,
            known,
        } = self;
        let mut to = |source, destination| -> Vec<Vec<u32>> {
            let paths = known.entry((source, destination)).or_insert_with(|| {
                let path = |hash| {
                    let mut path = Vec::new();
                    routes.path(source, destination, hash, &mut path);
                    path
                };
                let mut all: Vec<Vec<u32>> = (0..*choices).map(path).collect();
                all.sort_unstable();
                all.dedup();
                all
            });
            paths.clone()
        };
        let (there, back) = (to(source, destination), to(destination, source));
        let options = if config.timestamps { TIMESTAMPS } else { 0 };
        let header = u64::from(config.header);
        let mtus = there.iter().flatten();
        let mtu = mtus.map(|link| fabric.links[*link as usize].mtu).min();
        let fits = u64::from(mtu.unwrap_or(NO_MTU)).saturating_sub(header);
        let mss = u64::from(config.mss).min(fits).max(1);
        let segment = (mss - options.min(mss - 1), header + options);
        let one_way = |paths: &[Vec<u32>], bytes: u64, segment: (u64, u64)| {
            let times = paths.iter().map(|path| over(fabric, path, bytes, segment));
            times.min().unwrap_or(Time::ZERO)
        };
        let bare = (1, header);
        let mut time = one_way(&there, record.bytes, segment);
        if let Some(request) = record.request {
            time += one_way(&back, request, segment);
        }
        if record.is_opening {
            time += one_way(&there, 0, bare) + one_way(&back, 0, bare);
        }
        time
    }
}

/// How long `bytes` take over the links of `path`, from the first bit sent to the last received, in
/// segments of at most this payload and header. No bytes: one header.
fn over(fabric: &Fabric, path: &[u32], bytes: u64, (payload, header): (u64, u64)) -> Time {
    let full = bytes.saturating_sub(1) / payload;
    let last = bytes - full * payload;
    // When the last full segment, and when the last segment has left a link and its predecessors.
    let (mut first, mut slowest, mut done) = (Time::ZERO, Time::ZERO, Time::ZERO);
    let mut delay = Time::ZERO;
    for link in path {
        let link = &fabric.links[*link as usize];
        let each = link.rate.transmission(payload + header);
        first += each;
        slowest = slowest.max(each);
        let before = match full {
            0 => Time::ZERO,
            _ => first + Time(slowest.0 * (full - 1)),
        };
        done = done.max(before) + link.rate.transmission(last + header);
        delay += link.delay;
    }
    done + delay
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fabric::{Cable, NO_MTU};
    use penstock_scenario::units::{Buffer, Rate};

    /// A host, a fast link, a slow one, a host.
    fn fabric() -> Fabric {
        let port = |rate| {
            let cable = Cable {
                rate: Rate(rate),
                delay: Time::from_micros(10),
                jitter: Time::ZERO,
                mtu: NO_MTU,
            };
            (cable, Buffer::Packets(10))
        };
        let (fast, slow) = (port(1_000_000_000), port(100_000_000));
        Fabric::dumbbell([1, 1, 0], Buffer::Packets(10), [fast, fast, slow])
    }

    #[test]
    fn by_hand() {
        let fabric = fabric();
        let mut path = Vec::new();
        Routes::new(&fabric).path(0, 1, 0, &mut path);
        assert_eq!(path.len(), 3);
        let time = |bytes| over(&fabric, &path, bytes, (1460, 40)).as_nanos() as f64 / 1000.0;
        let near = |got: f64, expected: f64| (got - expected).abs() < 0.01;
        // One full segment: 12 us, 120 us, 12 us, and three times 10 us.
        assert!(near(time(1460), 174.0));
        // The second waits for the first at the slow link.
        assert!(near(time(2920), 294.0));
        // A short third one waits for the second at the last link, too.
        assert!(near(time(3020), 12.0 + 240.0 + 12.0 + 1.12 + 30.0));
        assert!(near(time(0), 0.32 + 3.2 + 0.32 + 30.0));
    }
}
