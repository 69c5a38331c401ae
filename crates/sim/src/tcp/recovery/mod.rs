// SPDX-License-Identifier: Apache-2.0
//! Finding and repairing losses: without SACK by `newreno`, else over a `scoreboard` that `sack`
//! drives, with losses found by `rack` or by RFC 6675's count, and the window led by `prr`.

mod newreno;
mod probe;
mod prr;
mod rack;
mod sack;
mod scoreboard;

pub(super) use scoreboard::Scoreboard;
