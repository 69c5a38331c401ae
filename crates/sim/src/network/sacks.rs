// SPDX-License-Identifier: Apache-2.0
//! The SACK blocks of the packets in flight: few packets carry any, so they are kept beside the
//! 32 bytes of a packet and found by a handle.

use crate::packet::{MAX_SACK_BLOCKS, Packet, SackBlock, flag};

#[derive(Clone, Copy, Default)]
pub(super) struct Entry {
    blocks: [SackBlock; MAX_SACK_BLOCKS],
    len: u8,
}

impl Entry {
    pub fn blocks(&self) -> &[SackBlock] {
        &self.blocks[..self.len as usize]
    }
}

/// Block lists by handle; handle 0 is "none".
#[derive(Default)]
pub(super) struct Sacks {
    entries: Vec<Entry>,
    free: Vec<u32>,
}

impl Sacks {
    /// Stores up to [`MAX_SACK_BLOCKS`] blocks.
    pub fn put(&mut self, blocks: &[SackBlock]) -> u32 {
        let mut entry = Entry::default();
        let len = blocks.len().min(MAX_SACK_BLOCKS);
        entry.blocks[..len].copy_from_slice(&blocks[..len]);
        entry.len = len as u8;
        match self.free.pop() {
            Some(handle) => {
                self.entries[handle as usize - 1] = entry;
                handle
            }
            None => {
                self.entries.push(entry);
                self.entries.len() as u32
            }
        }
    }

    /// Takes the blocks out of a packet that has arrived or is lost.
    #[inline(always)]
    pub fn take_from(&mut self, packet: &Packet) -> ([SackBlock; MAX_SACK_BLOCKS], usize) {
        if packet.options == 0 || packet.has(flag::SYN) {
            return Default::default();
        }
        let entry = self.take_entry(packet);
        (entry.blocks, entry.len as usize)
    }

    /// The same of a packet that carries some.
    pub fn take_entry(&mut self, packet: &Packet) -> Entry {
        let entry = self.entries[packet.options as usize - 1];
        self.free.push(packet.options);
        entry
    }
}
