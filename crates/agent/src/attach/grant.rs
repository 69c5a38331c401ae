// SPDX-License-Identifier: Apache-2.0
//! Grant's programs on a port (`bpf/grant.bpf.c`).
//!
//! Each port loads an object of its own, over the maps that all ports share. The port's folder has the
//! pins of the object's own maps, whose names begin with `grant_`, and of its timer
//! ([`TIMER`](crate::port::timer::TIMER)).

use std::mem::{MaybeUninit, offset_of};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use libbpf_rs::skel::{OpenSkel, Skel, SkelBuilder};
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use penstock_core::Params;
use penstock_core::definitions::{self, Definition};
use penstock_linux::ethtool;
use penstock_scenario::{Buffer, Deployment, Queue};
use serde::Serialize;

use super::load;
use crate::host::bpf::pin_over;
use crate::host::clock::monotonic_ns;
use crate::port::counters::Named;
use crate::port::maps::open_map;
use crate::port::plain::{bytes_of, bytes_of_mut, of_bytes, words_of};
use crate::port::timer::{TIMER, Timer};
use crate::port::{PinsArg, Side};
use crate::skel::grant::GrantSkelBuilder;
use crate::skel::grant::types::{grant_abi, grant_config, grant_counters, grant_own, grant_port};

/// Prefix of the names of the object's own maps, and of their pins.
const PREFIX: &str = "grant_";

/// The map that the agent writes.
const CONFIG: &str = "grant_config";

/// The map of its state.
const OWN: &str = "grant_own";

/// The programs that the agent runs.
const OF_THE_AGENT: [&str; 2] = ["grant_timer", "grant_reset"];

/// A map of which each CPU uses its own element for the packet at hand.
const SCRATCH: &str = "grant_scratch";

/// The parameters of Grant.
pub fn definition() -> &'static Definition {
    definitions::of("grant")
}

/// Requires that the rate is given once: as the port's, or among the parameters. Together they are for a port with
/// HCF's queue alone, of which the port's rate then is.
///
/// # Errors
/// Both are given.
pub fn require_one_rate(port: &Deployment) -> Result<()> {
    let among_params = match (port.window.is_credit(), &port.queue) {
        (_, Queue::Hcf(_)) | (false, _) => None,
        (true, _) => port.window.rate("rate"),
    };
    if let (Some(rate), Some(other)) = (port.rate, among_params) {
        bail!("is {rate}, and window.rate, another name for it, is {other}; give one of them");
    }
    Ok(())
}

/// The programs for a port with credit, egress and ingress, loaded and configured; none for another
/// scheme. Flows that an earlier object of the port followed stay known.
///
/// # Errors
/// The rate is not known, or the kernel refuses the programs.
pub fn programs(
    pins: &PinsArg,
    interface: &str,
    port: &Deployment,
    buffer: Buffer,
) -> Result<Option<[OwnedFd; 2]>> {
    if !port.window.is_credit() {
        return Ok(None);
    }
    let folder = pins.of(interface);
    let before = configured(&folder);
    let mut wanted = config(interface, port, buffer)?;
    if let Some(before) = before.filter(|before| before.abi == grant_abi::GRANT_ABI) {
        wanted.mark = before.mark;
    } else {
        remove(&folder)?;
    }
    load::clear_log();
    let mut object = MaybeUninit::uninit();
    let mut open = GrantSkelBuilder::default().open(&mut object)?;
    let suffix = if port.window.is_behind_port() {
        "_behind"
    } else {
        ""
    };
    let names = Side::BOTH.map(|side| format!("grant_{}{suffix}", side.name()));
    for mut program in open.open_object_mut().progs_mut() {
        let name = program.name().to_string_lossy().into_owned();
        program.set_autoload(names.contains(&name) || OF_THE_AGENT.contains(&name.as_str()));
    }
    for mut map in open.open_object_mut().maps_mut() {
        let name = map.name().to_string_lossy().into_owned();
        if name.contains('.') || name == SCRATCH {
            continue; // of the programs alone
        }
        if name.starts_with(PREFIX) {
            map.set_pin_path(folder.join(&name))?;
            continue;
        }
        let pin = pins.shared().join(load::pin_of(&name));
        match MapHandle::from_pinned_path(&pin) {
            Ok(shared) => {
                map.set_max_entries(shared.max_entries())?;
                map.set_pin_path(&pin)?;
            }
            Err(_) => map.set_autocreate(false)?, // of programs that are not loaded here
        }
    }
    let skel = open
        .load()
        .map_err(|error| load::refused(&error, &pins.shared()))?;
    skel.maps
        .grant_config
        .update(&0u32.to_ne_bytes(), bytes_of(&wanted), MapFlags::ANY)?;
    let differs = before.is_none_or(|before| bytes_of(&before) != bytes_of(&wanted));
    if differs {
        Timer::once(skel.progs.grant_reset.as_fd(), 0)?;
    }
    pin_over(&skel.progs.grant_timer.as_fd(), &folder.join(TIMER))?;
    let of = |name: &String| {
        let programs = skel.object().progs();
        let program = programs
            .into_iter()
            .find(|program| program.name() == name.as_str());
        let program = program.ok_or_else(|| anyhow!("this build has no program {name}"))?;
        Ok::<_, anyhow::Error>(program.as_fd().try_clone_to_owned()?)
    };
    Ok(Some([of(&names[0])?, of(&names[1])?]))
}

/// The configuration of the port's programs.
fn config(interface: &str, port: &Deployment, buffer: Buffer) -> Result<grant_config> {
    let params = port
        .window
        .core(buffer.as_bytes(), None)
        .map_err(|error| anyhow!("a buffer of {buffer}: {error}"))?;
    let rate = match port.credit_rate() {
        Some(rate) => rate.0,
        None => ethtool::speed_bps(interface)?.with_context(|| {
            format!("the rate of {interface} is not known; give it: --rate \"1 Gb/s\"")
        })?,
    };
    let mut config = grant_config {
        abi: grant_abi::GRANT_ABI,
        mark: monotonic_ns() as u32 | 1,
        rate_bps: rate,
        never_shrinks: port.window.flag("never_shrink").into(),
        ..Default::default()
    };
    bytes_of_mut(&mut config.params).copy_from_slice(params.bytes());
    Ok(config)
}

/// The configuration of the programs whose maps are pinned in a port's folder.
fn configured(folder: &Path) -> Option<grant_config> {
    let map = MapHandle::from_pinned_path(folder.join(CONFIG)).ok()?;
    of_bytes(&map.lookup(&0u32.to_ne_bytes(), MapFlags::ANY).ok()??)
}

/// The credit of a port.
#[derive(Clone, Debug, Serialize)]
pub struct Status {
    /// Where it is attached: `port`, `receiver` or `limit`.
    pub side: &'static str,
    /// Rate of the port, or the limit, bits per second.
    pub rate_bps: u64,
    /// What flows may send that have been granted it, bytes.
    pub outstanding_bytes: u32,
    /// Flows that wait for a grant.
    pub waiting: u32,
    /// Flows that have one.
    pub active: u32,
    /// Share of the last opened connections that began with less than the allowance (a moving average). From 7 of 8 on
    /// such beginnings need no grant.
    pub short_openers: f64,
    /// Grants by how long their flows waited, since the port was attached: bucket b holds those below
    /// `2^(15 + b)` ns and not in the one before, the last all that are longer.
    pub waits: Vec<u64>,
    /// Messages that have ended, by their sizes: up to 1 KiB, 2 KiB, and so on, the last without an end.
    /// The order follows them; after each 65,536 of them older ones count half.
    pub sizes: Vec<u32>,
    /// By the names of `core/counters.h`, since the port was attached.
    pub counters: Named<u64>,
}

/// The credit of the port with its pins in `folder`; none if its scheme has no such thing.
///
/// # Errors
/// The map cannot be read, or is of another version.
pub fn status(folder: &Path) -> Result<Option<Status>> {
    let pin = folder.join(OWN);
    if !pin.exists() {
        return Ok(None);
    }
    let value = open_map(&pin)?.lookup(&0u32.to_ne_bytes(), MapFlags::ANY)?;
    let value = value.unwrap_or_default();
    let (counters, port) = (offset_of!(grant_own, counters), offset_of!(grant_own, port));
    let counters: Option<grant_counters> = part(&value, counters);
    let port: Option<grant_port> = part(&value, port);
    let config = configured(folder);
    let known = [grant_abi::GRANT_SILENCED, grant_abi::GRANT_ABI];
    let is_known = config.is_none_or(|config| known.contains(&config.abi));
    let (Some(mut counters), Some(port), true) = (counters, port, is_known) else {
        bail!(
            "{} is of another version of penstockd; attach again",
            pin.display()
        );
    };
    (counters.grants, counters.grants_resent) = (port.grants, port.resends);
    counters.grants_lapsed = port.lapses;
    let names = definitions::credit_counters().iter();
    let named = names.map(|counter| counter.word.to_owned());
    Ok(Some(Status {
        side: config.map_or("", |config| side_of(&config)),
        rate_bps: port.rate_bps,
        outstanding_bytes: port.outstanding,
        waiting: port.waiting,
        active: port.active,
        short_openers: f64::from(port.brief) / f64::from(u8::MAX),
        waits: port.waits.to_vec(),
        sizes: port.ended.to_vec(),
        counters: named.zip(words_of(&counters)).collect(),
    }))
}

impl Status {
    /// Whether the queue is another's.
    pub fn is_behind_port(&self) -> bool {
        self.side != "port"
    }
}

fn side_of(config: &grant_config) -> &'static str {
    let definition = definition();
    let value = Params::from_bytes(definition, bytes_of(&config.params)).field("side");
    let mut params = definition.params.iter();
    let side = params.find(|param| param.key == "side");
    let word = side.and_then(|side| side.words.get(value as usize));
    word.map_or("", |word| word.word)
}

/// The struct at an offset of a value.
fn part<T: Copy>(value: &[u8], at: usize) -> Option<T> {
    of_bytes(value.get(at..at + size_of::<T>())?)
}

/// Has programs that may still run, as that of a timer, do nothing more.
pub fn silence(folder: &Path) {
    if let Ok(map) = MapHandle::from_pinned_path(folder.join(CONFIG)) {
        let silenced = grant_config {
            abi: grant_abi::GRANT_SILENCED,
            ..Default::default()
        };
        let _ = map.update(&0u32.to_ne_bytes(), bytes_of(&silenced), MapFlags::ANY);
    }
}

/// Removes what the port's folder has of Grant, if its scheme is another.
///
/// # Errors
/// The file system refuses.
pub fn remove_unused(folder: &Path, port: &Deployment) -> Result<()> {
    match port.window.is_credit() {
        true => Ok(()),
        false => remove(folder),
    }
}

fn remove(folder: &Path) -> Result<()> {
    silence(folder);
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with(PREFIX) || name == TIMER {
            let path = entry.path();
            std::fs::remove_file(&path).with_context(|| path.display().to_string())?;
        }
    }
    Ok(())
}
