// SPDX-License-Identifier: Apache-2.0
//! The last of what was inserted, each once, in its order.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;

/// Whether an order with room for `most` has so many stale entries that they are to be dropped.
pub(crate) fn is_long(entries: usize, most: usize) -> bool {
    entries > 2 * most
}

/// A map of bounded size: of more, the oldest is forgotten.
#[derive(Clone, Debug)]
pub(crate) struct Recent<K, V> {
    known: HashMap<K, (V, u64)>,
    /// With those that were inserted again or removed since.
    order: VecDeque<(K, u64)>,
    inserted: u64,
}

impl<K: Copy + Eq + Hash, V: Copy> Default for Recent<K, V> {
    fn default() -> Recent<K, V> {
        Recent {
            known: HashMap::new(),
            order: VecDeque::new(),
            inserted: 0,
        }
    }
}

impl<K: Copy + Eq + Hash, V: Copy> Recent<K, V> {
    /// Inserts a value, or replaces it. Returns those that are no more: the one before, and what is
    /// forgotten for it, as there are `most`.
    pub fn insert(&mut self, key: K, value: V, most: usize) -> Vec<V> {
        self.inserted += 1;
        self.order.push_back((key, self.inserted));
        let before = self.known.insert(key, (value, self.inserted));
        let mut gone: Vec<V> = before.into_iter().map(|(value, _)| value).collect();
        if is_long(self.order.len(), most) {
            let known = &self.known;
            self.order
                .retain(|(key, number)| known.get(key).is_some_and(|(_, last)| last == number));
        }
        while self.known.len() > most {
            let Some((oldest, number)) = self.order.pop_front() else {
                break;
            };
            if self.is_last(&oldest, number) {
                gone.extend(self.remove(&oldest));
            }
        }
        gone
    }

    pub fn get(&self, key: &K) -> Option<V> {
        self.known.get(key).map(|(value, _)| *value)
    }

    pub fn remove(&mut self, key: &K) -> Option<V> {
        self.known.remove(key).map(|(value, _)| value)
    }

    pub fn len(&self) -> usize {
        self.known.len()
    }

    pub fn keys(&self) -> impl Iterator<Item = K> {
        self.known.keys().copied()
    }

    /// How many were inserted so far.
    pub fn inserted(&self) -> u64 {
        self.inserted
    }

    /// What was inserted after so many, with the number of each.
    pub fn after(&self, number: u64) -> impl Iterator<Item = (u64, V)> {
        let first = self.order.partition_point(|(_, at)| *at <= number);
        let later = self.order.range(first..);
        later.filter_map(|(key, number)| {
            let is_last = self.is_last(key, *number);
            Some((*number, self.get(key).filter(|_| is_last)?))
        })
    }

    /// Whether a key was inserted last with this number.
    pub fn is_last(&self, key: &K, number: u64) -> bool {
        self.known.get(key).is_some_and(|(_, last)| *last == number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_goes_and_what_is_inserted_again_is_new() {
        let mut recent = Recent::default();
        for key in 1..=3 {
            assert!(recent.insert(key, 10 * key, 3).is_empty());
        }
        assert_eq!(recent.insert(1, 11, 3), [10]);
        assert_eq!(
            recent.after(1).collect::<Vec<_>>(),
            [(2, 20), (3, 30), (4, 11)]
        );
        assert_eq!(recent.insert(4, 40, 3), [20]);
        assert_eq!(recent.remove(&3), Some(30));
        assert_eq!(recent.after(0).collect::<Vec<_>>(), [(4, 11), (5, 40)]);
        assert_eq!(
            (recent.len(), recent.get(&4), recent.get(&2)),
            (2, Some(40), None)
        );
        assert_eq!(recent.after(recent.inserted()).next(), None);
    }

    #[test]
    fn its_order_is_bounded_too() {
        let mut recent = Recent::default();
        for number in 0..1000 {
            recent.insert(number % 2, number, 2);
        }
        assert!(recent.order.len() <= 4 && recent.len() == 2);
    }

    #[test]
    fn one_that_is_inserted_again_and_again_keeps_the_others() {
        let mut recent = Recent::default();
        for number in 0..1000 {
            recent.insert(number.min(3), number, 4);
        }
        assert_eq!((recent.get(&0), recent.len()), (Some(0), 4));
        let all = [(1, 0), (2, 1), (3, 2), (1000, 999)];
        assert_eq!(recent.after(0).collect::<Vec<_>>(), all);
    }
}
