// SPDX-License-Identifier: Apache-2.0
//! The part of OpenFlow that a controller of congestion needs: it learns a switch's ports,
//! writes routes, gets copies of SYN and FIN, and sends packets out.
//!
//! Sources: OpenFlow Switch Specification 1.3.5 (ONF TS-023) and 1.5.1 (TS-025); section numbers are
//! those of 1.5.1. TCP flags are matched by the extension of ONF (EXT-109) in 1.3.
//!
//! Reading is total: any bytes give a message or an [`Error`], and nothing of a message that is not
//! understood is used.

mod action;
mod error;
pub mod failure;
mod frame;
mod matching;
mod port;
mod read;
mod write;

pub use action::{Action, Instruction};
pub use error::Error;
pub use frame::{Frames, Header, MAX_MESSAGE_BYTES, Version, kind};
pub use matching::{Field, Match};
pub use port::{Port, number};
pub use read::{Message, PortChange, Role, Route};
pub use write::{FlowMod, HELLO, Writer};
