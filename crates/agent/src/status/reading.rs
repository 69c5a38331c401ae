// SPDX-License-Identifier: Apache-2.0
//! All that can be read of a port at one instant.

use anyhow::Result;
use penstock_core::tcp_rewrite::MAX_WINDOW_BYTES;
use penstock_linux::qdisc::{self, Qdisc};

use crate::attach::grant;
use crate::attach::hook::Hooks;
use crate::host::interface;
use crate::port::config::{OBSERVE, paused_ns};
use crate::port::policy::Policy;
use crate::port::{PinsArg, Port, counters, sicc};
use crate::skel::port::types::{port_config, port_counters, port_state, side_counters};

/// A pause that no more than this is left of was given an end.
const FOR_EVER: u64 = u64::MAX / 2;

/// A port, read at once.
#[derive(Clone, Debug, Default)]
pub struct Reading {
    /// Its name.
    pub interface: String,
    /// The scheme whose programs are on it; `observe` is none.
    pub scheme: String,
    /// Whether a side lacks its program, as when the interface is gone.
    pub is_off: bool,
    /// The sides on which packets pass unseen by our programs.
    pub blind: Vec<&'static str>,
    /// The share of ACKs whose flow's window scale is unknown: of the latest, or, of one reading alone,
    /// since the attach. None without ACKs.
    pub unknown_scale_share: Option<f64>,
    /// The configuration of the programs.
    pub config: port_config,
    /// Their state.
    pub state: port_state,
    /// Their counters.
    pub counters: port_counters,
    /// Which flows they leave alone.
    pub policy: Policy,
    /// What the flows controlled and those held out did, while there is a policy.
    pub sides: [side_counters; 2],
    /// Milliseconds by their longest queue: bucket b holds `[2^(b-1), 2^b)` bytes.
    pub depth: Vec<u64>,
    /// Age of the heartbeat, seconds.
    pub heartbeat_age_s: f64,
    /// Pairs of hosts whose ACKs are clamped by a controller's order; none if its shim is not here.
    pub clamped_pairs: Option<u64>,
    /// Its credit, if its windows are that.
    pub credit: Option<grant::Status>,
    /// Packets that the port's qdisc has dropped; wraps. None if it cannot be read.
    pub drops: Option<u32>,
}

impl Reading {
    /// Reads an attached port.
    ///
    /// # Errors
    /// The port is not attached (any more), or cannot be read.
    pub fn of(pins: &PinsArg, interface: &str) -> Result<Reading> {
        Reading::of_port(pins, &pins.open(interface)?, &Hooks::of(pins, interface))
    }

    /// The same of a port that is open, and whose hooks are known.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn of_port(pins: &PinsArg, port: &Port, hooks: &Hooks) -> Result<Reading> {
        let index = interface::find(&port.interface);
        let root = index.and_then(|index| qdisc::root(index).ok());
        Reading::with_root(pins, port, hooks, root.as_ref())
    }

    /// The same with the port's root qdisc as it was read.
    fn with_root(
        pins: &PinsArg,
        port: &Port,
        hooks: &Hooks,
        root: Option<&Qdisc>,
    ) -> Result<Reading> {
        let interface = &port.interface;
        let age_ns = port.heartbeat_age_ns()?;
        let stats = port.stats()?;
        let scheme = pins.scheme(interface).unwrap_or_else(|| "none".to_owned());
        let clamped_pairs = match sicc::is_scheme(&scheme) {
            true => Some(sicc::clamped_pairs(port)?),
            false => None,
        };
        Ok(Reading {
            interface: interface.clone(),
            scheme,
            clamped_pairs,
            credit: grant::status(&port.folder)?,
            is_off: !hooks.are_ours(),
            blind: Vec::new(), // one reading cannot show it
            unknown_scale_share: counters::unknown_scale_share(
                None,
                &counters::named(&stats.counters),
            ),
            config: port.config()?,
            state: port.state()?,
            counters: stats.counters,
            policy: port.policy()?,
            sides: stats.sides,
            depth: stats.depth.to_vec(),
            heartbeat_age_s: age_ns as f64 / 1e9,
            drops: root.map(|qdisc| qdisc.counters.drops),
        })
    }

    /// All attached ports, and how many of them could not be read.
    ///
    /// # Errors
    /// The folder of the pins cannot be read.
    pub fn all(pins: &PinsArg) -> Result<(Vec<Reading>, usize)> {
        let interfaces = pins.interfaces()?;
        let all = interfaces.len();
        // The kernel lists those of all interfaces each time.
        let roots = qdisc::roots().unwrap_or_default();
        let readings = interfaces.iter().filter_map(|name| {
            let index = interface::find(name);
            let root = roots.iter().find(|root| Some(root.interface) == index);
            let (port, hooks) = (pins.open(name).ok()?, Hooks::of(pins, name));
            Reading::with_root(pins, &port, &hooks, root).ok()
        });
        let readings: Vec<Reading> = readings.collect();
        let unread = all - readings.len();
        Ok((readings, unread))
    }

    /// Whether ACKs are rewritten now: a scheme is on the port, sees it, is not paused, and its
    /// agent is alive.
    pub fn is_acting(&self) -> bool {
        let is_alive = self.heartbeat_age_s * 1e9 <= self.config.stale_ns as f64;
        is_alive
            && !self.is_paused()
            && !self.is_off
            && self.blind.is_empty()
            && !matches!(self.scheme.as_str(), OBSERVE | "none")
    }

    /// Whether `penstockd pause` lets packets pass untouched now.
    pub fn is_paused(&self) -> bool {
        paused_ns(&self.config) > 0
    }

    /// In how many seconds a pause ends by itself, if it does.
    pub fn resumes_in_s(&self) -> Option<f64> {
        let left_ns = paused_ns(&self.config);
        (1..FOR_EVER)
            .contains(&left_ns)
            .then_some(left_ns as f64 / 1e9)
    }

    /// The window that the scheme grants each flow, if it limits windows now. The first packet
    /// initialises the scheme.
    pub fn window_bytes(&self) -> Option<u32> {
        let is_limited = self.state.generation != 0 && self.state.window_bytes < MAX_WINDOW_BYTES;
        (self.is_acting() && is_limited).then_some(self.state.window_bytes)
    }
}
