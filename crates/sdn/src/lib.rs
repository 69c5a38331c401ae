// SPDX-License-Identifier: Apache-2.0
//! The messages between SICC's controller and the agents of hosts and switches (SICC §4.2), what they
//! are written with, and what both ends read from their configurations.
//!
//! | module | contents |
//! |---|---|
//! | [`message`] | the messages, sealed with a shared key; the two ends of a conversation; start here |
//! | [`codec`] | numbers in network order |
//! | `shared` | keys from files, numbers of switches, random numbers |

pub mod codec;
pub mod message;
mod shared;

pub use shared::{datapath, key, random, secret};
