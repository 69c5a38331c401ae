// SPDX-License-Identifier: Apache-2.0
//! The controllers' Ethernet frames, which the shims take on their way to the guests. A port hands them to one
//! reader, which is a thread of its own; each conversation gets all messages, and understands its own.

use std::os::unix::net::UnixDatagram;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use penstock_linux::note;
use penstock_sdn::message::of_frame;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;

use super::config::Sdn;
use crate::port::sicc::Frames;
use crate::port::{PinsArg, Port};

/// Interfaces that came or were attached again are found as often; the first ones sooner, as they are
/// attached while this begins.
const LOOK: Duration = Duration::from_secs(1);
const LOOK_SOON: Duration = Duration::from_millis(50);

/// For each controller, where the messages in frames arrive; none where the shims take no frames.
///
/// # Errors
/// The kernel refuses a socket or a thread.
pub fn begin(sdn: &Sdn, pins: &PinsArg) -> Result<Vec<Option<UnixDatagram>>> {
    if !sdn.frames {
        shims(sdn, pins).for_each(|port| Frames::stop(&port));
        return Ok(sdn.controller.iter().map(|_| None).collect());
    }
    let (mut readers, mut writers) = (Vec::new(), Vec::new());
    for _ in &sdn.controller {
        let (reader, writer) = UnixDatagram::pair().context("sdn.frames")?;
        for end in [&reader, &writer] {
            end.set_nonblocking(true).context("sdn.frames")?;
        }
        readers.push(Some(reader));
        writers.push(writer);
    }
    let (sdn, pins) = (sdn.clone(), pins.clone());
    std::thread::Builder::new()
        .name("frames".to_owned())
        .spawn(move || {
            if let Err(error) = run(&sdn, &pins, &writers) {
                note!("sdn.frames: {error:#}");
            }
        })
        .context("sdn.frames")?;
    Ok(readers)
}

fn run(sdn: &Sdn, pins: &PinsArg, writers: &[UnixDatagram]) -> Result<()> {
    let frames = Frames::new()?;
    let mut look = Instant::now();
    loop {
        let now = Instant::now();
        if now >= look {
            // A port of another scheme has none.
            let found = shims(sdn, pins).filter(|port| frames.of(port).is_ok());
            let is_whole = found.count() == sdn.guests.len();
            look = now + if is_whole { LOOK } else { LOOK_SOON };
        }
        let left = Timespec::try_from(look.saturating_duration_since(now)).ok();
        let mut polled = [PollFd::from_borrowed_fd(frames.descriptor(), PollFlags::IN)];
        let _ = poll(&mut polled, left.as_ref());
        for payload in frames.take()? {
            let message = of_frame(&payload).unwrap_or_default();
            for writer in writers {
                // One for which there is no room is lost, as it may be on its way.
                let _ = writer.send(message);
            }
        }
    }
}

/// The shims of this host that are attached.
fn shims(sdn: &Sdn, pins: &PinsArg) -> impl Iterator<Item = Port> {
    let guests = sdn.guests.keys();
    guests.filter_map(|interface| pins.open(interface).ok())
}
