// SPDX-License-Identifier: Apache-2.0
//! Why the traffic could not be played.

use std::fmt;

/// What is wrong, where, and what to do, in one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// It cannot be done.
    Because(String),
    /// SIGINT or SIGTERM came.
    Interrupted,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Because(what) => f.write_str(what),
            Failure::Interrupted => f.write_str("interrupted; nothing was written"),
        }
    }
}

impl std::error::Error for Failure {}

/// A failure with the line that `what` and the error make.
pub fn because<E: fmt::Display>(what: impl fmt::Display) -> impl FnOnce(E) -> Failure {
    move |error| Failure::Because(format!("{what}: {error}"))
}
