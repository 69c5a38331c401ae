// SPDX-License-Identifier: Apache-2.0
//! What Penstock's programs ask of Linux, behind one small, safe, synchronous interface.
//!
//! | module | answers |
//! |---|---|
//! | [`link`] | interfaces: look up, list, create, change, delete; addresses |
//! | [`monitor`] | changes of interfaces as they happen |
//! | [`ethtool`] | an interface's speed |
//! | [`qdisc`] | queueing disciplines: list, counters, replace and delete the root, [`qdisc::Tbf`] |
//! | [`filter`] | filters of an interface's clsact qdisc: list, add a redirect |
//! | [`netns`] | network namespaces: create, open, enter and leave |
//! | [`scrape`] | metrics over HTTP |
//! | [`counters`] | the kernel's own counters of TCP and IP (`nstat`) |
//! | [`socket`] | options of a TCP socket that Rust's libraries lack, and its [`socket::TcpInfo`] |
//! | [`text`] | texts that are read up to a bound |
//! | [`agent_folders`] | where `penstockd` has its pins and locks |
//! | [`note!`] | lines on stderr, whether or not they are read |
//! | [`Error`] | why the kernel refused, with interface and remedy, in one line |
//! | `testkit` | for tests: networks of namespaces, bounded processes, a bpffs (feature `testkit`) |
//!
//! Start at [`link`] and [`qdisc`]; both speak rtnetlink through the private module `netlink`.
//! Every function acts in the network namespace of the **calling thread** ([`netns::NetNs::enter`]).
//! None uses `/sys/class/net`, which shows the namespace that it was mounted in.
//!
//! Libraries, and why these:
//! - `netlink-packet-route` and `-core` encode requests and name the kernel's structs. Both are kept
//!   by the rust-netlink project and have no runtime. Replies are decoded attribute by attribute, as
//!   the library's whole-message decoders fail on one attribute that a newer kernel changed.
//! - `rustix` makes every other system call: safe, without libc's errno, and already linked by clap.
//!   Its netlink sockets make `netlink-sys` unnecessary.
//! - `rtnetlink` is asynchronous only, and no program here has an async runtime. `neli` starts a
//!   thread for its router and has no typed links. `nix` and `socket2` would add to rustix only the
//!   few socket options in [`socket`].

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod agent_folders;
pub mod counters;
mod error;
pub mod ethtool;
pub mod filter;
pub mod link;
pub mod monitor;
mod netlink;
pub mod netns;
mod note;
pub mod qdisc;
pub mod scrape;
pub mod socket;
#[cfg(feature = "testkit")]
pub mod testkit;
pub mod text;

pub use error::{Error, Result};
