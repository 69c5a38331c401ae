// SPDX-License-Identifier: Apache-2.0
//! Penstock's agent: puts the schemes of `core/`, as eBPF programs, on the ports of a Linux host,
//! keeps their heartbeats alive and reports what they do.
//!
//! # Map
//!
//! Start with [`attach::attach`] for how a scheme gets onto a port, with [`daemon`] for what keeps
//! it there, and with `bpf/abi.h` for what the agent and the programs share. Modules use only
//! those below them:
//!
//! | module | contents |
//! |---|---|
//! | [`cli`], [`commands`] | the command line; one file for each short command |
//! | [`daemon`] | `penstockd run`: configuration, ports that come and go, systemd |
//! | [`observe`] | `penstockd observe`: records of a port, a report, a trace to replay |
//! | [`watch`] | `penstockd watch`: rates and queues, live in the terminal |
//! | [`metrics`] | OpenMetrics over HTTP or in a file |
//! | [`status`] | what a port does now; [`status::reading`] feeds `metrics` and `watch` |
//! | [`attach`] | attaching and detaching: tcx, clsact, HCF's qdisc |
//! | [`port`] | one attached port: pins, maps, configuration, heartbeat, counters, ring buffers |
//! | [`host`] | the machine: kernel features, interfaces, qdiscs, signals, systemd |
//! | [`reference`] | the parameters of schemes as text, from their definitions in `core/` |
//! | [`skel`], [`format`](mod@format) | programs compiled from `bpf/`; numbers as text |
//!
//! All state is pinned below `DIR/vN/INTERFACE/` of a bpffs ([`port::pins`]). Every command opens
//! what it needs from there, so the daemon may die, restart or be upgraded at any time.

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod attach;
pub mod cli;
pub mod commands;
pub mod daemon;
pub mod format;
pub mod host;
pub mod metrics;
pub mod observe;
pub mod port;
pub mod reference;
pub mod skel;
pub mod status;
pub mod watch;
