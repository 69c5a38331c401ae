// SPDX-License-Identifier: Apache-2.0
//! Errors as the CNI specification has them: a code, a line, details.

use serde::Serialize;

/// Codes of the specification, and this plugin's own from 100 on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(into = "u32")]
pub enum Code {
    /// The version of the configuration is not supported.
    Version = 1,
    /// The environment lacks a variable, or has an invalid one.
    Environment = 4,
    /// Files, sockets or the kernel refuse.
    Io = 5,
    /// The configuration is no JSON.
    Decode = 6,
    /// The configuration is invalid.
    Config = 7,
    /// What was set up is not there (CHECK).
    Missing = 100,
}

impl From<Code> for u32 {
    fn from(code: Code) -> u32 {
        code as u32
    }
}

/// What is printed on stdout when a command fails.
#[derive(Debug, Serialize)]
pub struct Error {
    /// What kind of error.
    pub code: Code,
    /// One line.
    pub msg: String,
    /// What to do, or what another program printed.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub details: String,
}

/// A result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// An error without details.
    pub fn new(code: Code, msg: impl Into<String>) -> Error {
        Error {
            code,
            msg: msg.into(),
            details: String::new(),
        }
    }

    /// The same with details.
    pub fn with(self, details: impl Into<String>) -> Error {
        Error {
            details: details.into(),
            ..self
        }
    }
}

impl From<penstock_linux::Error> for Error {
    fn from(error: penstock_linux::Error) -> Error {
        Error::new(Code::Io, error.to_string())
    }
}
