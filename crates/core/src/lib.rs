// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//! Safe Rust face of the C headers in `core/`: FairQ, HSCC, SICC, HCF, Grant, the flow counts and the
//! TCP header rewriting they share.
//!
//! The algorithms are C, so that the simulator runs what the kernel runs; nothing is decided here.
//! A call costs 1 to 3 ns.
//!
//! - [`definitions`]: every parameter and counter as data, from the tables of the headers. Start
//!   here; scenarios, options, metrics and the docs are made of them.
//! - [`params`]: a scheme's parameters at one port, the struct of C.
//! - [`scheme`]: a window scheme at one port. There is one type for all of them, and none is named.
//! - [`hcf`], [`sicc`], [`grant`]: the queue policy, the controller with its shims, windows as credit.
//! - [`flow`], [`flow_counter`], [`segment`], [`tcp_rewrite`]: what they share.
//!
//! Structs of C are memory that only C reads and writes (`memory`). `c/` makes the inline functions
//! callable and the tables data.

pub mod definitions;
pub mod flow;
pub mod flow_counter;
pub mod grant;
pub mod hcf;
mod memory;
pub mod params;
pub mod scheme;
pub mod segment;
pub mod sicc;
pub mod tcp_rewrite;

pub use flow::{FlowEntry, Handshake};
pub use flow_counter::FlowCounter;
pub use grant::{Grant, GrantAction, GrantOpening, GrantPacket};
pub use hcf::Hcf;
pub use params::{ParamError, Params};
pub use scheme::WindowScheme;
pub use segment::PortSegments;
pub use sicc::{SiccPort, SiccShim};
