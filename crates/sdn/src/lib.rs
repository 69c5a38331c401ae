// SPDX-License-Identifier: Apache-2.0
//! What a controller in a software-defined network needs for SICC (SICC §4): OpenFlow, to speak with
//! switches, and the messages that it exchanges with agents on hosts and switches.

pub mod message;
pub mod openflow;
