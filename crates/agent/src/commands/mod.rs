// SPDX-License-Identifier: Apache-2.0
//! The commands that attach and detach schemes, and report on ports and the machine.

pub mod attach;
pub mod check;
pub mod detach;
mod each;
pub mod limit;
pub mod pause;
pub mod reload;
pub mod run;
pub mod sicc;
pub mod status;
