// SPDX-License-Identifier: Apache-2.0
//! Why a run failed.

use std::fmt;

/// What is wrong, where, and what to do, in one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The run is impossible, or the kernel refused a part of it.
    Because(String),
    /// SIGINT or SIGTERM arrived.
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

impl From<penstock_linux::Error> for Failure {
    fn from(error: penstock_linux::Error) -> Failure {
        Failure::Because(error.to_string())
    }
}

/// A failure whose line is `what`, then the error.
pub fn because<E: fmt::Display>(what: impl fmt::Display) -> impl FnOnce(E) -> Failure {
    move |error| Failure::Because(format!("{what}: {error}"))
}
