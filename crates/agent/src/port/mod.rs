// SPDX-License-Identifier: Apache-2.0
//! An attached port as the agent sees it: its pins, its maps and what they hold.

pub mod config;
pub mod counters;
pub mod flow_counts;
pub mod heartbeat;
pub mod layout;
pub mod lock;
pub mod maps;
pub mod pins;
pub mod plain;
pub mod policy;
pub mod records;
pub mod rings;
pub mod sicc;
pub mod side;
pub mod slots;
pub mod sockets;
pub mod timer;
pub mod vxlan;

pub use maps::Port;
pub use pins::PinsArg;
pub use side::Side;
