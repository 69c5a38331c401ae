// SPDX-License-Identifier: Apache-2.0
//! Ports that get schemes, other schemes, and lose them, in namespaces of their own. Needs root.

#![allow(clippy::unwrap_used)]

mod attaching;
mod detaching;
#[path = "../lab/mod.rs"]
mod lab;
mod other_tools;
mod pausing;
mod replacing;
mod status;
mod staying;

use lab::PORT;

const FAIRQ: [&str; 6] = ["attach", PORT, "--scheme", "fairq", "--buffer", "128 kB"];
const HSCC: [&str; 6] = ["attach", PORT, "--scheme", "hscc", "--buffer", "128 kB"];
