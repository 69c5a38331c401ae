// SPDX-License-Identifier: Apache-2.0
//! Packet-level simulator of data-center networks.

pub mod distribution;
pub mod packet;
pub mod queue;
pub mod rng;
pub mod stats;
pub mod tcp;
pub mod units;
