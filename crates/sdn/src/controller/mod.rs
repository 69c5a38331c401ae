// SPDX-License-Identifier: Apache-2.0
//! What the controller knows and decides, without input and output.

mod fabric;
mod incast;
mod lldp;
mod network;
mod rules;
mod segment;

pub use fabric::{Fabric, MAX_HOSTS, Mac, Place};
pub use incast::{Counters, Incast, Limits};
pub use lldp::Lldp;
pub use network::{Connection, Controller};
pub use segment::{COPY_BYTES, Flow, Segment};
