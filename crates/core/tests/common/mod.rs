// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//! What the vectors and the properties share.

mod fields;
pub mod functions;

pub use fields::Fields;
