// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//! Safe Rust face of the C headers in `core/`: FairQ, HSCC, SICC, HCF, the flow counts and the
//! TCP header rewriting they share.
//!
//! The algorithms are C, so that the simulator runs what the kernel runs; nothing is decided here.
//! Each module mirrors the header of its name: the parameters (checked when an object is made),
//! the state, and an object that holds both. A call costs 1 to 3 ns.

pub mod error;
pub mod fairq;
pub mod flow_count;
pub mod hcf;
pub mod hscc;
pub mod sicc;
pub mod tcp_rewrite;

pub use error::ParamError;
pub use fairq::Fairq;
pub use flow_count::{FlowCounter, FlowEntry};
pub use hcf::Hcf;
pub use hscc::Hscc;
pub use sicc::{SiccPort, SiccShim};

#[cfg(test)]
mod layout_tests;

/// One in the Q16 fractions of the parameters.
pub const Q16_ONE: u32 = 1 << 16;
