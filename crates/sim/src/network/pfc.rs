// SPDX-License-Identifier: Apache-2.0
//! Priority flow control (IEEE 802.1Qbb): switches count what came in by each of their ports, and have the far end pause.

use penstock_scenario::units::Time;
use std::collections::VecDeque;

/// A port of a switch with flow control, as packets come in by it.
#[derive(Clone, Copy, Debug)]
pub struct Ingress {
    /// Beyond so many bytes the far end pauses.
    pub pause: u64,
    /// At so many or fewer it goes on.
    pub resume: u64,
    /// Beyond so many packets are lost.
    pub most: u64,
    /// From the switch to the far end.
    pub delay: Time,
}

/// What a port by which packets come in holds.
#[derive(Default)]
struct Held {
    rules: Option<Ingress>,
    bytes: u64,
    is_paused: bool,
}

/// The port at the far end: it sends into a switch with flow control.
#[derive(Default)]
struct Sender {
    /// Since when it pauses.
    paused: Option<Time>,
    pauses: u64,
    time: Time,
    /// What pause frames on their way will have it do.
    orders: VecDeque<bool>,
}

/// All flow control of a network.
#[derive(Default)]
pub(super) struct Pfc {
    /// By link, for the packets that came in by it.
    held: Vec<Held>,
    /// By link, for the port that feeds it.
    senders: Vec<Sender>,
    /// Frames that are to arrive: when, and at the port of which link.
    frames: Vec<(Time, u32)>,
}

impl Pfc {
    /// Packets that come in by `link` are under `rules`.
    pub fn set(&mut self, link: u32, rules: Ingress) {
        let needed = (link as usize | 1) + 1;
        if self.held.len() < needed {
            self.held.resize_with(needed, Held::default);
            self.senders.resize_with(needed, Sender::default);
        }
        self.held[link as usize].rules = Some(rules);
    }

    /// A packet of `size` bytes that came in by `link` is to be queued; false: there is no room.
    pub fn enter(&mut self, now: Time, link: u32, size: u64) -> bool {
        let Some(held) = self.held.get_mut(link as usize) else {
            return true;
        };
        let Some(rules) = held.rules else { return true };
        if held.bytes + size > rules.most {
            return false;
        }
        held.bytes += size;
        if held.bytes > rules.pause && !held.is_paused {
            held.is_paused = true;
            self.order(now, link, rules, true);
        }
        true
    }

    /// A packet that came in by `link` has left the queue.
    pub fn leave(&mut self, now: Time, link: u32, size: u64) {
        let Some(held) = self.held.get_mut(link as usize) else {
            return;
        };
        let Some(rules) = held.rules else { return };
        held.bytes = held.bytes.saturating_sub(size);
        if held.bytes <= rules.resume && held.is_paused {
            held.is_paused = false;
            self.order(now, link, rules, false);
        }
    }

    fn order(&mut self, now: Time, link: u32, rules: Ingress, pauses: bool) {
        self.senders[link as usize].orders.push_back(pauses);
        self.frames.push((now.saturating_add(rules.delay), link));
    }

    /// Whether [`Pfc::take_frames`] would return something.
    pub fn has_frames(&self) -> bool {
        !self.frames.is_empty()
    }

    /// The frames sent since the last call: when each arrives, and at the port of which link.
    pub fn take_frames(&mut self) -> Vec<(Time, u32)> {
        std::mem::take(&mut self.frames)
    }

    /// A frame arrives at the port of `link`; returns whether the port may send now.
    pub fn receive(&mut self, now: Time, link: u32) -> bool {
        let sender = &mut self.senders[link as usize];
        match sender.orders.pop_front() {
            Some(true) => {
                if sender.paused.is_none() {
                    sender.paused = Some(now);
                    sender.pauses += 1;
                }
                false
            }
            Some(false) => {
                if let Some(since) = sender.paused.take() {
                    sender.time += now - since;
                }
                true
            }
            None => false,
        }
    }

    /// Whether the port of `link` pauses.
    pub fn is_paused(&self, link: u32) -> bool {
        let sender = self.senders.get(link as usize);
        sender.is_some_and(|sender| sender.paused.is_some())
    }

    /// How often the port of `link` has paused, and for how long, until `now`; `None` where it never may.
    pub fn counters(&self, link: u32, now: Time) -> Option<(u64, Time)> {
        self.held.get(link as usize)?.rules?;
        let sender = &self.senders[link as usize];
        let under_way = sender.paused.map_or(Time::ZERO, |since| now - since);
        Some((sender.pauses, sender.time + under_way))
    }
}
