// SPDX-License-Identifier: Apache-2.0
//! Finding and repairing losses.

mod newreno;
mod scoreboard;

pub(super) use scoreboard::Scoreboard;
