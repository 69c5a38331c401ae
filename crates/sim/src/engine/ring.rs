// SPDX-License-Identifier: Apache-2.0
//! A growing ring of packets in flight on one link. `VecDeque` with what it costs taken out: the
//! capacity is a power of two, so that an index is a mask away and needs no check.

use super::prefetch;

/// First in, first out.
pub struct Ring<T> {
    /// Empty, or a power of two of slots.
    slots: Box<[T]>,
    /// Entries taken so far; its low bits are the head's slot.
    taken: u32,
    len: u32,
}

impl<T: Copy + Default> Default for Ring<T> {
    fn default() -> Self {
        Ring {
            slots: Box::new([]),
            taken: 0,
            len: 0,
        }
    }
}

impl<T: Copy + Default> Ring<T> {
    /// Number of entries.
    #[inline(always)]
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Whether there is no entry.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The slot `index` places behind the head.
    #[inline(always)]
    fn slot(&self, index: u32) -> usize {
        self.taken.wrapping_add(index) as usize & self.slots.len().wrapping_sub(1)
    }

    /// The entry `index` places behind the head; panics where there is none.
    #[inline(always)]
    pub fn get(&self, index: u32) -> &T {
        assert!(index < self.len);
        // SAFETY: there is an entry, so slots.len() is a power of two and the mask stays below it.
        unsafe { self.slots.get_unchecked(self.slot(index)) }
    }

    /// What [`Ring::head`] returns, if anything was ever pushed.
    #[inline(always)]
    pub fn peek(&self) -> Option<&T> {
        self.slots.get(self.slot(0))
    }

    /// The slot of the oldest entry, which holds something old where there is no entry; the caller
    /// knows that something was pushed before.
    #[inline(always)]
    pub fn head(&self) -> &T {
        &self.slots[self.slot(0)]
    }

    /// How many entries have been taken, modulo 2^32.
    #[inline(always)]
    pub fn taken(&self) -> u32 {
        self.taken
    }

    /// Asks for the memory of the oldest entry and of the one behind it.
    #[inline(always)]
    pub fn prefetch(&self) {
        let slots = self.slots.as_ptr();
        prefetch(slots.wrapping_add(self.slot(0)));
        let end = slots.wrapping_add(self.slot(1) + 1);
        prefetch(end.cast::<u8>().wrapping_sub(1));
    }

    /// Appends an entry, and lends it.
    #[inline(always)]
    pub fn push(&mut self, entry: T) -> &mut T {
        if self.len as usize == self.slots.len() {
            self.grow();
        }
        let slot = self.slot(self.len);
        self.len += 1;
        // SAFETY: slots.len() > len, so it is a power of two and the mask stays below it.
        let place = unsafe { self.slots.get_unchecked_mut(slot) };
        *place = entry;
        place
    }

    /// Takes the oldest entry; panics where there is none.
    #[inline(always)]
    pub fn pop(&mut self) -> T {
        let entry = *self.get(0);
        self.taken = self.taken.wrapping_add(1);
        self.len -= 1;
        entry
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        let mut grown = vec![T::default(); (2 * self.slots.len()).max(4)].into_boxed_slice();
        let mask = grown.len() - 1;
        for index in 0..self.len {
            grown[self.taken.wrapping_add(index) as usize & mask] = *self.get(index);
        }
        self.slots = grown;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    #[test]
    fn agrees_with_vecdeque() {
        let mut ring = Ring::default();
        let mut model = VecDeque::new();
        let mut rng = crate::rng::Rng::new(2, 0);
        for step in 0..50_000u64 {
            if rng.below(100) < 50 + 10 * (step / 10_000) && step < 30_000 || model.is_empty() {
                ring.push(step);
                model.push_back(step);
            } else {
                assert_eq!(Some(ring.pop()), model.pop_front());
            }
            assert_eq!(ring.len() as usize, model.len());
            if let Some(last) = model.back() {
                assert_eq!(ring.get(ring.len() - 1), last);
            }
        }
    }
}
