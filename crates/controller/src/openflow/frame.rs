// SPDX-License-Identifier: Apache-2.0
//! Headers, and the messages of a stream (§7.1.1).

use crate::openflow::Error;
use penstock_sdn::codec::Input;

/// The longest message: its length has 16 bits.
pub const MAX_MESSAGE_BYTES: usize = u16::MAX as usize;

/// Bytes of a header.
pub(crate) const HEADER_BYTES: usize = 8;

/// A version of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// 1.3
    V13 = 4,
    /// 1.5
    V15 = 6,
}

impl Version {
    /// The version with this number on the wire.
    pub fn of(wire: u8) -> Option<Version> {
        [Version::V13, Version::V15]
            .into_iter()
            .find(|one| *one as u8 == wire)
    }
}

/// Types of messages, `enum ofp_type`.
pub mod kind {
    /// Begins a connection.
    pub const HELLO: u8 = 0;
    /// A request failed.
    pub const ERROR: u8 = 1;
    /// Asks whether the other side is there.
    pub const ECHO_REQUEST: u8 = 2;
    /// Answers it.
    pub const ECHO_REPLY: u8 = 3;
    /// Asks for the switch's number.
    pub const FEATURES_REQUEST: u8 = 5;
    /// Has it.
    pub const FEATURES_REPLY: u8 = 6;
    /// A packet for the controller.
    pub const PACKET_IN: u8 = 10;
    /// A port came, went or changed.
    pub const PORT_STATUS: u8 = 12;
    /// A packet of the controller.
    pub const PACKET_OUT: u8 = 13;
    /// Changes a flow table.
    pub const FLOW_MOD: u8 = 14;
    /// Asks for descriptions or counters.
    pub const MULTIPART_REQUEST: u8 = 18;
    /// Has them.
    pub const MULTIPART_REPLY: u8 = 19;
    /// Asks for an answer when all before it is done.
    pub const BARRIER_REQUEST: u8 = 20;
    /// Is that answer.
    pub const BARRIER_REPLY: u8 = 21;
    /// Sets or asks for the controller's role.
    pub const ROLE_REQUEST: u8 = 24;
    /// Has it.
    pub const ROLE_REPLY: u8 = 25;
    /// Chooses the messages that the switch sends unasked.
    pub const SET_ASYNC: u8 = 28;
}

/// The header of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// As on the wire: a HELLO may have any.
    pub version: u8,
    /// One of [`kind`], or another.
    pub kind: u8,
    /// Length of the message, bytes, this header included.
    pub length: u16,
    /// Number of the request and of its answer.
    pub xid: u32,
}

impl Header {
    fn read(mut bytes: Input<'_>) -> Option<Header> {
        Some(Header {
            version: bytes.u8()?,
            kind: bytes.u8()?,
            length: bytes.u16()?,
            xid: bytes.u32()?,
        })
    }
}

/// Cuts a stream into messages. It holds at most one incomplete message and what was pushed last.
#[derive(Clone, Debug, Default)]
pub struct Frames {
    bytes: Vec<u8>,
    /// Of `bytes`, those that were taken.
    taken: usize,
}

impl Frames {
    /// Bytes arrived.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.taken);
        self.taken = 0;
        self.bytes.extend_from_slice(bytes);
    }

    /// The next whole message: its header, and what follows it.
    ///
    /// # Errors
    /// Its length cannot be right; nothing after it can be read.
    pub fn take(&mut self) -> Result<Option<(Header, &[u8])>, Error> {
        let rest = &self.bytes[self.taken..];
        let Some(header) = Header::read(Input(rest)) else {
            return Ok(None);
        };
        let length = usize::from(header.length);
        if length < HEADER_BYTES {
            return Err(Error::Length(header.length));
        }
        let Some(message) = rest.get(..length) else {
            return Ok(None);
        };
        self.taken += length;
        Ok(Some((header, &message[HEADER_BYTES..])))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_whole_however_the_stream_is_cut() {
        let stream = [
            &[4, 2, 0, 10, 0, 0, 0, 1, 7, 8][..],
            &[6, 3, 0, 8, 0, 0, 0, 2],
        ]
        .concat();
        for piece in 1..=stream.len() {
            let mut frames = Frames::default();
            let mut found = Vec::new();
            for bytes in stream.chunks(piece) {
                frames.push(bytes);
                while let Some((header, body)) = frames.take().expect("lengths are right") {
                    found.push((header.kind, header.xid, body.to_vec()));
                }
            }
            assert_eq!(
                found,
                [(2, 1, vec![7, 8]), (3, 2, vec![])],
                "cut by {piece}"
            );
        }
    }

    #[test]
    fn a_length_below_the_header_ends_the_stream() {
        let mut frames = Frames::default();
        frames.push(&[4, 2, 0, 7, 0, 0, 0, 1]);
        assert_eq!(frames.take(), Err(Error::Length(7)));
    }
}
