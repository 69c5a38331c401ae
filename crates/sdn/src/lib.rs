// SPDX-License-Identifier: Apache-2.0
//! The messages between SICC's controller and the agents of hosts and switches (SICC §4.2), and what they
//! are written with.

pub mod codec;
pub mod message;
