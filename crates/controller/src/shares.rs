// SPDX-License-Identifier: Apache-2.0
//! A [`Recent`] in which each guest has a share.

use crate::fabric::Place;
use crate::recent::{Recent, is_long};
use std::collections::{HashMap, VecDeque};
use std::hash::Hash;

/// What one guest has of it.
#[derive(Clone, Debug)]
struct Share<K> {
    values: usize,
    /// Its keys in the order of their insertion, with their numbers; with those that are gone since.
    order: VecDeque<(K, u64)>,
}

/// A map of bounded size, in which the oldest values of a guest make room for its new ones.
#[derive(Clone, Debug)]
pub(crate) struct Shares<K, V> {
    values: Recent<K, (V, Place)>,
    guests: HashMap<Place, Share<K>>,
}

impl<K: Copy + Eq + Hash, V: Copy> Default for Shares<K, V> {
    fn default() -> Shares<K, V> {
        Shares {
            values: Recent::default(),
            guests: HashMap::new(),
        }
    }
}

impl<K: Copy + Eq + Hash, V: Copy> Shares<K, V> {
    /// Inserts or replaces a value of a guest, of which there are `most` in all and `most_own` of the guest.
    pub fn insert(&mut self, key: K, value: V, guest: Place, most: usize, most_own: usize) {
        for (_, owner) in self.values.insert(key, (value, guest), most) {
            self.uncount(owner);
        }
        let share = self.guests.entry(guest).or_insert_with(|| Share {
            values: 0,
            order: VecDeque::new(),
        });
        share.values += 1;
        share.order.push_back((key, self.values.inserted()));
        if is_long(share.order.len(), most_own) {
            let is_there = |(key, number): &(K, u64)| self.values.is_last(key, *number);
            share.order.retain(is_there);
        }
        while let Some(share) = self.guests.get_mut(&guest)
            && share.values > most_own
            && let Some((oldest, number)) = share.order.pop_front()
        {
            if self.values.is_last(&oldest, number) {
                self.remove(&oldest);
            }
        }
    }

    /// A value and its guest.
    pub fn get(&self, key: &K) -> Option<(V, Place)> {
        self.values.get(key)
    }

    pub fn remove(&mut self, key: &K) -> Option<(V, Place)> {
        let (value, guest) = self.values.remove(key)?;
        self.uncount(guest);
        Some((value, guest))
    }

    /// All of them, in the order of their insertion.
    pub fn all(&self) -> &Recent<K, (V, Place)> {
        &self.values
    }

    fn uncount(&mut self, guest: Place) {
        if let Some(share) = self.guests.get_mut(&guest) {
            share.values -= 1;
            if share.values == 0 {
                self.guests.remove(&guest);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GUEST: Place = Place {
        datapath: 1,
        port: 1,
    };
    const OTHER: Place = Place {
        datapath: 1,
        port: 2,
    };

    #[test]
    fn a_value_that_is_inserted_again_and_again_keeps_the_others() {
        let mut shares = Shares::default();
        (0..3).for_each(|key| shares.insert(key, 0, GUEST, 8, 4));
        shares.insert(3, 0, OTHER, 8, 4);
        for value in 0..100 {
            shares.insert(2, value, GUEST, 8, 4);
            assert!(shares.guests[&GUEST].order.len() <= 9);
        }
        assert_eq!(shares.all().len(), 4);
        assert_eq!(shares.get(&0), Some((0, GUEST)));
    }

    #[test]
    fn a_guest_makes_room_for_its_own() {
        let mut shares = Shares::default();
        shares.insert(100, 0, OTHER, 8, 4);
        (0..50).for_each(|key| shares.insert(key, 0, GUEST, 8, 4));
        assert_eq!(shares.all().len(), 5);
        assert_eq!(
            (shares.get(&100), shares.get(&45)),
            (Some((0, OTHER)), None)
        );
        for key in 46..50 {
            shares.remove(&key);
        }
        assert!(!shares.guests.contains_key(&GUEST));
    }
}
