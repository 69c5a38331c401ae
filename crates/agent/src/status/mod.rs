// SPDX-License-Identifier: Apache-2.0
//! What a port does now, from its counters over a short time.

mod canary;
pub mod reading;
pub mod sight;
mod text;

use std::time::{Duration, Instant};

use anyhow::Result;
use penstock_linux::link;
use serde::Serialize;

use crate::attach::hook::{HookPrograms, Hooks};
use crate::attach::{grant, hcf, location};
use crate::host::{interface, queue_visibility};
use crate::port::config::are_below_host;
use crate::port::counters::{self, Named};
use crate::port::policy::Policy;
use crate::port::{PinsArg, Port};
use crate::skel::port::types::side_counters;

pub use text::{WHY_BLIND, lines, recreated};

use self::canary::Canary;
use self::reading::Reading;
use self::sight::Sight;

/// Which sides of a port have our program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Sides {
    /// What leaves is watched.
    pub egress: bool,
    /// ACKs that enter are rewritten.
    pub ingress: bool,
}

/// A port.
#[derive(Clone, Debug, Serialize)]
pub struct Status {
    /// Its interface.
    pub interface: String,
    /// The interface's number; 0 if it is gone.
    pub ifindex: u32,
    /// Whether an interface of this name exists, but is not the one that the programs were attached to.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub recreated: bool,
    /// The interface's name now, if it was renamed since the programs were attached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub renamed_to: Option<String>,
    /// The scheme whose programs are on it; `observe` is none.
    pub scheme: Option<String>,
    /// Which sides they are on.
    pub attached: Sides,
    /// Age of the heartbeat, seconds.
    pub heartbeat_age_s: f64,
    /// The heartbeat's age from which packets pass untouched, seconds.
    pub stale_s: f64,
    /// The sides on which packets pass unseen by our programs.
    pub blind: Vec<&'static str>,
    /// Whether it is paused: packets pass untouched.
    pub paused: bool,
    /// In how many seconds a pause ends by itself, if it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resumes_in_s: Option<f64>,
    /// Whether ACKs are rewritten if the scheme so decides.
    pub acting: bool,
    /// Configured size of the port's queue, bytes.
    pub buffer_bytes: u32,
    /// The queue as last seen, bytes.
    pub queue_bytes: u32,
    /// Why the programs cannot read the queue, if so: it then reads as empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue_unseen: Option<String>,
    /// Flows counted.
    pub flows: u32,
    /// Flows that a controller has counted, if it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flows_by_controller: Option<u32>,
    /// Window that the scheme grants each flow; none before the first packet, which initialises it.
    pub window_bytes: Option<u32>,
    /// Pairs of hosts whose ACKs are clamped by a controller's order; none if its shim is not here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clamped_pairs: Option<u64>,
    /// Counters since the port was attached.
    pub counters: Named<u64>,
    /// The same per second, over the time of the reading.
    pub rates: Named<f64>,
    /// The share of ACKs, over the time of the reading, whose window could not be lowered as its scale
    /// is not known; none if no ACK came in.
    pub unknown_scale_share: Option<f64>,
    /// Which flows are left alone; none if no flow is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<Policy>,
    /// What the flows of a canary do, compared with those held out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub canary: Option<Canary>,
    /// The programs on the hooks, other tools' included.
    pub hooks: Hooks,
    /// Its credit, if its windows are that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credit: Option<grant::Status>,
    /// State of HCF's queue, if the port has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hcf: Option<hcf::Status>,
}

/// A port that cannot be read.
#[derive(Clone, Debug, Serialize)]
pub struct Unreadable {
    /// Its interface.
    pub interface: String,
    /// Why.
    pub error: String,
}

impl Unreadable {
    /// The port whose reading failed.
    pub fn new(interface: &str, error: &anyhow::Error) -> Unreadable {
        Unreadable {
            interface: interface.to_owned(),
            error: format!("{error:#}"),
        }
    }

    /// The same in one line.
    pub fn line(&self) -> String {
        format!("{}: cannot be read: {}", self.interface, self.error)
    }
}

/// Reads `interfaces` for `time`, each apart: one that cannot be read does not hide the others.
///
/// # Errors
/// The folder of the pins or the interfaces cannot be read.
pub fn look(
    pins: &PinsArg,
    interfaces: &[String],
    time: Duration,
) -> Result<Vec<Result<Status, Unreadable>>> {
    let of = |interface: &str, error| Unreadable::new(interface, &error);
    let open =
        |interface: &String| Before::of(pins, interface).map_err(|error| of(interface, error));
    let before: Vec<_> = interfaces.iter().map(open).collect();
    if before.iter().any(Result::is_ok) {
        std::thread::sleep(time);
    }
    let renamed = location::renamed(pins, &link::all()?)?;
    let read = |before: Before| {
        let interface = &before.port.interface;
        let mut status = status(pins, &before).map_err(|error| of(interface, error))?;
        let new_name = renamed.iter().find(|(old, _)| old == interface);
        status.renamed_to = new_name.map(|(_, new)| new.clone());
        Ok(status)
    };
    Ok(before.into_iter().map(|before| read(before?)).collect())
}

/// What a port had counted when a reading began.
struct Before {
    at: Instant,
    port: Port,
    counters: Named<u64>,
    sight: Option<Sight>,
    sides: [side_counters; 2],
}

impl Before {
    fn of(pins: &PinsArg, interface: &str) -> Result<Before> {
        let port = pins.open_settled(interface)?;
        let stats = port.stats()?;
        Ok(Before {
            at: Instant::now(),
            sight: Sight::of(interface, &stats.counters)?,
            counters: counters::named(&stats.counters),
            sides: stats.sides,
            port,
        })
    }
}

fn status(pins: &PinsArg, before: &Before) -> Result<Status> {
    let port = &before.port;
    let seconds = before.at.elapsed().as_secs_f64().max(1e-6);
    let hooks = Hooks::of(pins, &port.interface);
    let mut reading = Reading::of_port(pins, port, &hooks)?;
    let now = Sight::of(&port.interface, &reading.counters)?;
    if let (Some(now), Some(before)) = (now, &before.sight) {
        reading.blind = sight::names(now.blind_since(before));
    }
    let (config, state) = (&reading.config, &reading.state);
    let counters = counters::named(&reading.counters);
    let is_on = |side: &HookPrograms| side.ours.is_some();
    let attached = Sides {
        egress: is_on(&hooks.egress),
        ingress: is_on(&hooks.ingress),
    };
    let scheme = pins.scheme(&port.interface);
    let is_here = interface::find(&port.interface) == Some(hooks.ifindex);
    let is_behind = reading
        .credit
        .as_ref()
        .is_some_and(grant::Status::is_behind_port);
    let queue_unseen = match scheme.as_deref() {
        Some(scheme) if is_here && !are_below_host(scheme) && !is_behind => {
            queue_visibility::missing(&port.interface, hooks.ifindex)
        }
        _ => None,
    };
    let rates = counters::rates(&before.counters, &counters, seconds);
    let canary = reading.policy.canary;
    Ok(Status {
        unknown_scale_share: counters::unknown_scale_share(Some(&before.counters), &counters),
        canary: canary.map(|share| Canary::of(share, &before.sides, &reading.sides, seconds)),
        policy: (!reading.policy.is_open()).then(|| reading.policy.clone()),
        interface: port.interface.clone(),
        ifindex: hooks.ifindex,
        recreated: hooks.ifindex == 0 && interface::find(&port.interface).is_some(),
        renamed_to: None, // set by `look`
        attached,
        heartbeat_age_s: reading.heartbeat_age_s,
        stale_s: config.stale_ns as f64 / 1e9,
        acting: reading.is_acting(),
        paused: reading.is_paused(),
        resumes_in_s: reading.resumes_in_s(),
        scheme,
        buffer_bytes: config.buffer_bytes,
        queue_bytes: state.queue_bytes,
        queue_unseen,
        flows: state.flows,
        flows_by_controller: (state.counted > 0).then_some(state.counted),
        window_bytes: (state.generation != 0).then_some(state.window_bytes),
        clamped_pairs: reading.clamped_pairs,
        rates,
        counters,
        hooks,
        credit: reading.credit,
        hcf: hcf::status(&port.folder)?,
        blind: reading.blind,
    })
}
