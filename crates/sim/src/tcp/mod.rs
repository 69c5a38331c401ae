// SPDX-License-Identifier: Apache-2.0
//! TCP by the RFCs: one side of one connection as a pure state machine.
//!
//! It has no clock, no queue and no idea of the network. Settings, time and the way out come with
//! every call as a [`Ctx`]; [`Endpoint::deadline`] is when it must be called next.
//!
//! An [`Endpoint`] is made of parts. Each part is one struct with private fields, in a file or folder
//! of its own, and decides what concerns its own state; the end point takes an event from part to
//! part and does all the sending.
//!
//! | part | keeps | where |
//! |---|---|---|
//! | `Connection` | state (RFC 9293 §3.3.2), options agreed on (7323, 2018, 3168) | `connection.rs` |
//! | `Sender` | SND.UNA, SND.NXT, send window, what was written; Nagle and silly windows | `sender/` |
//! | `Receiver` | RCV.NXT, reassembly, window offered | `receiver/` |
//! | `Acks` | when to acknowledge (delayed ACKs), ECN echo (3168, 8257) | `acks.rs` |
//! | `Congestion` | cwnd, ssthresh: NewReno (5681), CUBIC (9438), DCTCP (8257), BBR v1, ECN's and idle reductions | `congestion/` |
//! | `Recovery` | NewReno (6582); with SACK scoreboard (6675), RACK-TLP (8985), PRR (6937) | `recovery/` |
//! | `Rtt` | round-trip estimate and timeout (6298) | `rtt.rs` |
//! | `Timers` | deadlines, and how often they were missed in a row | `timers.rs` |
//!
//! A part that needs to know of another gets it lent for the call. They use each other in one
//! direction only:
//!
//! ```text
//! endpoint -> recovery -> congestion -> sender -> config
//!                      -> timers     -> rtt    -> config
//!          -> connection, receiver, acks       -> config
//! ```
//!
//! Start reading at `endpoint/input.rs`, where a segment arrives, and follow it down.
//!
//! Sequence numbers are held as 64-bit offsets from the initial one, see `sequence.rs`.

mod acks;
mod config;
mod congestion;
mod connection;
mod context;
mod endpoint;
mod receiver;
mod recovery;
mod rtt;
mod segment;
mod sender;
mod sequence;
mod stats;
mod timers;

pub use config::{
    AckRules, Algorithm, Config, Counting, Idle, InitialSequence, Nagle, Recovery, RtoFloor,
};
pub use connection::State;
pub use context::{Ctx, Events, Wire};
pub use endpoint::Endpoint;
pub use stats::{Info, Stats, Waits};
