// SPDX-License-Identifier: Apache-2.0
//! The parameters of the queue policies.

use penstock_core::ParamError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::count::Bins;
use super::kinds::kinds;
use super::params::{hcf, saturated};
use super::quantities::{Buffer, Bytes, Level, Share};
use super::window::params_of;
use crate::units::Time;

/// What happens to a packet that wants to leave by a port.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Queue {
    /// First in, first out; a full buffer loses what arrives.
    DropTail(DropTail),
    /// Random early detection (Floyd, Jacobson, ToN 1993).
    Red(Red),
    /// Marks above a threshold of the instantaneous queue, for DCTCP (RFC 8257).
    Threshold(Threshold),
    /// Controlled delay (RFC 8289).
    Codel(Codel),
    /// Proportional integral controller enhanced (RFC 8033).
    Pie(Pie),
    /// Stochastic fairness queueing (McKenney, INFOCOM 1990).
    Sfq(Sfq),
    /// Deficit round robin (Shreedhar, Varghese, SIGCOMM 1995).
    Drr(Drr),
    /// Hashed credits fair (HCF Alg. 1).
    Hcf(Hcf),
}

kinds!(Queue {
    "drop-tail" => DropTail,
    "red" => Red,
    "threshold" => Threshold,
    "codel" => Codel,
    "pie" => Pie,
    "sfq" => Sfq,
    "drr" => Drr,
    "hcf" => Hcf,
});

impl Default for Queue {
    fn default() -> Queue {
        Queue::DropTail(DropTail {})
    }
}

/// No parameters: the buffer belongs to the link.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DropTail {}

/// Random early detection. The average counts packets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Red {
    /// Average queue below which nothing is dropped. Default: a quarter of the buffer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min: Option<Buffer>,
    /// Average queue above which all is dropped (twice as much if gentle). Default: three times
    /// `min`, as Floyd recommends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<Buffer>,
    /// Probability of a drop at `max`. Default: 0.1.
    pub probability: Share,
    /// Weight of a new sample in the average. Default: 0.002.
    pub weight: Share,
    /// From `max` to twice `max` the probability grows to 1 instead of jumping. Default: true.
    pub gentle: bool,
    /// `probability` drifts between 0.01 and 0.5 so that the average stays amid `min` and `max`
    /// (Floyd, Gummadi, Shenker 2001). Default: false.
    pub adaptive: bool,
    /// Mark ECN-capable packets instead of dropping them (RFC 3168). Default: false.
    pub ecn: bool,
}

impl Default for Red {
    fn default() -> Red {
        Red {
            min: None,
            max: None,
            probability: Share(0.1),
            weight: Share(0.002),
            gentle: true,
            adaptive: false,
            ecn: false,
        }
    }
}

/// Threshold marking. Packets that are not ECN-capable pass.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Threshold {
    /// K: a packet that finds this much, or this share of the buffer, queued is marked. Default: 15 packets at 1 Gb/s and
    /// below, 65 packets at 10 Gb/s and above, in proportion to the rate between (SICC §5).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mark_at: Option<Level>,
}

/// Controlled delay.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Codel {
    /// Standing delay that is accepted. Default: 5 ms (RFC 8289 §4.4).
    pub target: Time,
    /// How long the delay must stand; about the longest RTT. Default: 100 ms (RFC 8289 §4.3).
    pub interval: Time,
    /// Mark ECN-capable packets instead of dropping them. Default: false.
    pub ecn: bool,
}

impl Default for Codel {
    fn default() -> Codel {
        Codel {
            target: Time::from_millis(5),
            interval: Time::from_millis(100),
            ecn: false,
        }
    }
}

/// Proportional integral controller enhanced.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Pie {
    /// Queueing delay aimed at. Default: 15 ms (RFC 8033 §5.1).
    pub target: Time,
    /// Time between updates of the probability. Default: 15 ms (RFC 8033 §5.1).
    pub update: Time,
    /// Weight of the deviation from the target, 1/s. Default: 0.125 (RFC 8033 §5.1).
    pub alpha: f64,
    /// Weight of the delay's change, 1/s. Default: 1.25 (RFC 8033 §5.1).
    pub beta: f64,
    /// A burst of this length passes. Default: 150 ms (RFC 8033 §5.1).
    pub burst: Time,
    /// Mark ECN-capable packets instead of dropping them, up to a probability of 10 %. Default: false.
    pub ecn: bool,
}

impl Default for Pie {
    fn default() -> Pie {
        Pie {
            target: Time::from_millis(15),
            update: Time::from_millis(15),
            alpha: 0.125,
            beta: 1.25,
            burst: Time::from_millis(150),
            ecn: false,
        }
    }
}

/// Stochastic fairness queueing. A full buffer takes from the longest bin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Sfq {
    /// Bins that flows are hashed to. Default: 1024, as in Linux.
    #[serde(with = "Bins")]
    pub bins: u32,
    /// Bytes a bin sends per round. Default: 1500 B.
    pub quantum: Bytes,
    /// The hash changes so often. Default: never.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub perturb: Option<Time>,
}

impl Default for Sfq {
    fn default() -> Sfq {
        Sfq {
            bins: 1024,
            quantum: Bytes(1500),
            perturb: None,
        }
    }
}

/// Deficit round robin, one queue per flow. A full buffer takes from the longest queue.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Drr {
    /// Bytes a flow's deficit grows per round. Default: 1500 B.
    pub quantum: Bytes,
}

impl Default for Drr {
    fn default() -> Drr {
        Drr {
            quantum: Bytes(1500),
        }
    }
}

params_of!(
    /// Hashed credits fair: two queues that share the port's buffer.
    Hcf,
    hcf()
);

/// When HCF's priority period ends and all credits return (`enum hcf_period` of `core/hcf.h`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Period {
    /// When a departure leaves the high-priority queue empty.
    Dynamic,
    /// Every `every`, whatever is queued.
    Fixed,
    /// Every `every`, but not before the high-priority queue is empty.
    Ordered,
}

/// A packet of 1500 bytes as queue disciplines count it, with its Ethernet header.
const FULL_FRAME: u32 = 1514;

impl Hcf {
    /// When the priority period ends.
    pub fn period(&self) -> Period {
        [Period::Dynamic, Period::Fixed, Period::Ordered][self.word("period")]
    }

    /// As the algorithm takes them, for a queue that may hold `limit` besides the packet in
    /// transmission; each of the two has room for at least one packet.
    ///
    /// # Errors
    /// A value outside its range.
    pub fn queues(&self, limit: Buffer) -> Result<penstock_core::Params, ParamError> {
        // A queue with room for no packet would hold none that is meant for it.
        let split = |all: u32, least: u32| {
            let high = (f64::from(all) * self.share("high_share").0) as u32;
            let high = high.max(least);
            [high, all.saturating_sub(high).max(least)]
        };
        let (packets, bytes) = match limit {
            Buffer::Packets(packets) => (split(packets, 1), [0; 2]),
            Buffer::Bytes(bytes) => ([0; 2], split(saturated(bytes), FULL_FRAME)),
        };
        let mut core = self.core(0, None)?;
        for role in 0..2 {
            core.set_field(&format!("capacity_packets[{role}]"), packets[role].into());
            core.set_field(&format!("capacity_bytes[{role}]"), bytes[role].into());
        }
        Ok(core)
    }
}
