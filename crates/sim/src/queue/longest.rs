// SPDX-License-Identifier: Apache-2.0
//! Which of many queues is the longest, in constant time.
//!
//! Queues of the same length class hang in one doubly linked list; a pointer follows the highest
//! class in use. When that list empties the pointer walks down, at most as many classes as the
//! queue that left it fell: with classes of 256 bytes six steps for a full packet.

/// No queue, no class member.
pub(super) const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Node {
    class: u32,
    next: u32,
    previous: u32,
}

/// Queues by length class. Class 0 means empty and is not listed.
#[derive(Clone, Debug)]
pub(super) struct Longest {
    nodes: Vec<Node>,
    /// First queue of every class.
    heads: Vec<u32>,
    /// Highest class in use, 0 if all queues are empty.
    top: u32,
}

impl Longest {
    pub fn new() -> Longest {
        Longest {
            nodes: Vec::new(),
            heads: vec![NONE],
            top: 0,
        }
    }

    /// Adds an empty queue; its index is the count of those before it.
    pub fn add(&mut self) {
        self.nodes.push(Node {
            class: 0,
            next: NONE,
            previous: NONE,
        });
    }

    /// A queue of the highest class, the latest that came there; `None` if all are empty.
    pub fn get(&self) -> Option<u32> {
        (self.top != 0).then(|| self.heads[self.top as usize])
    }

    /// Notes that `queue` now is of `class`.
    pub fn set(&mut self, queue: u32, class: u32) {
        let Node {
            class: old,
            next,
            previous,
        } = self.nodes[queue as usize];
        if class == old {
            return;
        }
        if old != 0 {
            match previous {
                NONE => self.heads[old as usize] = next,
                _ => self.nodes[previous as usize].next = next,
            }
            if next != NONE {
                self.nodes[next as usize].previous = previous;
            }
        }
        if class as usize >= self.heads.len() {
            self.heads.resize(class as usize + 1, NONE);
        }
        let head = if class == 0 {
            NONE
        } else {
            std::mem::replace(&mut self.heads[class as usize], queue)
        };
        if head != NONE {
            self.nodes[head as usize].previous = queue;
        }
        self.nodes[queue as usize] = Node {
            class,
            next: head,
            previous: NONE,
        };
        self.top = self.top.max(class);
        while self.top != 0 && self.heads[self.top as usize] == NONE {
            self.top -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn agrees_with_a_scan(moves in prop::collection::vec((0u32..8, 0u32..20), 0..200)) {
            let mut longest = Longest::new();
            (0..8).for_each(|_| longest.add());
            let mut classes = [0u32; 8];
            for (queue, class) in moves {
                longest.set(queue, class);
                classes[queue as usize] = class;
                let highest = classes.iter().copied().max().filter(|&c| c != 0);
                prop_assert_eq!(longest.get().map(|q| classes[q as usize]), highest);
            }
        }
    }
}
