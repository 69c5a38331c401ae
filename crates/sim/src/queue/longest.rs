// SPDX-License-Identifier: Apache-2.0
//! Which of many queues is the longest, in amortized constant time, and nearly free while no one asks.
//!
//! Queues hang in a doubly linked list per length class, under a class no lower than their own: a
//! queue that grows beyond its class moves up at once, one that shrinks stays until someone asks for
//! the longest, and is then moved down. Every step down undoes a step up that an arrival has paid.

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
    /// No class above is in use.
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

    /// Notes that `queue` has grown to `class`.
    #[inline]
    pub fn grew(&mut self, queue: u32, class: u32) {
        if class > self.nodes[queue as usize].class {
            self.list(queue, class);
        }
    }

    /// A queue of the highest class, the latest that came there; `None` if all are empty.
    /// `class_of` returns the true class of a queue.
    pub fn find(&mut self, class_of: impl Fn(u32) -> u32) -> Option<u32> {
        while self.top != 0 {
            let queue = self.heads[self.top as usize];
            if queue == NONE {
                self.top -= 1;
                continue;
            }
            let class = class_of(queue);
            if class == self.top {
                return Some(queue);
            }
            self.list(queue, class);
        }
        None
    }

    /// Moves `queue` to the list of `class`.
    fn list(&mut self, queue: u32, class: u32) {
        let Node {
            class: old,
            next,
            previous,
        } = self.nodes[queue as usize];
        if old != 0 {
            match previous {
                NONE => self.heads[old as usize] = next,
                _ => self.nodes[previous as usize].next = next,
            }
            if next != NONE {
                self.nodes[next as usize].previous = previous;
            }
        }
        let head = match class {
            0 => NONE,
            _ => self.put_first(queue, class),
        };
        self.nodes[queue as usize] = Node {
            class,
            next: head,
            previous: NONE,
        };
    }

    /// Makes `queue` the head of a class; returns the head before.
    fn put_first(&mut self, queue: u32, class: u32) -> u32 {
        if class as usize >= self.heads.len() {
            self.heads.resize(class as usize + 1, NONE);
        }
        self.top = self.top.max(class);
        let head = std::mem::replace(&mut self.heads[class as usize], queue);
        if head != NONE {
            self.nodes[head as usize].previous = queue;
        }
        head
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn agrees_with_a_scan(
            moves in prop::collection::vec((0u32..8, 0u32..20, any::<bool>()), 0..200),
        ) {
            let mut longest = Longest::new();
            (0..8).for_each(|_| longest.add());
            let mut classes = [0u32; 8];
            for (queue, class, ask) in moves {
                classes[queue as usize] = class;
                longest.grew(queue, class);
                if ask {
                    let found = longest.find(|q| classes[q as usize]);
                    let highest = classes.iter().copied().max().filter(|&c| c != 0);
                    prop_assert_eq!(found.map(|q| classes[q as usize]), highest);
                }
            }
        }
    }
}
