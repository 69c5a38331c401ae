// SPDX-License-Identifier: Apache-2.0
//! The programs of a port by BPF_PROG_TEST_RUN: each stack of headers goes in as an ACK with a large
//! window and must come back as the very packet built with the lower one, checksums included.
//! Needs root.

#![allow(clippy::unwrap_used)]

#[path = "../common/mod.rs"]
mod common;
mod control;
mod counting;
mod marking;
mod observing;
mod policy;
mod port;
mod rewriting;
mod segments;
mod shares;
mod shim;
mod sizes;
mod sweeping;
mod two_cpus;
mod unusual;
