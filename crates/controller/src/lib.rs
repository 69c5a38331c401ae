// SPDX-License-Identifier: Apache-2.0
//! SICC's controller of OpenFlow switches (SICC §4).
//!
//! | module | contents |
//! |---|---|
//! | [`server`] | sockets, time and files around `network`; start here |
//! | [`network`] | the controller without input and output |
//! | [`config`] | its configuration |
//! | [`openflow`], [`switch`] | the protocol; the state of one switch |
//! | [`fabric`], [`lldp`], [`rules`] | the network, how its links are found, what the switches do |
//! | [`segment`] | copies of SYNs and FINs |
//! | [`incast`] | the flows of ports; what `core/sicc.h` decides for them |
//! | `agents`, `followers` | agents that report queues and get notices; those that ask for the flows of ports |
//! | `guests` | where the addresses of guests are |
//! | [`status`], [`metrics`] | what the controller knows and did |
//! | `recent`, `shares` | maps of bounded size, the second with a share for each guest |

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
mod shares;
pub mod status;
pub mod switch;
