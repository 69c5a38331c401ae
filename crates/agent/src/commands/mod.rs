// SPDX-License-Identifier: Apache-2.0
//! The commands that put schemes on ports and take them off.

pub mod attach;
pub mod detach;
pub mod status;
