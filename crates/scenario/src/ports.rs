// SPDX-License-Identifier: Apache-2.0
//! Ports that differ from the others of their fabric, and buffers that ports share.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::quantities::{Buffer, Share};
use crate::units::{Rate, Time};

/// What is different at some ports, and on the links that they feed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PortChange {
    /// Bits per second on the wire. Default: the link's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// Propagation delay. Default: the link's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Time>,
    /// What the port can queue. Default: its switch's or link's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buffer: Option<Buffer>,
    /// Share of the packets that is lost at random, before they are queued. Default: 0.
    #[serde(default, skip_serializing_if = "Share::is_zero")]
    pub loss: Share,
    /// When the link is down. What the port should send then is lost; paths stay as they are, as
    /// before a network has noticed. Default: never.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub down: Vec<Span>,
}

impl PortChange {
    /// Whether the link loses packets of itself.
    pub fn fails(&self) -> bool {
        !self.loss.is_zero() || !self.down.is_empty()
    }
}

/// A span of time, its end not included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Span {
    /// Its begin.
    pub from: Time,
    /// Its end.
    pub to: Time,
}

impl Span {
    /// Whether `time` is in it.
    pub fn contains(&self, time: Time) -> bool {
        self.from <= time && time < self.to
    }
}

/// A buffer that all ports of a switch share, with a dynamic threshold: a port may queue at most
/// `alpha` times what is free in the whole (Choudhury and Hahne, IEEE/ACM Transactions on Networking
/// 6(2), 1998).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SharedBuffer {
    /// What all ports together can queue.
    pub size: Buffer,
    /// How often what is free a port may have. Default: 1.
    #[serde(default = "one")]
    pub alpha: f64,
}

const fn one() -> f64 {
    1.0
}

impl SharedBuffer {
    /// What a port can queue while no other has a queue: of `B` bytes `alpha / (1 + alpha) B`.
    pub fn alone(&self, packet_bytes: u64) -> Buffer {
        let all = self.size.bytes(packet_bytes) as f64;
        Buffer::Bytes((all * self.alpha / (1.0 + self.alpha)) as u64)
    }
}
