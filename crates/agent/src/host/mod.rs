// SPDX-License-Identifier: Apache-2.0
//! The host: requirements, interfaces by name, calls of bpf(2), the clock, output, signals, systemd. Rtnetlink
//! and ethtool are in the crate `penstock-linux`.

pub mod audit;
pub mod bpf;
pub mod clock;
pub mod file;
pub mod interface;
pub mod output;
pub mod queue_visibility;
pub mod requirements;
pub mod rounds;
pub(crate) mod signals;
pub(crate) mod systemd;
