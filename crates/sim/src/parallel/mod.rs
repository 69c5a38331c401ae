// SPDX-License-Identifier: Apache-2.0
//! Parallel execution: a large fabric cut into shards, each a discrete event simulation of its own
//! (a logical process), synchronized conservatively.
//!
//! - `partition`: which shard each host, switch and port belongs to.
//! - `shard`: the seam. A simulation asks its [`Shard`] which hosts and ports are its own, and
//!   gives it messages for other hosts; whether those are here, the simulation need not know.
//! - `boundary`: links that lead from one shard to another.
//! - `rounds`: the loop. What leaves a shard reaches another only after the delay of a link: the
//!   lookahead. So all shards run from the earliest event of any of them for as long as the
//!   lookahead, exchange a [`Batch`] each, and begin the next round.
//! - `barrier`: where the threads wait for each other between rounds.
//!
//! The shards, and so the results, follow from the scenario alone: one thread or many work through
//! the same shards. Another number of shards is another run, as another seed is: simultaneous events
//! take turns in another order, and policies that draw random numbers draw from other streams.

mod barrier;
mod boundary;
mod partition;
mod rounds;
mod shard;

pub use partition::Partition;
pub use rounds::{End, LogicalProcess, exchange, run};
pub use shard::{Batch, Shard};
