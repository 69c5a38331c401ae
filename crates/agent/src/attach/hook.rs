// SPDX-License-Identifier: Apache-2.0
//! The two kinds of hook that programs can be attached to, behind one type: tcx ([`tcx`]) and
//! filters of a clsact qdisc ([`clsact`]).

use std::os::fd::BorrowedFd;
use std::path::Path;

use anyhow::Result;
use serde::Serialize;

use super::{clsact, tcx};
use crate::host::bpf::{name_of, program_by_id, program_info};
use crate::host::interface;
use crate::port::pins::link_pin;
use crate::port::{PinsArg, Side};

/// Which hook to use, as requested.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum HookChoice {
    /// tcx where the kernel has it (Linux 6.6), else clsact.
    #[default]
    Auto,
    /// Links on the tcx hooks.
    Tcx,
    /// Filters of a clsact qdisc.
    Clsact,
}

impl HookChoice {
    /// The hook used on this machine.
    pub fn resolve(self) -> Hook {
        match self {
            HookChoice::Auto if tcx::is_available() => Hook::Tcx,
            HookChoice::Tcx => Hook::Tcx,
            HookChoice::Auto | HookChoice::Clsact => Hook::Clsact,
        }
    }
}

/// A kind of hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Hook {
    /// Links on the tcx hooks of an interface.
    Tcx,
    /// Filters of its clsact qdisc.
    Clsact,
}

impl Hook {
    /// Every kind.
    pub const ALL: [Hook; 2] = [Hook::Tcx, Hook::Clsact];

    /// As in messages and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Hook::Tcx => "tcx",
            Hook::Clsact => "clsact",
        }
    }

    /// Whether our programs, whose pins are in `folder`, are on either side of an interface.
    ///
    /// # Errors
    /// Another tool's object is where ours should be, or the pins are of another interface.
    pub fn is_attached(self, folder: &Path, interface: &str, index: u32) -> Result<bool> {
        let mut is_attached = false;
        for side in Side::BOTH {
            is_attached |= match self {
                Hook::Tcx => tcx::is_attached(folder, interface, index, side)?,
                Hook::Clsact => clsact::is_attached(folder, index, side)?,
            };
        }
        Ok(is_attached)
    }

    /// Attaches `program`, in place of ours if there is one, and pins it in `folder`.
    ///
    /// # Errors
    /// The kernel refuses, or another tool's object is where ours should be.
    pub fn attach(
        self,
        program: BorrowedFd<'_>,
        folder: &Path,
        index: u32,
        side: Side,
    ) -> Result<()> {
        match self {
            Hook::Tcx => tcx::attach(program, folder, index, side),
            Hook::Clsact => clsact::attach(program, folder, index, side),
        }
    }

    /// Detaches our programs from both sides; no program is no error. `index`: none if the
    /// interface is gone.
    ///
    /// # Errors
    /// The kernel refuses, or another tool's object is where ours should be.
    pub fn detach(self, folder: &Path, index: Option<u32>) -> Result<()> {
        match (self, index) {
            (Hook::Tcx, _) => Side::BOTH
                .into_iter()
                .try_for_each(|side| tcx::detach(folder, side)),
            (Hook::Clsact, Some(index)) => clsact::detach(folder, index),
            (Hook::Clsact, None) => Ok(()),
        }
    }
}

/// Puts our programs on `interface` before all others where another came before them; returns the
/// names of those.
///
/// # Errors
/// The kernel refuses.
pub fn keep_first(pins: &PinsArg, interface: &str, index: u32) -> Result<Vec<String>> {
    let folder = pins.of(interface);
    let mut others = Vec::new();
    for side in Side::BOTH {
        let by_link = link_pin(&folder, side).exists();
        let (first_other, keep_first): (Look, Look) = match by_link {
            true => (tcx::first_other, tcx::keep_first),
            false => (clsact::first_other, clsact::keep_first),
        };
        if first_other(&folder, index, side)?.is_some() {
            let _lock = pins.lock()?;
            others.extend(keep_first(&folder, index, side)?);
        }
    }
    Ok(others)
}

/// The name of a program that came before ours.
type Look = fn(&Path, u32, Side) -> Result<Option<String>>;

/// A program on a hook.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HookProgram {
    /// The kernel's number of the program.
    pub id: u32,
    /// Its name, at most 15 letters.
    pub name: String,
    /// The kernel's number of its link; 0 if there is none.
    pub link: u32,
    /// How long its runs took, while the kernel counted that (`kernel.bpf_stats_enabled`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
}

/// What a program's runs took in all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Cost {
    /// How often it ran.
    pub runs: u64,
    /// Their time in nanoseconds, including what the packets that it sent took.
    pub nanoseconds: u64,
}

impl HookProgram {
    /// The program with this number, on a link; `name` is used if it cannot be opened.
    pub(super) fn new(id: u32, link: u32, name: &str) -> HookProgram {
        let program = program_by_id(id);
        let info = program.as_ref().and_then(program_info);
        HookProgram {
            id,
            name: program
                .as_ref()
                .and_then(name_of)
                .unwrap_or(name.to_owned()),
            link,
            cost: info.filter(|info| info.run_cnt > 0).map(|info| Cost {
                runs: info.run_cnt,
                nanoseconds: info.run_time_ns,
            }),
        }
    }
}

/// The programs on one side of a port.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct HookPrograms {
    /// The number of our program; none if it is not attached.
    pub ours: Option<u32>,
    /// All programs in the order in which they run: those on tcx, then, if we use clsact, those of its filters.
    pub programs: Vec<HookProgram>,
}

/// The programs on both sides of a port, ours and other tools'.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Hooks {
    /// Index of the interface that the pins belong to, 0 if it is gone.
    pub ifindex: u32,
    /// Which hook ours are on.
    pub hook: Hook,
    /// Programs that leaving packets pass.
    pub egress: HookPrograms,
    /// Programs that entering packets pass.
    pub ingress: HookPrograms,
}

impl Hooks {
    /// Lists the programs on the hooks of a pinned port. Other tools' are listed if the interface
    /// is in this network namespace.
    pub fn of(pins: &PinsArg, interface: &str) -> Hooks {
        let folder = pins.of(interface);
        let here = interface::find(interface);
        let links = Side::BOTH.map(|side| tcx::open(&folder, side).ok().flatten());
        let by_link = links.iter().any(Option::is_some);
        // The link of one side may have been detached.
        let indexes = links.iter().flatten().map(|(_, index)| *index);
        let ifindex = match by_link {
            true => indexes.max().unwrap_or(0),
            false => here.unwrap_or(0),
        };
        let [egress, ingress] = [0, 1].map(|n| match (&links[n], here) {
            (Some((link, index)), _) if *index != 0 => tcx::programs(link, *index, Side::BOTH[n]),
            (_, Some(index)) => clsact::programs(&folder, index, Side::BOTH[n]),
            (_, None) => HookPrograms::default(),
        });
        Hooks {
            ifindex,
            hook: if by_link { Hook::Tcx } else { Hook::Clsact },
            egress,
            ingress,
        }
    }

    /// Whether our programs are on both sides of an interface that exists.
    pub fn are_ours(&self) -> bool {
        self.ifindex != 0 && self.egress.ours.is_some() && self.ingress.ours.is_some()
    }
}
