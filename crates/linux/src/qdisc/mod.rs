// SPDX-License-Identifier: Apache-2.0
//! Queueing disciplines ("qdiscs") of an interface of the calling thread's network namespace.
//!
//! [`all`] and [`root`] list them with their counters and have no side effect. [`RootCounters`] is for
//! reading one many times a second. [`replace_root`] and [`delete_root`] change the root.

mod decode;
mod tbf;

use netlink_packet_core::{NLM_F_CREATE, NLM_F_ECHO, NLM_F_REPLACE};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::tc::{TcAttribute, TcHandle, TcMessage};

use crate::link;
use crate::netlink::Rtnetlink;
use crate::{Error, Result};

pub use tbf::Tbf;

/// How much a qdisc holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Bytes, headers included.
    Bytes(u32),
    /// Packets of any size.
    Packets(u32),
}

/// What a qdisc has counted. Bytes are those of frames, the Ethernet header (14 bytes) included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Sent so far, bytes.
    pub sent_bytes: u64,
    /// Sent so far, packets.
    pub sent_packets: u64,
    /// Queued now, bytes.
    pub backlog_bytes: u32,
    /// Queued now, packets.
    pub backlog_packets: u32,
    /// Dropped so far, packets; wraps.
    pub drops: u32,
}

/// A qdisc.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Qdisc {
    /// Index of its interface.
    pub interface: u32,
    /// Its number; 0 if the kernel made it.
    pub handle: u32,
    /// Number of the class that it is below; all ones for the root.
    pub parent: u32,
    /// `tbf`, `fq_codel`, `noqueue` ...
    pub kind: String,
    /// How much it holds at most, of the kinds that report it: tbf, bfifo, pfifo, netem, sfq, red, codel,
    /// fq_codel, pie, fq, fq_pie.
    pub limit: Option<Limit>,
    /// Rate of a tbf, bits per second.
    pub rate_bps: Option<u64>,
    /// What it has counted.
    pub counters: Counters,
}

impl Qdisc {
    /// Whether all packets that leave by the interface pass it.
    pub fn is_root(&self) -> bool {
        TcHandle::from(self.parent) == TcHandle::ROOT
    }

    /// Whether it is below a class of `other`.
    pub fn is_below(&self, other: &Qdisc) -> bool {
        !self.is_root() && self.parent >> 16 == other.handle >> 16
    }
}

/// All qdiscs of the interface with this index.
///
/// # Errors
/// The kernel gives no answer.
pub fn all(interface: u32) -> Result<Vec<Qdisc>> {
    let action = || format!("list the qdiscs of {}", link::label(interface));
    list(action, |qdisc| qdisc.interface == interface)
}

/// The root qdiscs of all interfaces.
///
/// # Errors
/// The kernel gives no answer.
pub fn roots() -> Result<Vec<Qdisc>> {
    list(|| "list the root qdiscs".to_owned(), Qdisc::is_root)
}

/// The kernel lists the qdiscs of every interface. `action`: what it is for, for errors.
fn list(action: impl FnOnce() -> String, is_wanted: impl Fn(&Qdisc) -> bool) -> Result<Vec<Qdisc>> {
    let message = RouteNetlinkMessage::GetQueueDiscipline(TcMessage::default());
    Rtnetlink::open()?
        .dump(message, |payload| decode::qdisc(payload).filter(&is_wanted))
        .map_err(|failure| failure.of(action()))
}

/// The root qdisc of the interface with this index.
///
/// # Errors
/// [`Error::NoQueue`] if it has none, or the interface does not exist.
pub fn root(interface: u32) -> Result<Qdisc> {
    let root = all(interface)?.into_iter().find(Qdisc::is_root);
    root.ok_or_else(|| Error::NoQueue {
        interface: link::label(interface),
    })
}

/// Makes a new qdisc of `kind`, with its default options, the root of an interface in place of the
/// present one; packets that wait there are dropped.
///
/// # Errors
/// The kernel does not know the kind, or refuses.
pub fn replace_root(interface: u32, kind: &str) -> Result<()> {
    let attributes = vec![TcAttribute::Kind(kind.to_owned())];
    replace(interface, attributes, |name| {
        format!("make {kind} the root qdisc of {name}")
    })
}

/// `action` names what is done to the interface, whose name it takes.
fn replace(
    interface: u32,
    attributes: Vec<TcAttribute>,
    action: impl FnOnce(String) -> String,
) -> Result<()> {
    let mut message = of_root(interface);
    message.attributes = attributes;
    Rtnetlink::open()?
        .change(
            RouteNetlinkMessage::NewQueueDiscipline(message),
            NLM_F_CREATE | NLM_F_REPLACE,
        )
        .map_err(|failure| failure.of(action(link::label(interface))))
}

/// Deletes the root qdisc of an interface; the kernel's default takes its place.
///
/// # Errors
/// There is only the kernel's default, or the kernel refuses.
pub fn delete_root(interface: u32) -> Result<()> {
    let message = RouteNetlinkMessage::DelQueueDiscipline(of_root(interface));
    let deleted = Rtnetlink::open()?.change(message, 0);
    deleted.map_err(|failure| {
        failure.of(format!(
            "delete the root qdisc of {}",
            link::label(interface)
        ))
    })
}

fn of_root(interface: u32) -> TcMessage {
    let mut message = TcMessage::with_index(interface as i32);
    message.header.parent = TcHandle::ROOT;
    message
}

/// Reads the counters of one interface's root qdisc, in some ten microseconds. It stays with the
/// network namespace it was opened in. `tc monitor` sees each reading, as the kernel announces it.
pub struct RootCounters {
    kernel: Rtnetlink,
    interface: u32,
    name: String,
}

impl RootCounters {
    /// Opens those of the interface `name`.
    ///
    /// # Errors
    /// There is no such interface.
    pub fn open(name: &str) -> Result<RootCounters> {
        Ok(RootCounters {
            interface: link::get(name)?.index,
            kernel: Rtnetlink::open()?,
            name: name.to_owned(),
        })
    }

    /// The counters now.
    ///
    /// # Errors
    /// [`Error::NoQueue`] if the interface has no qdisc, or only `noqueue`, which counts nothing.
    pub fn read(&mut self) -> Result<Counters> {
        let message = RouteNetlinkMessage::GetQueueDiscipline(of_root(self.interface));
        let mut root = None;
        // The kernel sends the qdisc to the asker only with ECHO.
        let answer = self.kernel.query(message, NLM_F_ECHO, |payload| {
            root = root.take().or(decode::qdisc(payload));
        });
        answer.map_err(|failure| {
            failure.of(format!("read the counters of {}'s root qdisc", self.name))
        })?;
        match root {
            Some(root) if root.kind != "noqueue" => Ok(root.counters),
            _ => Err(Error::NoQueue {
                interface: self.name.clone(),
            }),
        }
    }
}
