// SPDX-License-Identifier: Apache-2.0
//! Ports that differ from the others of their fabric, and buffers that ports share.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::count::Many;
use super::quantities::{Buffer, Bytes, Share};
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
    /// Longest packet that the link carries, headers counted. Default: the link's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtu: Option<Bytes>,
    /// With `ecmp = "weighted"`: the share of the connections that take the link, compared with the others that lead
    /// as near. Default: its rate in Mb/s.
    #[serde(with = "Many", default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<u32>,
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

/// Priority flow control (IEEE 802.1Qbb, one priority): a switch that holds too many packets which came in by one
/// port has the far end of that link pause. The packets count for the port by which they came in, until they begin to
/// leave; the ports' own buffers are no limit at this switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Pfc {
    /// Beyond so much of one port's packets the far end pauses.
    pub pause: Bytes,
    /// At so much or less it goes on. Default: half of `pause`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resume: Option<Bytes>,
    /// What else may come in until the pause has its effect; beyond it packets are lost. Default: what the link
    /// carries in a round trip, and 4 full packets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub headroom: Option<Bytes>,
}

impl Pfc {
    /// At so much or less the far end goes on.
    pub fn resume(&self) -> u64 {
        self.resume.map_or(self.pause.0 / 2, |resume| resume.0)
    }
}

/// How switches choose among links that lead equally near.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Ecmp {
    /// By connection, each link equally often.
    #[default]
    Flow,
    /// By packet, at random (packet spraying): packets overtake each other.
    Packet,
    /// By connection, each link as often as its weight is large.
    Weighted,
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
