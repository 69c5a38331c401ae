// SPDX-License-Identifier: Apache-2.0
//! Filters of an interface's clsact qdisc.

use netlink_packet_core::{DefaultNla, NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::tc::{TcAttribute, TcHandle, TcMessage, TcOption};

use crate::netlink::{Rtnetlink, attributes, text, u32_at};
use crate::{Result, link};

/// A hook of clsact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hook {
    /// What comes in.
    Ingress,
    /// What leaves.
    Egress,
}

impl Hook {
    const fn handle(self) -> TcHandle {
        TcHandle {
            major: u16::MAX,
            minor: match self {
                Hook::Ingress => TcHandle::MIN_INGRESS,
                Hook::Egress => TcHandle::MIN_EGRESS,
            },
        }
    }
}

/// A filter of a hook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    /// Filters of a lower priority number come first.
    pub priority: u16,
    /// Its number among those of its priority.
    pub handle: u32,
    /// The kernel's number of its eBPF program, if it has one.
    pub program: Option<u32>,
    /// Its name; empty if it has none.
    pub name: String,
}

/// Whether any filter hangs on the clsact qdisc of the interface with this index; false if it has no
/// such qdisc.
///
/// # Errors
/// The kernel gives no answer.
pub fn has_any(index: u32) -> Result<bool> {
    Ok(!all(index, Hook::Ingress)?.is_empty() || !all(index, Hook::Egress)?.is_empty())
}

/// The filters of a hook of the interface with this index in the order in which packets meet them; none
/// if it has no clsact qdisc.
///
/// # Errors
/// The kernel gives no answer.
pub fn all(index: u32, hook: Hook) -> Result<Vec<Filter>> {
    let mut message = TcMessage::with_index(index as i32);
    message.header.parent = hook.handle();
    let filters = Rtnetlink::open()?.dump(RouteNetlinkMessage::GetTrafficFilter(message), decode);
    match filters {
        Ok(filters) => Ok(filters),
        // Kernels differ in whether an absent qdisc is an error.
        Err(failure)
            if matches!(
                failure.errno(),
                Some(libc::EINVAL | libc::ENODEV | libc::ENOENT)
            ) =>
        {
            Ok(Vec::new())
        }
        Err(failure) => Err(failure.of(format!("list the filters of interface {index}"))),
    }
}

/// Length of `struct tcmsg`, with its fields `tcm_handle` and `tcm_info`.
const TCMSG: usize = 20;
const TCM_HANDLE: usize = 8;
const TCM_INFO: usize = 16;

// `linux/rtnetlink.h` and `linux/pkt_cls.h`.
const TCA_OPTIONS: u16 = 2;
const TCA_BPF_NAME: u16 = 7;
const TCA_BPF_ID: u16 = 11;

/// A filter from the payload of an RTM_NEWTFILTER message; none from that of a priority as a whole.
fn decode(payload: &[u8]) -> Option<Filter> {
    let mut filter = Filter {
        priority: (u32_at(payload, TCM_INFO)? >> 16) as u16,
        handle: u32_at(payload, TCM_HANDLE)?,
        program: None,
        name: String::new(),
    };
    let all = attributes(payload.get(TCMSG..)?);
    for options in all.filter(|attribute| attribute.kind() == TCA_OPTIONS) {
        for option in attributes(options.value()) {
            match option.kind() {
                TCA_BPF_NAME => filter.name = text(option.value()),
                TCA_BPF_ID => filter.program = u32_at(option.value(), 0),
                _ => (),
            }
        }
    }
    (filter.handle != 0).then_some(filter)
}

// `linux/pkt_cls.h` and `linux/tc_act/tc_mirred.h`.
const TCA_U32_CLASSID: u16 = 1;
const TCA_U32_SEL: u16 = 5;
const TCA_U32_ACT: u16 = 7;
const TC_U32_TERMINAL: u8 = 1;
const TCA_ACT_KIND: u16 = 1;
const TCA_ACT_OPTIONS: u16 = 2;
const TCA_MIRRED_PARMS: u16 = 2;
const TCA_EGRESS_REDIR: u32 = 1;
const TC_ACT_STOLEN: u32 = 4;

/// `ETH_P_ALL`.
const ALL_PROTOCOLS: u16 = 3;

/// Sends all packets that come in by the interface `from` to the egress of `to` instead, by a u32 filter
/// of this priority on its clsact qdisc, which is made if there is none. Other filters stay.
///
/// # Errors
/// The kernel has no such filter, or one of this priority is there.
pub fn redirect(from: u32, to: u32, priority: u16) -> Result<()> {
    let mut clsact = TcMessage::with_index(from as i32);
    clsact.header.handle = TcHandle::from(0xffff_0000);
    clsact.header.parent = TcHandle::from(0xffff_fff1);
    clsact.attributes = vec![TcAttribute::Kind("clsact".to_owned())];
    let mut kernel = Rtnetlink::open()?;
    let made = kernel.change(
        RouteNetlinkMessage::NewQueueDiscipline(clsact),
        NLM_F_CREATE | NLM_F_EXCL,
    );
    match made {
        Err(failure) if failure.errno() != Some(libc::EEXIST) => {
            return Err(failure.of(format!("add clsact to {}", link::label(from))));
        }
        _ => (),
    }
    let mut filter = TcMessage::with_index(from as i32);
    filter.header.parent = Hook::Ingress.handle();
    filter.header.info = u32::from(priority) << 16 | u32::from(ALL_PROTOCOLS.to_be());
    filter.attributes = vec![
        TcAttribute::Kind("u32".to_owned()),
        TcAttribute::Options(options(to)),
    ];
    kernel
        .change(
            RouteNetlinkMessage::NewTrafficFilter(filter),
            NLM_F_CREATE | NLM_F_EXCL,
        )
        .map_err(|failure| failure.of(format!("redirect what comes in by {}", link::label(from))))
}

/// A u32 filter that matches all packets, and sends them to an interface.
fn options(to: u32) -> Vec<TcOption> {
    // One key, whose mask is 0.
    let mut selector = [0u8; 32];
    (selector[0], selector[2]) = (TC_U32_TERMINAL, 1);
    let mut mirred = [0u8; 28];
    mirred[8..12].copy_from_slice(&TC_ACT_STOLEN.to_ne_bytes());
    mirred[20..24].copy_from_slice(&TCA_EGRESS_REDIR.to_ne_bytes());
    mirred[24..28].copy_from_slice(&to.to_ne_bytes());
    let parameters = nested(&[(TCA_MIRRED_PARMS, &mirred)]);
    let action = nested(&[(TCA_ACT_KIND, b"mirred\0"), (TCA_ACT_OPTIONS, &parameters)]);
    let option = |kind, value: &[u8]| TcOption::Other(DefaultNla::new(kind, value.to_vec()));
    vec![
        option(TCA_U32_CLASSID, &0x0001_0001u32.to_ne_bytes()),
        option(TCA_U32_SEL, &selector),
        option(TCA_U32_ACT, &nested(&[(1, &action)])),
    ]
}

/// Attributes one after the other, as the value of another.
fn nested(attributes: &[(u16, &[u8])]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (kind, value) in attributes {
        let length = 4 + value.len();
        bytes.extend((length as u16).to_ne_bytes());
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(*value);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
    }
    bytes
}
