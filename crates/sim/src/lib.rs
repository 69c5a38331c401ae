// SPDX-License-Identifier: Apache-2.0
//! Packet-level simulator of data-center networks.

pub mod packet;
pub mod queue;
pub mod rng;
pub mod tcp;
pub mod units;
