// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//! What must hold of every scheme at any input.

#![allow(clippy::unwrap_used)]

#[path = "../common/mod.rs"]
mod common;
mod definitions;
mod fairq;
mod flow;
mod grant;
mod hcf;
mod hscc;
mod schemes;
mod segment;
mod sicc;
mod tcp_rewrite;

use penstock_core::Params;
use penstock_core::definitions::of as definition_of;
use penstock_core::tcp_rewrite::{AckKind, TcpWindow};
use proptest::prelude::*;

/// A passing ACK: window field, scale, MSS of its flow, kind.
#[derive(Clone, Copy, Debug)]
struct Ack {
    window: u16,
    scale: Option<u8>,
    mss: u32,
    kind: AckKind,
}

fn acks() -> impl Strategy<Value = Ack> {
    let kinds = prop_oneof![
        Just(AckKind::Later),
        Just(AckKind::First),
        Just(AckKind::Syn)
    ];
    (
        any::<u16>(),
        proptest::option::of(0u8..=15),
        1u32..=9000,
        kinds,
    )
        .prop_map(|(window, scale, mss, kind)| Ack {
            window,
            scale,
            mss,
            kind,
        })
}

impl Ack {
    fn shift(&self) -> u32 {
        if self.kind == AckKind::Syn {
            0
        } else {
            self.scale.unwrap_or(0).min(14).into()
        }
    }

    /// As [`Ack::assert_lowered`], and never below one segment unless it came so.
    fn assert_kept(&self, out: TcpWindow) {
        self.assert_lowered(out);
        let bytes = |window: u16| u64::from(window) << self.shift();
        assert!(
            bytes(out.window) >= bytes(self.window).min(self.mss.into()),
            "{self:?} {out:?}"
        );
    }

    /// Never raised, untouched if the scale is unknown.
    fn assert_lowered(&self, out: TcpWindow) {
        assert!(out.window <= self.window, "raised: {self:?} {out:?}");
        assert_eq!(out.changed, out.window < self.window);
        assert!(out.changed || !out.floored);
        if self.scale.is_none() && self.kind != AckKind::Syn {
            assert!(!out.changed);
        }
    }
}

/// A scheme's default parameters with some fields, by their names in C, set to others.
fn with(name: &str, buffer: u32, fields: &[(&str, u64)]) -> Params {
    changed(Params::new(definition_of(name), buffer), fields)
}

/// As printed, likewise.
fn printed(name: &str, buffer: u32, fields: &[(&str, u64)]) -> Params {
    changed(Params::paper(definition_of(name), buffer), fields)
}

fn changed(mut params: Params, fields: &[(&str, u64)]) -> Params {
    for (name, value) in fields {
        params.set_field(name, *value);
    }
    params
}
