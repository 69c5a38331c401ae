// SPDX-License-Identifier: Apache-2.0
//! Penstock's agent: puts the schemes of `core/`, as eBPF programs, on the ports of a Linux host,
//! keeps them alive and tells what they do.
//!
//! All state is pinned below `DIR/v1/INTERFACE/` of a bpffs ([`pins`]); every command opens what
//! it needs from there, so the daemon may die, restart or be upgraded at any time.

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod alive;
pub mod attach;
pub mod cli;
pub mod clsact;
pub mod commands;
pub mod counters;
pub mod daemon;
pub mod detach;
pub mod hcf;
pub mod hooks;
pub mod human;
pub mod interface;
pub mod link;
pub mod load;
pub mod machine;
pub mod metrics;
mod netlink;
mod notify;
pub mod objects;
pub mod observe;
pub mod params;
pub mod pins;
pub mod qdisc;
pub mod sight;
mod signals;
pub mod status;
pub mod tcx;
pub mod watch;
