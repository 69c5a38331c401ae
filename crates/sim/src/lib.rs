// SPDX-License-Identifier: Apache-2.0
//! Packet-level simulator of data-center networks.

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
