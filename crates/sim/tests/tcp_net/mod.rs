// SPDX-License-Identifier: Apache-2.0
//! Two end points over a link that loses, delays, repeats, marks and lowers windows, for the TCP tests.

use penstock_scenario::units::Time;
use penstock_sim::packet::{FlowId, Packet, SackBlock, flag};
use penstock_sim::rng::Rng;
use penstock_sim::tcp::{Config, Ctx, Endpoint, Events, State, Wire};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What the link does to packets; probabilities in 1/1000.
#[derive(Clone, Copy, Debug)]
pub struct Link {
    pub loss: u64,
    pub duplicate: u64,
    pub mark: u64,
    /// An ACK's window is lowered, every other time to zero.
    pub squeeze: u64,
    pub delay: Time,
    /// Added delay, uniform from zero: reorders.
    pub jitter: Time,
}

impl Link {
    pub const CLEAN: Link = Link {
        loss: 0,
        duplicate: 0,
        mark: 0,
        squeeze: 0,
        delay: Time::from_micros(50),
        jitter: Time::ZERO,
    };
}

const ORACLE_BYTES: u64 = 1 << 20;

struct Outbox(Vec<(Packet, Vec<SackBlock>)>);

impl Wire for Outbox {
    fn send(&mut self, segment: Packet, sack: &[SackBlock]) {
        assert_eq!(segment.hop, 0);
        assert!(segment.header >= 40);
        self.0.push((segment, sack.to_vec()));
    }
}

/// A connection between `ends[0]`, the opener, and `ends[1]`.
pub struct Net {
    pub now: Time,
    pub ends: [Endpoint; 2],
    pub cfg: [Config; 2],
    pub events: [Events; 2],
    pub written: [u64; 2],
    pub packets: u64,
    pub link: Link,
    /// Bytes that reached each end: the oracle that nothing is delivered that never came. Kept
    /// for connections of up to `ORACLE_BYTES`.
    arrived: [Vec<bool>; 2],
    flight: Vec<Option<(Packet, Vec<SackBlock>)>>,
    free: Vec<usize>,
    queue: BinaryHeap<Reverse<(Time, u64, usize)>>,
    order: u64,
    rng: Rng,
    isn: [Option<u32>; 2],
    answer_close: [bool; 2],
}

impl Net {
    pub fn new(cfg: [Config; 2], link: Link, seed: u64) -> Net {
        let mut net = Net {
            now: Time::ZERO,
            ends: [Endpoint::new(FlowId(2)), Endpoint::new(FlowId(3))],
            cfg,
            events: [Events::NONE; 2],
            written: [0; 2],
            packets: 0,
            link,
            arrived: [Vec::new(), Vec::new()],
            flight: Vec::new(),
            free: Vec::new(),
            queue: BinaryHeap::new(),
            order: 0,
            rng: Rng::new(seed, 0),
            isn: [None; 2],
            answer_close: [false; 2],
        };
        net.ends[1].listen(&net.cfg[1]);
        net.act(0, |end, ctx| {
            end.connect(ctx);
            Events::NONE
        });
        net
    }

    pub fn write(&mut self, side: usize, bytes: u64) {
        self.written[side] += bytes;
        self.act(side, |end, ctx| {
            end.write(ctx, bytes);
            Events::NONE
        });
    }

    pub fn close(&mut self, side: usize) {
        self.act(side, |end, ctx| {
            end.close(ctx);
            Events::NONE
        });
    }

    /// `side` closes once the peer has.
    pub fn close_when_peer_closes(&mut self, side: usize) {
        self.answer_close[side] = true;
    }

    fn act(&mut self, side: usize, call: impl FnOnce(&mut Endpoint, &mut Ctx<Outbox>) -> Events) {
        let mut out = Outbox(Vec::new());
        let mut ctx = Ctx {
            cfg: &self.cfg[side],
            now: self.now,
            wire: &mut out,
        };
        let events = call(&mut self.ends[side], &mut ctx);
        self.events[side].0 |= events.0;
        for (mut packet, sack) in out.0 {
            if packet.has(flag::SYN) {
                self.isn[side] = Some(packet.seq);
            }
            self.packets += 1;
            if self.rng.below(1000) < self.link.loss {
                continue;
            }
            if packet.has(flag::ECT) && self.rng.below(1000) < self.link.mark {
                packet.flags |= flag::CE;
            }
            if !packet.has(flag::SYN) && self.rng.below(1000) < self.link.squeeze {
                let window = self.rng.below(2) * packet.window as u64;
                packet.window = self.rng.below(window + 1) as u16;
            }
            let copies = 1 + (self.rng.below(1000) < self.link.duplicate) as u32;
            for _ in 0..copies {
                let jitter = Time(self.rng.below(self.link.jitter.0 + 1));
                let at = self.now + self.link.delay + jitter;
                self.flight.push(Some((packet, sack.clone())));
                self.queue
                    .push(Reverse((at, self.order, self.flight.len() - 1)));
                self.order += 1;
            }
        }
    }

    fn arrive(&mut self, packet: Packet, sack: &[SackBlock]) {
        // Flow 2 is sent by the opener and received by the other side.
        let to = if packet.flow.is_opener() { 1 } else { 0 };
        let watched = self.written[1 - to] <= ORACLE_BYTES;
        if packet.payload > 0 && watched {
            let isn = self.isn[1 - to].expect("payload follows a SYN");
            let from = packet.seq.wrapping_sub(isn).wrapping_sub(1) as usize;
            let bytes = &mut self.arrived[to];
            bytes.resize(bytes.len().max(from + packet.payload as usize), false);
            bytes[from..from + packet.payload as usize].fill(true);
            assert!(
                bytes.len() as u64 <= self.written[1 - to],
                "sent what was not written"
            );
        }
        let before = self.ends[to].delivered();
        self.act(to, |end, ctx| end.on_segment(ctx, &packet, sack));
        let after = self.ends[to].delivered();
        assert!(after >= before);
        assert!(
            !watched
                || self.arrived[to][before as usize..after as usize]
                    .iter()
                    .all(|b| *b),
            "delivered what never arrived"
        );
        if self.answer_close[to] && self.events[to].has(Events::PEER_CLOSED) {
            self.answer_close[to] = false;
            self.close(to);
        }
    }

    fn deadline(&self, side: usize) -> Time {
        self.ends[side].deadline(&self.cfg[side])
    }

    /// When something will happen next.
    fn next(&self) -> Time {
        let timer = self.deadline(0).min(self.deadline(1));
        self.queue
            .peek()
            .map_or(timer, |Reverse((at, _, _))| timer.min(*at))
    }

    /// The next packet or timer; false when nothing is left to happen.
    pub fn step(&mut self) -> bool {
        let timer = self.deadline(0).min(self.deadline(1));
        let packet = self
            .queue
            .peek()
            .map_or(Time::NEVER, |Reverse((at, _, _))| *at);
        let next = timer.min(packet);
        if next == Time::NEVER {
            return false;
        }
        assert!(next >= self.now, "a deadline in the past");
        self.now = next;
        if packet <= timer {
            let Some(Reverse((_, _, index))) = self.queue.pop() else {
                return false;
            };
            self.free.push(index);
            if let Some((packet, sack)) = self.flight[index].take() {
                self.arrive(packet, &sack);
            }
        } else {
            let side = (self.deadline(1) < self.deadline(0)) as usize;
            self.act(side, |end, ctx| end.on_timer(ctx));
            assert!(self.deadline(side) > self.now, "a timer that does not move");
        }
        true
    }

    /// Runs until nothing is left to happen, or to `limit`.
    pub fn run(&mut self, limit: Time) {
        while self.next() <= limit && self.step() {}
        self.now = self.now.max(limit);
    }

    pub fn is_closed(&self) -> bool {
        self.ends.iter().all(|end| end.state() == State::Closed)
    }
}
