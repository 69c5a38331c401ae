// SPDX-License-Identifier: Apache-2.0
//! The host: requirements, interfaces and qdiscs, calls of bpf(2), the clock, signals, systemd.

pub mod bpf;
pub mod clock;
pub mod interface;
pub mod link_speed;
pub(crate) mod netlink;
pub mod qdisc;
pub mod queue_visibility;
pub mod requirements;
pub(crate) mod signals;
pub(crate) mod systemd;
