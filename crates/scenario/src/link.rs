// SPDX-License-Identifier: Apache-2.0
//! A link of the fabric.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::quantities::{Buffer, Bytes};
use crate::units::{Rate, Time};

/// A link, the same in both directions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// Bits per second on the wire.
    pub rate: Rate,
    /// Propagation delay, one way.
    pub delay: Time,
    /// Up to how much longer a packet takes, each at random and all in order, as where hosts need a moment for it.
    /// Default: no longer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter: Option<Time>,
    /// Buffer of the switch ports that send on it. Default: the fabric's `buffer`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buffer: Option<Buffer>,
    /// Longest packet that it carries, headers counted. A connection's segments fit the least of its path, as after
    /// path MTU discovery. Default: any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtu: Option<Bytes>,
}
