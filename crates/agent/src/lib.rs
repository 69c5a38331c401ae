// SPDX-License-Identifier: Apache-2.0
//! Penstock's agent: puts the schemes of `core/`, as eBPF programs, on the ports of a Linux host,
//! keeps them alive and tells what they do.
//!
//! All state is pinned below `DIR/v1/INTERFACE/` of a bpffs ([`pins`]); every command opens what
//! it needs from there, so the daemon may die, restart or be upgraded at any time.

pub mod cli;
pub mod metrics;
pub mod objects;
pub mod observe;
pub mod pins;
pub mod watch;
