// SPDX-License-Identifier: Apache-2.0
//! Packet-level simulator of data-center networks: a scenario goes in, an [`Outcome`] comes out.
//!
//! Start with [`run`](mod@run), which turns a scenario into a simulation and its counts into an
//! outcome, then [`Simulation::run_until`](simulation::Simulation::run_until), the event loop, and
//! [`network`], the way of a packet. The layers, each of which uses those above it only:
//!
//! | layer | what it is |
//! |---|---|
//! | [`rng`], [`distribution`], [`stats`] | random numbers, sizes and arrivals; statistics |
//! | [`packet`], [`engine`] | a packet of 32 bytes; the calendar of events, rings, timers |
//! | [`fabric`] | hosts, switches, cables, and the paths between hosts |
//! | [`queue`], [`window`] | two seams: what happens to a packet at a port; what an ACK may advertise |
//! | [`tcp`] | one end point of one connection, a pure state machine |
//! | [`network`] | links and ports with their policies, and the packets on them |
//! | [`controller`] | the third seam: what the network as a whole knows |
//! | [`parallel`] | a large fabric as shards that run side by side |
//! | [`simulation`] | the event loop; hosts, applications, schedule, probes |
//! | [`run`](mod@run) | one run of one scheme and seed: a scenario's fabric, policies and traffic, set up, run and summed up |
//!
//! Everything is a function of scenario, scheme and seed: time and random streams are passed in,
//! nothing is global, and neither the machine nor the number of threads changes a byte of the
//! results. Time is in picoseconds, an integer; simultaneous events have an order that does not depend
//! on when they were scheduled ([`engine::Calendar`]).

pub mod controller;
pub mod distribution;
pub mod engine;
pub mod fabric;
pub mod network;
pub mod packet;
pub mod parallel;
pub mod queue;
pub mod rng;
pub mod run;
pub mod simulation;
pub mod stats;
pub mod tcp;
pub mod window;

pub use penstock_scenario::{Scenario, ScenarioError};
pub use run::{Cores, Inputs, Outcome, RunError, run, run_on};
