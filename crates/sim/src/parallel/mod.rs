// SPDX-License-Identifier: Apache-2.0
//! Parallel execution: a large fabric cut into shards that are simulated side by side.

mod barrier;
mod partition;

pub use barrier::Barrier;
pub use partition::Partition;
