// SPDX-License-Identifier: Apache-2.0
//! The TCP of the hosts: a profile and what deviates from it.

use schemars::JsonSchema;
use serde::de::{Deserializer, Error, Visitor};
use serde::{Deserialize, Serialize};

use super::count::{Many, ManyOrNone, Shift};
use super::quantities::Bytes;
use crate::units::Time;

/// A named set of TCP parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Profile {
    /// The papers' simulations: NewReno as ns-2 has it, an ACK for each segment, no options.
    NewrenoNs2,
    /// What a modern guest runs: CUBIC, SACK, timestamps, RACK-TLP, PRR.
    #[default]
    Linux,
    /// The papers' testbeds: Ubuntu 14.04 with Linux 3.18, before RACK; window scale 7.
    #[serde(rename = "linux-3.18")]
    Linux318,
}

impl Profile {
    /// Whether it offers SACK.
    pub(super) fn has_sack(self) -> bool {
        self != Profile::NewrenoNs2
    }
}

/// What the congestion window obeys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Congestion {
    /// NewReno (RFC 5681, RFC 6582).
    Newreno,
    /// CUBIC (RFC 9438).
    Cubic,
    /// DCTCP (RFC 8257); needs `ecn`.
    Dctcp,
    /// BBR version 1; needs `sack`.
    Bbr,
}

/// How losses are found and repaired.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Recovery {
    /// Three duplicate ACKs; the first new ACK ends recovery (RFC 5681): plain Reno.
    Reno,
    /// Three duplicate ACKs and partial ACKs (RFC 6582).
    Newreno,
    /// SACK's scoreboard (RFC 6675); needs `sack`.
    Sack,
    /// Time-based detection, and tail loss probes unless `tlp` is false (RFC 8985); needs `sack`.
    RackTlp,
}

/// TCP parameters; what is not given is as in the profile.
///
/// A scheme's `[scheme.NAME.tcp]` goes over the scenario's `[tcp]`, a traffic's over both.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Tcp {
    /// Where every parameter starts. Default: linux.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<Profile>,
    /// Congestion control.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub congestion: Option<Congestion>,
    /// Loss recovery.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recovery: Option<Recovery>,
    /// Tail loss probes (RFC 8985 §7); needs `sack`. Default where `recovery` is given: with
    /// `rack-tlp` only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tlp: Option<bool>,
    /// Early retransmit: with fewer than four segments in flight and nothing new to send, fewer
    /// duplicates mean a loss (RFC 5827, with Linux's delay); needs `sack`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub early_retransmit: Option<bool>,
    /// Proportional rate reduction (RFC 6937).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prr: Option<bool>,
    /// Limited transmit (RFC 3042).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limited_transmit: Option<bool>,
    /// Largest segment: payload bytes, as a number or with a unit.
    #[serde(deserialize_with = "segment", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Segment>")]
    pub mss: Option<u16>,
    /// Congestion window of a new connection, segments (RFC 6928).
    #[serde(with = "Many", skip_serializing_if = "Option::is_none")]
    pub initial_window: Option<u32>,
    /// Upper bound of the congestion window, segments.
    #[serde(with = "Many", skip_serializing_if = "Option::is_none")]
    pub max_window: Option<u32>,
    /// Congestion-window validation: the window grows only while it is used (RFC 7661 §4).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub validation: Option<bool>,
    /// Receive buffer, which bounds the window offered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receive_buffer: Option<Bytes>,
    /// Window scale offered (RFC 7323 §2).
    #[serde(with = "Shift", skip_serializing_if = "Option::is_none")]
    pub window_scale: Option<u8>,
    /// Offer SACK (RFC 2018).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sack: Option<bool>,
    /// Offer timestamps (RFC 7323).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timestamps: Option<bool>,
    /// Offer ECN (RFC 3168).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ecn: Option<bool>,
    /// Delay ACKs (RFC 1122 §4.2.3.2).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delayed_ack: Option<bool>,
    /// The longest an ACK is delayed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ack_delay: Option<Time>,
    /// ACKs sent at once at the start of a connection and after disorder (quick-ack), at most.
    #[serde(with = "ManyOrNone", skip_serializing_if = "Option::is_none")]
    pub quick_acks: Option<u32>,
    /// Nagle's algorithm (RFC 9293 §3.7.4).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nagle: Option<bool>,
    /// Retransmission timeout before the first sample (RFC 6298 §2.1).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initial_rto: Option<Time>,
    /// Smallest retransmission timeout (RFC 6298 §2.4).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_rto: Option<Time>,
    /// Largest retransmission timeout (RFC 6298 §2.5).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_rto: Option<Time>,
}

impl Tcp {
    /// These parameters with `over` on top.
    pub fn overlaid(&self, over: &Tcp) -> Tcp {
        macro_rules! overlay {
            ($($field:ident)*) => { Tcp { $($field: over.$field.or(self.$field)),* } };
        }
        overlay! {
            profile congestion recovery tlp early_retransmit prr limited_transmit mss
            initial_window max_window validation receive_buffer window_scale sack timestamps ecn delayed_ack ack_delay
            quick_acks nagle initial_rto min_rto max_rto
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        *self == Tcp::default()
    }
}

/// What `mss` may be, for the schema.
#[derive(JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only its schema is used")]
enum Segment {
    Number(u16),
    Size(Bytes),
}

/// What is beyond 16 bits is as much as these hold, which the check refuses with its limits.
fn segment<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u16>, D::Error> {
    struct Reader;
    impl Visitor<'_> for Reader {
        type Value = u16;
        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("a number of bytes, or a size such as \"1448 B\"")
        }
        fn visit_i64<E: Error>(self, bytes: i64) -> Result<u16, E> {
            Ok(bytes.clamp(0, u16::MAX.into()) as u16)
        }
        fn visit_str<E: Error>(self, text: &str) -> Result<u16, E> {
            let bytes = Bytes::read(text).map_err(E::custom)?;
            Ok(bytes.0.min(u16::MAX.into()) as u16)
        }
    }
    from.deserialize_any(Reader).map(Some)
}
