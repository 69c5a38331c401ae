// SPDX-License-Identifier: Apache-2.0
//! Messages as Ethernet frames, behind their length: Ethernet pads short frames.

use super::ETHERTYPE;
use crate::codec::{Input, Output};

/// Where frames come from: an address that no host has.
const SOURCE: [u8; 6] = [0x02, 0, 0, 0, 0x88, 0xb5];

/// The frame of a message to the guest with this address of Ethernet, whose shim takes it.
pub fn frame(guest: [u8; 6], message: &[u8]) -> Vec<u8> {
    let mut frame = [guest, SOURCE].concat();
    frame.u16(ETHERTYPE);
    frame.u16(message.len() as u16);
    frame.extend(message);
    frame
}

/// The message in what follows the header of Ethernet.
pub fn of_frame(payload: &[u8]) -> Option<&[u8]> {
    let mut input = Input(payload);
    let length = input.u16()?;
    Some(input.take(length.into())?.0)
}
