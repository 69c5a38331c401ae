// SPDX-License-Identifier: Apache-2.0
//! SICC's controller of OpenFlow switches (SICC §4).
//!
//! [`openflow`] speaks with switches; [`switch`] is one of them. [`fabric`] knows the network, [`lldp`]
//! finds its links, [`rules`] are what the switches do. [`segment`] is the copy of a SYN or FIN, [`incast`]
//! knows the flows of ports and decides by `core/sicc.h`; `agents` send queues and get notices, `followers`
//! get the flows of ports, `guests` are where they were seen.
//! [`network`] puts these together without input and output, [`server`] adds both. [`status`] and
//! [`metrics`] show what it knows and did.

mod agents;
pub mod config;
pub mod fabric;
mod followers;
mod guests;
pub mod incast;
pub mod lldp;
pub mod metrics;
pub mod network;
pub mod openflow;
mod recent;
pub mod rules;
pub mod segment;
pub mod server;
pub mod status;
pub mod switch;
