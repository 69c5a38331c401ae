// SPDX-License-Identifier: Apache-2.0
//! SICC's controller of OpenFlow switches (SICC §4).
//!
//! [`openflow`] speaks with switches. [`fabric`] knows the network, [`lldp`] finds its links, [`rules`]
//! are what the switches do. [`segment`] is the copy of a SYN or FIN, [`incast`] decides by
//! `core/sicc.h`. [`network`] puts them together without input and output, [`server`] adds these. [`status`] and [`metrics`] show
//! what it knows and did.

pub mod config;
pub mod fabric;
pub mod incast;
pub mod lldp;
pub mod metrics;
pub mod network;
pub mod openflow;
pub mod rules;
pub mod segment;
pub mod server;
pub mod status;
