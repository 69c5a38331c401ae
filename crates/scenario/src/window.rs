// SPDX-License-Identifier: Apache-2.0
//! The parameters of the window policies and of the controller.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::kinds::kinds;
use super::quantities::Share;
use crate::units::Time;

/// What an ACK may tell its sender.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Window {
    /// ACKs pass as they are.
    #[default]
    None,
    /// One fair window per port (FairQ Alg. 1).
    Fairq(Fairq),
    /// All flows clamped between two thresholds of the queue (HSCC §III).
    Hscc(Hscc),
}

/// What the network as a whole knows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Controller {
    /// Nothing.
    #[default]
    None,
    /// Foresees incast and tells the shims (SICC Alg. 1 and 2).
    Sicc(Sicc),
}

/// The table of a kind without parameters.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Empty {}

/// `None` as a kind: serde's unit variants take no table.
macro_rules! kinds_or_none {
    ($type:ident, $parts:ident { $($name:literal => $variant:ident),* }) => {
        enum $parts { None(#[allow(dead_code)] Empty), $($variant($variant)),* }
        kinds!($parts { "none" => None, $($name => $variant),* });
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<$type, D::Error> {
                Ok(match $parts::deserialize(deserializer)? {
                    $parts::None(_) => $type::None,
                    $($parts::$variant(parameters) => $type::$variant(parameters)),*
                })
            }
        }
    };
}

kinds_or_none!(Window, WindowParts { "fairq" => Fairq, "hscc" => Hscc });
kinds_or_none!(Controller, ControllerParts { "sicc" => Sicc });

/// Whether a scheme runs as printed or with what real TCP was found to need.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Variant {
    /// The one that works.
    #[default]
    Default,
    /// As printed.
    Paper,
}

impl Variant {
    const fn choose<T: Copy>(self, default: T, paper: T) -> T {
        match self {
            Variant::Default => default,
            Variant::Paper => paper,
        }
    }
}

/// How the port learns the window scale of a flow (FairQ §III-B).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Scale {
    /// The switch remembers each flow's SYN and SYN-ACK.
    #[default]
    Tracked,
    /// One scale for all, 7, written into SYN and SYN-ACK by the shims, which then say every
    /// window in it.
    Unified,
    /// The shim writes it into the reserved bits of the header; that of the other host clears
    /// them.
    ReservedBits,
    /// The shim writes it into four bits of the window field; twelve are left, for windows up to
    /// 4095.
    WindowBits,
}

/// How the port counts its flows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Counting {
    /// A table of flows: exact.
    #[default]
    Exact,
    /// SYN-ACKs minus FINs, as printed; drifts when these are lost or repeated.
    Packets,
}

/// FairQ: the port keeps one window and writes it into passing ACKs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Fairq {
    /// `paper`: slow start adds 2 MSS to each flow's window and first ACKs may be written down to
    /// one segment. `default`: it adds 2 MSS / flows, and first ACKs keep two segments.
    pub variant: Variant,
    /// The queue aimed at, as a share of the buffer. Default: 0.25 (FairQ §IV-D).
    pub alpha: Share,
    /// T: time between updates. Default: the fabric's longest RTT by propagation, at least 10 us.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<Time>,
    /// M: updates per change of the window. Default: 10.
    pub intervals: u32,
    /// Smallest window written, segments. Default: 1.
    pub floor: u8,
    /// Smallest window written into SYN-ACKs and first ACKs, segments, as long as the buffer holds
    /// it of every flow. Default: 2; paper: 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_floor: Option<u8>,
    /// The queue is the mean of the last 32 samples, 48 us apart (FairQ §IV-E). Default: false.
    pub averaged: bool,
    /// Paths that share the window under ECMP (FairQ §III-B). Default: 1.
    pub paths: u32,
    /// How flows are counted. Default: exact; paper: packets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counting: Option<Counting>,
    /// How window scales are learnt. Default: tracked.
    pub scale: Scale,
}

impl Default for Fairq {
    fn default() -> Fairq {
        Fairq {
            variant: Variant::Default,
            alpha: Share(0.25),
            interval: None,
            intervals: 10,
            floor: 1,
            first_floor: None,
            averaged: false,
            paths: 1,
            counting: None,
            scale: Scale::Tracked,
        }
    }
}

/// HSCC: every flow at one segment per RTT from when the queue reaches `alpha2` until it is down
/// at `alpha1`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Hscc {
    /// `paper`: nothing but the two thresholds. `default`: first flights are held to two segments
    /// and the window opens step by step after a clamp.
    pub variant: Variant,
    /// The clamp ends at this share of the buffer. Default: 0.1; paper: 0.25.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alpha1: Option<Share>,
    /// The clamp begins at this share of the buffer. Default: 0.25; paper: 0.5.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alpha2: Option<Share>,
    /// Data that would fill the buffer beyond this share is dropped, so that SYN, FIN and ACK
    /// still fit; 1 for none (HSCC §III-B). Default: 0.97; paper: 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sigma: Option<Share>,
    /// The window in a clamp, segments. Default: 1.
    pub floor: u8,
    /// Largest window of SYN-ACKs and first ACKs, segments; 0 for as it is. Default: 2; paper: 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_flight: Option<u8>,
    /// Segments by which the window grows per `release_interval` after a clamp; 0: the clamp just
    /// ends. Default: 1; paper: 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub release_step: Option<u8>,
    /// Time between the steps of the release. Default: 100 us.
    pub release_interval: Time,
    /// How window scales are learnt. Default: tracked.
    pub scale: Scale,
}

impl Default for Hscc {
    fn default() -> Hscc {
        Hscc {
            variant: Variant::Default,
            alpha1: None,
            alpha2: None,
            sigma: None,
            floor: 1,
            first_flight: None,
            release_step: None,
            release_interval: Time::from_micros(100),
            scale: Scale::Tracked,
        }
    }
}

/// SICC: the controller expects `SYN-ACKs * IW * MSS + queue` and clamps before it comes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Sicc {
    /// `paper`: the clamp ends when it is old and the queue is short, as printed. `default`: when
    /// either holds, as the prose has it.
    pub variant: Variant,
    /// The clamp ends at this share of the buffer. Default: 0.2 (SICC §5).
    pub alpha1: Share,
    /// It begins when so much of the buffer is expected. Default: 1 (SICC §5).
    pub alpha2: Share,
    /// T: time between looks at a port. Default: 10 of the fabric's longest RTTs by propagation (SICC
    /// §5), at least 100 us.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<Time>,
    /// IW: segments a new flow is expected to send at once. Default: 10 (RFC 6928).
    pub initial_window: u32,
    /// DM: longest clamp; the time mice take to finish. Default: 10 ms.
    pub duration: Time,
    /// The window in a clamp, segments. Default: 1.
    pub floor: u8,
    /// One way between controller and switch or shim. Default: 100 us.
    pub latency: Time,
    /// Share of the controller's messages that are lost. Default: 0.
    pub loss: Share,
}

impl Default for Sicc {
    fn default() -> Sicc {
        Sicc {
            variant: Variant::Default,
            alpha1: Share(0.2),
            alpha2: Share(1.0),
            interval: None,
            initial_window: 10,
            duration: Time::from_millis(10),
            floor: 1,
            latency: Time::from_micros(100),
            loss: Share(0.0),
        }
    }
}

impl Fairq {
    /// Smallest window written into SYN-ACKs and first ACKs, segments.
    pub fn first_floor(&self) -> u8 {
        self.first_floor.unwrap_or(self.variant.choose(2, 1))
    }

    /// How flows are counted.
    pub fn counting(&self) -> Counting {
        let printed = self.variant.choose(Counting::Exact, Counting::Packets);
        self.counting.unwrap_or(printed)
    }

    /// Writes out what depends on the variant.
    pub(super) fn complete(&mut self) {
        self.first_floor = Some(self.first_floor());
        self.counting = Some(self.counting());
    }
}

impl Hscc {
    /// The clamp ends at this share of the buffer.
    pub fn alpha1(&self) -> Share {
        self.alpha1.unwrap_or(Share(self.variant.choose(0.1, 0.25)))
    }

    /// The clamp begins at this share of the buffer.
    pub fn alpha2(&self) -> Share {
        self.alpha2.unwrap_or(Share(self.variant.choose(0.25, 0.5)))
    }

    /// Share of the buffer beyond which data is dropped.
    pub fn sigma(&self) -> Share {
        self.sigma.unwrap_or(Share(self.variant.choose(0.97, 1.0)))
    }

    /// Largest window of SYN-ACKs and first ACKs, segments; 0 for as it is.
    pub fn first_flight(&self) -> u8 {
        self.first_flight.unwrap_or(self.variant.choose(2, 0))
    }

    /// Segments by which the window grows per `release_interval` after a clamp.
    pub fn release_step(&self) -> u8 {
        self.release_step.unwrap_or(self.variant.choose(1, 0))
    }

    /// Writes out what depends on the variant.
    pub(super) fn complete(&mut self) {
        self.alpha1 = Some(self.alpha1());
        self.alpha2 = Some(self.alpha2());
        self.sigma = Some(self.sigma());
        self.first_flight = Some(self.first_flight());
        self.release_step = Some(self.release_step());
    }
}
