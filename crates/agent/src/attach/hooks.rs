// SPDX-License-Identifier: Apache-2.0
//! What is on the hooks of a port: ours and other tools'.

use std::path::Path;

use serde::Serialize;

use super::clsact;
use super::tcx::{self, Attached, Side};
use crate::host::{bpf, interface};
use crate::port::PinsArg;

/// One side of a port.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Occupied {
    /// The number of our program; none if it is not there.
    pub ours: Option<u32>,
    /// All tcx programs in the order in which they run, and our filter if that is how ours is on.
    pub programs: Vec<Attached>,
}

/// Both sides of a port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Hooks {
    /// Index of the interface that the pins are of, 0 if it is gone.
    pub ifindex: u32,
    /// `tcx` or `clsact`.
    pub hook: &'static str,
    /// What packets pass that leave.
    pub egress: Occupied,
    /// What packets pass that enter.
    pub ingress: Occupied,
}

impl Hooks {
    /// Whether our programs are on both sides of an interface that is there.
    pub fn are_ours(&self) -> bool {
        self.ifindex != 0 && self.egress.ours.is_some() && self.ingress.ours.is_some()
    }
}

/// Looks at the hooks of a pinned port. Other tools' programs are seen if the interface is in this
/// network namespace.
pub fn of(pins: &PinsArg, interface: &str) -> Hooks {
    let folder = pins.of(interface);
    let here = interface::find(interface);
    let links = Side::BOTH.map(|side| {
        let pin = folder.join(format!("link_{}", side.name()));
        tcx::open(&pin, side).ok().flatten()
    });
    let by_link = links.iter().any(Option::is_some);
    let ifindex = match links.iter().flatten().next() {
        Some((_, on)) => *on,
        None => here.unwrap_or(0),
    };
    let [egress, ingress] = [0, 1].map(|n| match &links[n] {
        Some((link, on)) if *on != 0 => on_link(link, *on, Side::BOTH[n]),
        _ => here.map_or_else(Occupied::default, |index| {
            filter(&folder, index, Side::BOTH[n])
        }),
    });
    Hooks {
        ifindex,
        hook: if by_link { "tcx" } else { "clsact" },
        egress,
        ingress,
    }
}

fn on_link(link: &libbpf_rs::Link, index: u32, side: Side) -> Occupied {
    let Ok(info) = link.info() else {
        return Occupied::default();
    };
    let all = tcx::query(index, side).unwrap_or_default();
    let is_here = all.iter().any(|there| there.link == info.id);
    Occupied {
        ours: Some(info.prog_id),
        programs: if is_here { all } else { Vec::new() },
    }
}

fn filter(folder: &Path, index: u32, side: Side) -> Occupied {
    let pin = folder.join(format!("program_{}", side.name()));
    let mut programs = tcx::query(index, side).unwrap_or_default();
    let ours = bpf::pinned(&pin).filter(|id| clsact::query(index, side) == Some(*id));
    programs.extend(ours.map(|id| Attached {
        id,
        name: bpf::program_name(id).unwrap_or_default(),
        link: 0,
    }));
    Occupied { ours, programs }
}
