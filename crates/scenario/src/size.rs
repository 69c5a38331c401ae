// SPDX-License-Identifier: Apache-2.0
//! The published distributions of transfers' lengths, by name; `penstock-sim` has their points.

/// Names that a `size` may have.
pub const PUBLISHED_SIZES: &[&str] = &[
    "websearch",
    "datamining",
    "hadoop",
    "cache-follower",
    "web-server",
    "key-value",
    "rpc",
    "storage",
];
