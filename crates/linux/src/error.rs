// SPDX-License-Identifier: Apache-2.0
//! Why the kernel refused.

use std::fmt;
use std::io;

/// A result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// What could not be done, where and why, with a remedy; displays as one line.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The calling thread's network namespace has no interface of this name.
    NoInterface {
        /// The requested name.
        name: String,
        /// The interfaces that exist.
        present: Vec<String>,
    },
    /// The interface has no queueing discipline that counts.
    NoQueue {
        /// The interface.
        interface: String,
    },
    /// A system call failed.
    Refused {
        /// The action with its object, after "cannot": `delete the root qdisc of eth0`.
        action: String,
        /// The kernel's error.
        reason: io::Error,
        /// The kernel's own explanation, if it gave one.
        detail: Option<String>,
    },
}

impl Error {
    /// An error of `action`, which is a verb with its object.
    pub fn refused(action: impl Into<String>, reason: impl Into<io::Error>) -> Error {
        Error::Refused {
            action: action.into(),
            reason: reason.into(),
            detail: None,
        }
    }

    /// The kernel's error number, if the kernel gave one.
    pub fn errno(&self) -> Option<i32> {
        match self {
            Error::Refused { reason, .. } => reason.raw_os_error(),
            _ => None,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::NoInterface { name, present } => write!(
                f,
                "no interface {name} in this network namespace; it has {}",
                present.join(", ")
            ),
            Error::NoQueue { interface } => write!(
                f,
                "{interface} has no qdisc that counts; add one: tc qdisc add dev {interface} root fq_codel"
            ),
            Error::Refused {
                action,
                reason,
                detail,
            } => {
                write!(f, "cannot {action}: {reason}")?;
                if let Some(detail) = detail {
                    write!(f, " ({detail})")?;
                }
                match remedy(reason) {
                    Some(remedy) => write!(f, "; {remedy}"),
                    None => Ok(()),
                }
            }
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        // The reason is part of the line already.
        None
    }
}

fn remedy(reason: &io::Error) -> Option<&'static str> {
    Some(match reason.raw_os_error()? {
        libc::EPERM | libc::EACCES => "run it as root or with CAP_NET_ADMIN",
        libc::ENODEV => "the interface is gone: list those that exist with `ip link`",
        libc::EEXIST => "delete the existing one first",
        libc::EOPNOTSUPP => "this kernel or driver does not support it",
        libc::EAGAIN => "the kernel gave no answer in time: try again",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_one_line_with_its_remedy() {
        let refused = |code| {
            Error::refused("create link veth0", io::Error::from_raw_os_error(code)).to_string()
        };
        assert_eq!(
            refused(libc::EPERM),
            "cannot create link veth0: Operation not permitted (os error 1); \
             run it as root or with CAP_NET_ADMIN"
        );
        assert_eq!(
            refused(libc::EBUSY),
            "cannot create link veth0: Device or resource busy (os error 16)"
        );
        let absent = Error::NoInterface {
            name: "eth9".to_owned(),
            present: vec!["lo".to_owned(), "eth0".to_owned()],
        };
        assert_eq!(
            absent.to_string(),
            "no interface eth9 in this network namespace; it has lo, eth0"
        );
        assert_eq!(absent.errno(), None);
    }
}
