// SPDX-License-Identifier: Apache-2.0
//! The ways a port may be set up, and what its programs may then change.

use super::check::Right;
use penstock_core::Params;
use penstock_core::definitions::{self, Definition};
use penstockd::port::config::{FLOW_EVENTS, write_params};
use penstockd::port::policy::Policy;
use penstockd::port::vxlan::VxlanPorts;
use penstockd::skel::port::types;

/// `enum wscale_source` of core/window.h.
pub const TRACKED: u32 = 0;
const RESERVED: u32 = 1;
const WINDOW12: u32 = 2;
const UNIFIED: u32 = 3;
const STRIPPED: u32 = 4;
const LOWERED: u32 = 5;

#[derive(Clone, Copy)]
pub struct Case {
    pub name: &'static str,
    pub scheme: &'static str,
    pub wscale_source: u32,
    pub clears_bits: bool,
    pub never_shrink: bool,
    pub flow_events: bool,
    /// Marks CE from this queue on.
    pub mark_bytes: u32,
    /// Parameters as the papers print them.
    pub is_paper: bool,
    pub is_stale: bool,
    /// Some flows are left alone.
    pub has_policy: bool,
}

const PLAIN: Case = Case {
    name: "",
    scheme: "fairq",
    wscale_source: TRACKED,
    clears_bits: false,
    never_shrink: false,
    flow_events: false,
    mark_bytes: 0,
    is_paper: false,
    is_stale: false,
    has_policy: false,
};

/// Room of the port's queue, and what stands in it while packets run.
pub const BUFFER_BYTES: u32 = 60_000;

pub const CASES: [Case; 20] = [
    Case {
        name: "observe",
        scheme: "observe",
        flow_events: true,
        ..PLAIN
    },
    Case {
        name: "fairq",
        ..PLAIN
    },
    Case {
        name: "fairq-paper",
        is_paper: true,
        ..PLAIN
    },
    Case {
        name: "fairq never shrinking",
        never_shrink: true,
        ..PLAIN
    },
    Case {
        name: "fairq, reserved bits",
        wscale_source: RESERVED,
        ..PLAIN
    },
    Case {
        name: "fairq, twelve bits",
        wscale_source: WINDOW12,
        ..PLAIN
    },
    Case {
        name: "fairq, one scale",
        wscale_source: UNIFIED,
        flow_events: true,
        ..PLAIN
    },
    Case {
        name: "fairq, clearing bits",
        wscale_source: RESERVED,
        clears_bits: true,
        ..PLAIN
    },
    Case {
        name: "fairq, without scales",
        wscale_source: STRIPPED,
        ..PLAIN
    },
    Case {
        name: "hscc, lower scales",
        scheme: "hscc",
        wscale_source: LOWERED,
        ..PLAIN
    },
    Case {
        name: "fairq, marking",
        mark_bytes: 1,
        ..PLAIN
    },
    Case {
        name: "fairq, some flows",
        has_policy: true,
        mark_bytes: 1,
        ..PLAIN
    },
    Case {
        name: "hscc",
        scheme: "hscc",
        ..PLAIN
    },
    Case {
        name: "hscc-paper",
        scheme: "hscc",
        is_paper: true,
        mark_bytes: 1,
        ..PLAIN
    },
    Case {
        name: "fairq, stale, twelve bits",
        is_stale: true,
        wscale_source: WINDOW12,
        ..PLAIN
    },
    Case {
        name: "shim, reserved bits",
        scheme: "shim",
        wscale_source: RESERVED,
        ..PLAIN
    },
    Case {
        name: "shim, twelve bits",
        scheme: "shim",
        wscale_source: WINDOW12,
        ..PLAIN
    },
    Case {
        name: "shim, one scale",
        scheme: "shim",
        wscale_source: UNIFIED,
        ..PLAIN
    },
    Case {
        name: "shim, tracked",
        scheme: "shim",
        wscale_source: TRACKED,
        ..PLAIN
    },
    Case {
        name: "fairq, stale",
        is_stale: true,
        mark_bytes: 1,
        ..PLAIN
    },
];

/// A policy with rules of each kind and a canary, which leaves many flows alone and many not.
pub fn policy() -> Policy {
    let rules = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
    Policy {
        exclude: rules(&["tcp:80", "10.0.0.0/24", "dscp:46", "mark:0x10/0xff"]),
        include: rules(&["10.0.0.0/8", "fd00::/8"]),
        canary: Some(0.9),
    }
}

impl Case {
    pub fn program(&self, is_egress: bool) -> String {
        format!(
            "{}_{}",
            self.scheme,
            if is_egress { "egress" } else { "ingress" }
        )
    }

    /// Whether it is there to change packets.
    pub fn acts(&self) -> bool {
        !self.is_stale && self.scheme != "observe" && self.name != "shim, tracked"
    }

    pub fn right(&self, is_egress: bool) -> Right {
        if self.scheme == "shim"
            || self.clears_bits
            || matches!(self.wscale_source, STRIPPED | LOWERED)
        {
            return Right::Scale;
        }
        match (
            self.is_stale || self.scheme == "observe",
            is_egress,
            self.wscale_source,
        ) {
            (true, ..) => Right::Nothing,
            (_, true, _) if self.mark_bytes > 0 => Right::Mark,
            (_, true, _) => Right::Nothing,
            (_, _, WINDOW12) => Right::Window12,
            _ if !self.has_floor() => Right::WindowOrNone,
            _ => Right::Window,
        }
    }

    fn params(&self, definition: &'static Definition) -> Params {
        match self.is_paper {
            true => Params::paper(definition, BUFFER_BYTES),
            false => Params::new(definition, BUFFER_BYTES),
        }
    }

    /// Whether its scheme writes no window below a segment; FairQ as printed has no floor.
    fn has_floor(&self) -> bool {
        let mut schemes = definitions::window_schemes();
        schemes
            .find(|definition| definition.name == self.scheme)
            .is_none_or(|definition| self.params(definition).field("floor_segments") > 0)
    }

    /// On the interface with this index.
    pub fn config(&self, generation: u32, ifindex: u32) -> types::port_config {
        let mut config = types::port_config {
            abi: types::port_abi::PENSTOCK_ABI,
            generation,
            ifindex,
            flows_max: u32::MAX,
            flags: if self.flow_events { FLOW_EVENTS } else { 0 },
            stale_ns: if self.is_stale { 1 } else { u64::MAX },
            buffer_bytes: BUFFER_BYTES,
            mark_bytes: self.mark_bytes,
            policy: u32::from(self.has_policy),
            vxlan_ports: VxlanPorts::default().to_wire(),
            ..types::port_config::default()
        };
        config.window.first_acks = 4;
        config.window.wscale_source = self.wscale_source;
        config.window.network_wscale = 7;
        config.window.clears_bits = self.clears_bits.into();
        config.window.idle_ns = 1_000_000_000;
        config.window.never_shrink = self.never_shrink.into();
        for definition in definitions::window_schemes() {
            write_params(&mut config.schemes, &self.params(definition));
        }
        config
    }
}
