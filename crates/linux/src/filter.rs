// SPDX-License-Identifier: Apache-2.0
//! Filters of an interface's clsact qdisc.

use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::tc::{TcHandle, TcMessage};

use crate::Result;
use crate::netlink::Rtnetlink;

/// The hooks of clsact.
const HOOKS: [TcHandle; 2] = [
    TcHandle {
        major: u16::MAX,
        minor: TcHandle::MIN_INGRESS,
    },
    TcHandle {
        major: u16::MAX,
        minor: TcHandle::MIN_EGRESS,
    },
];

/// Whether any filter hangs on the clsact qdisc of the interface with this index; false if it has no
/// such qdisc.
///
/// # Errors
/// The kernel gives no answer.
pub fn has_any(index: u32) -> Result<bool> {
    let mut kernel = Rtnetlink::open()?;
    for hook in HOOKS {
        let mut message = TcMessage::with_index(index as i32);
        message.header.parent = hook;
        let filters = kernel.dump(RouteNetlinkMessage::GetTrafficFilter(message), |_| Some(()));
        match filters {
            Ok(filters) if filters.is_empty() => (),
            Ok(_) => return Ok(true),
            // Kernels differ in whether an absent qdisc is an error.
            Err(failure)
                if matches!(
                    failure.errno(),
                    Some(libc::EINVAL | libc::ENODEV | libc::ENOENT)
                ) => {}
            Err(failure) => {
                return Err(failure.of(format!("list the filters of interface {index}")));
            }
        }
    }
    Ok(false)
}
