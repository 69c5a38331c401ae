// SPDX-License-Identifier: Apache-2.0
//! SICC's controller in a software-defined network (SICC §4): OpenFlow, to speak with switches, the
//! messages that it exchanges with agents on hosts and switches, and what it knows and decides.

pub mod config;
pub mod controller;
pub mod message;
pub mod openflow;
pub mod server;
pub mod status;
