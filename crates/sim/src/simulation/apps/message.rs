// SPDX-License-Identifier: Apache-2.0
//! Messages about a connection, between the shards that simulate its ends and its path.

use super::connections::Opening;
use super::records::TransferCounters;
use crate::packet::FlowId;
use penstock_scenario::units::Time;

/// A message about a connection or a transfer.
#[derive(Clone)]
pub enum Message {
    /// This client has opened a connection.
    Opened { client: u32, opening: Opening },
    /// This client has begun a transfer on its connection, at `time`.
    Begun {
        client: u32,
        is_last: bool,
        time: Time,
    },
    /// The receiver counts no more for its record: the sender of `data` is to report its share.
    Ended { data: FlowId, record: u32 },
    /// The answer to [`Message::Ended`].
    Counted { record: u32, sent: TransferCounters },
    /// The socket that sends this flow has closed.
    Closed { flow: FlowId },
    /// A packet of this flow was lost.
    Lost { flow: FlowId },
}
