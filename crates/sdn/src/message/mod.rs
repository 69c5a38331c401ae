// SPDX-License-Identifier: Apache-2.0
//! Messages between the controller and the agents of hosts and switches, in UDP or in Ethernet frames
//! of an experimental type, as SICC §4.2 has them.
//!
//! A controller and an agent share a key, and each message ends with a code that only they can
//! compute. An agent draws the number of its session by chance, the controller answers with a
//! challenge that nothing earlier shows, and all messages carry both: a recorded one is of no use in another
//! session. Within one, messages are numbered and each number is taken once. Time plays no part.
//!
//! ```text
//! 0         1      2      4         12          20       28     28 + n
//! | version | kind | host | session | challenge | number | body | code (16) |
//! ```
//!
//! Numbers are in network order.

mod body;
mod ends;
mod flows;
mod frame;
mod queues;
mod seal;

pub use body::{Body, MAX_NOTICES, Notice, Order, mapped};
pub use ends::{Agent, Peer, Received};
pub use flows::{Ask, FlowOptions, FlowReport, MAX_FLOWS, OptionsReport};
pub use frame::{frame, of_frame};
pub use queues::QueueReport;
pub use seal::{Key, Refused, host_of};

/// The experimental type of Ethernet frames with a message (IEEE 802, local experiments).
pub const ETHERTYPE: u16 = 0x88b5;

/// The UDP port of the controller, unless configured.
pub const PORT: u16 = 6654;
