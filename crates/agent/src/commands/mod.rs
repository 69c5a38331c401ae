// SPDX-License-Identifier: Apache-2.0
//! The commands that put schemes on ports, keep them, and take them off.

pub mod attach;
pub mod check;
pub mod detach;
pub mod run;
pub mod status;
