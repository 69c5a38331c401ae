// SPDX-License-Identifier: Apache-2.0
//! The SACK blocks of the packets in flight: few packets carry any, so they are kept apart from the
//! 32 bytes of a packet and found by a handle.

use crate::packet::{MAX_SACK_BLOCKS, Packet, SackBlock, flag};

/// The SACK blocks of one packet.
#[derive(Clone, Copy, Default)]
pub(crate) struct SackList {
    blocks: [SackBlock; MAX_SACK_BLOCKS],
    len: u8,
}

impl SackList {
    pub fn blocks(&self) -> &[SackBlock] {
        &self.blocks[..self.len as usize]
    }
}

/// Whether `packet` carries SACK blocks.
pub(super) fn are_carried(packet: &Packet) -> bool {
    packet.options != 0 && !packet.has(flag::SYN)
}

/// Block lists by handle; handle 0 is "none".
#[derive(Default)]
pub(super) struct Sacks {
    lists: Vec<SackList>,
    free: Vec<u32>,
}

impl Sacks {
    /// Stores up to [`MAX_SACK_BLOCKS`] blocks.
    pub fn put(&mut self, blocks: &[SackBlock]) -> u32 {
        let mut list = SackList::default();
        let len = blocks.len().min(MAX_SACK_BLOCKS);
        list.blocks[..len].copy_from_slice(&blocks[..len]);
        list.len = len as u8;
        match self.free.pop() {
            Some(handle) => {
                self.lists[handle as usize - 1] = list;
                handle
            }
            None => {
                self.lists.push(list);
                self.lists.len() as u32
            }
        }
    }

    /// The blocks that a packet carries.
    pub fn of(&self, packet: &Packet) -> &[SackBlock] {
        match are_carried(packet) {
            true => self.lists[packet.options as usize - 1].blocks(),
            false => &[],
        }
    }

    /// Takes the blocks out of a packet that has arrived or is lost.
    #[inline(always)]
    pub fn take_from(&mut self, packet: &Packet) -> ([SackBlock; MAX_SACK_BLOCKS], usize) {
        match self.take_list(packet) {
            Some(list) => (list.blocks, list.len as usize),
            None => Default::default(),
        }
    }

    /// The same, `None` where the packet carries none.
    #[inline(always)]
    pub fn take_list(&mut self, packet: &Packet) -> Option<SackList> {
        are_carried(packet).then(|| {
            self.free.push(packet.options);
            self.lists[packet.options as usize - 1]
        })
    }
}
