// SPDX-License-Identifier: Apache-2.0
//! Numbers of network order at the beginning of a slice.

/// Bytes that are read from the front.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a>(pub &'a [u8]);

impl<'a> Input<'a> {
    /// The next bytes.
    pub fn take(&mut self, bytes: usize) -> Option<Input<'a>> {
        let (front, rest) = self.0.split_at_checked(bytes)?;
        self.0 = rest;
        Some(Input(front))
    }

    /// As many bytes as the array has.
    pub fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (front, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*front)
    }

    /// A number of 8 bits.
    pub fn u8(&mut self) -> Option<u8> {
        self.array().map(u8::from_be_bytes)
    }

    /// A number of 16 bits.
    pub fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    /// A number of 32 bits.
    pub fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    /// A number of 64 bits.
    pub fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }

    /// A number of 32 bits as [`Output::short`] writes it.
    pub fn short(&mut self) -> Option<u32> {
        let mut value = 0;
        for shift in (0..=SHORT_BITS * 4).step_by(SHORT_BITS) {
            let byte = self.u8()?;
            let bits = u64::from(byte & !SHORT_MORE) << shift;
            value |= u32::try_from(bits).ok()?;
            if byte & SHORT_MORE == 0 {
                return Some(value);
            }
        }
        None
    }
}

/// Bits of a number in each byte of its short form, the lowest first, and the flag of all bytes but the last.
const SHORT_BITS: usize = 7;
const SHORT_MORE: u8 = 1 << SHORT_BITS;

/// Bytes that are written at the end.
pub trait Output {
    /// A number of 16 bits.
    fn u16(&mut self, value: u16);
    /// A number of 32 bits.
    fn u32(&mut self, value: u32);
    /// A number of 64 bits.
    fn u64(&mut self, value: u64);
    /// A number of 32 bits in one to five bytes: below 128 in one, below 16,384 in two.
    fn short(&mut self, value: u32);
    /// Zeros.
    fn zeros(&mut self, bytes: usize);
    /// Zeros, until what began at `start` has a multiple of 8 bytes.
    fn pad8(&mut self, start: usize);
    /// Overwrites the number of 16 bits at `at` with the bytes since `start`.
    fn set_length(&mut self, at: usize, start: usize);
}

impl Output for Vec<u8> {
    fn u16(&mut self, value: u16) {
        self.extend(value.to_be_bytes());
    }

    fn u32(&mut self, value: u32) {
        self.extend(value.to_be_bytes());
    }

    fn u64(&mut self, value: u64) {
        self.extend(value.to_be_bytes());
    }

    fn short(&mut self, mut value: u32) {
        while value >= u32::from(SHORT_MORE) {
            self.push(value as u8 | SHORT_MORE);
            value >>= SHORT_BITS;
        }
        self.push(value as u8);
    }

    fn zeros(&mut self, bytes: usize) {
        self.resize(self.len() + bytes, 0);
    }

    fn pad8(&mut self, start: usize) {
        self.zeros((self.len() - start).wrapping_neg() % 8);
    }

    fn set_length(&mut self, at: usize, start: usize) {
        let bytes = (self.len() - start) as u16;
        self[at..at + 2].copy_from_slice(&bytes.to_be_bytes());
    }
}
