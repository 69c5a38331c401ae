// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//! The C structs of `core/` as memory that only C reads and writes.

use std::ffi::c_void;

/// A C struct, or several one after the other: aligned for any, zero at first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Memory(Box<[u64]>);

impl Memory {
    /// Words that a struct of so many bytes takes.
    pub const fn words(bytes: usize) -> usize {
        bytes.div_ceil(size_of::<u64>())
    }

    pub fn new(bytes: usize) -> Memory {
        Memory(vec![0; Memory::words(bytes)].into())
    }

    /// `first`, and behind it a struct of so many bytes.
    pub fn after(first: &Memory, bytes: usize) -> Memory {
        let mut memory = first.0.to_vec();
        memory.resize(memory.len() + Memory::words(bytes), 0);
        Memory(memory.into())
    }

    /// The struct that begins at a word. Not checked but by C's caller: packets come this way.
    pub fn at(&self, word: usize) -> *const c_void {
        debug_assert!(word <= self.0.len());
        self.0.as_ptr().wrapping_add(word).cast()
    }

    /// The same, to be written.
    pub fn at_mut(&mut self, word: usize) -> *mut c_void {
        debug_assert!(word <= self.0.len());
        self.0.as_mut_ptr().wrapping_add(word).cast()
    }

    pub fn bytes(&self) -> &[u8] {
        // SAFETY: bytes have no alignment, and any of them is valid.
        unsafe { std::slice::from_raw_parts(self.0.as_ptr().cast(), size_of_val(&*self.0)) }
    }

    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `bytes`, and any bytes make a word.
        unsafe { std::slice::from_raw_parts_mut(self.0.as_mut_ptr().cast(), size_of_val(&*self.0)) }
    }

    /// An unsigned field of 1 to 8 bytes.
    pub fn get(&self, offset: usize, bytes: usize) -> u64 {
        let mut word = [0; 8];
        word[..bytes].copy_from_slice(&self.bytes()[offset..offset + bytes]);
        u64::from_le_bytes(word)
    }

    pub fn set(&mut self, offset: usize, bytes: usize, value: u64) {
        self.bytes_mut()[offset..offset + bytes].copy_from_slice(&value.to_le_bytes()[..bytes]);
    }
}
