// SPDX-License-Identifier: Apache-2.0
//! What is wrong with a message.

use std::fmt;

/// A message that cannot be read. The connection is to be closed: what follows is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// A version that is neither 1.3 nor 1.5, as on the wire.
    Version(u8),
    /// The length in a header is shorter than the header.
    Length(u16),
    /// A message of this type ends too early, or a length in it is wrong.
    Malformed(u8),
    /// A further connection of a switch, with this number.
    Auxiliary(u8),
    /// The switch has no roles, by which one controller alone writes.
    Roles,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Version(version) => {
                write!(f, "OpenFlow version {version:#04x}; allowed: 1.3 and 1.5")
            }
            Error::Length(bytes) => write!(f, "an OpenFlow message of {bytes} bytes"),
            Error::Malformed(kind) => write!(f, "a malformed OpenFlow message of type {kind}"),
            Error::Auxiliary(number) => {
                write!(f, "auxiliary connection {number}; allowed: the main one")
            }
            Error::Roles => f.write_str("the switch has no roles, which writes = \"one\" takes"),
        }
    }
}

impl std::error::Error for Error {}
