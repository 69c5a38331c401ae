// SPDX-License-Identifier: Apache-2.0
//! The receiving direction: reassembly, SACK blocks, when to acknowledge, the window offered.

use super::config::Config;
use super::endpoint::{Endpoint, opt};
use super::{Events, Wire};
use crate::packet::{Packet, SackBlock, flag};
use penstock_scenario::units::Time;

/// Payload received ahead of order.
#[derive(Debug, Default)]
pub(super) struct Reassembly {
    /// Disjoint, sorted, never touching each other.
    ranges: Vec<Range>,
    /// Counts arrivals, so that blocks can be reported latest first.
    clock: u32,
    /// A FIN received ahead of order, as the offset it occupies; 0 for none.
    fin: u64,
    /// A segment received twice, to be reported once (RFC 2883).
    duplicate: Option<(u64, u64)>,
}

#[derive(Clone, Copy, Debug)]
struct Range {
    start: u64,
    end: u64,
    touched: u32,
}

impl Reassembly {
    pub(super) fn clear(&mut self) {
        *self = Reassembly::default();
    }

    pub(super) fn note_duplicate(&mut self, start: u64, end: u64) {
        self.duplicate = Some((start, end));
    }

    pub(super) fn has_blocks(&self) -> bool {
        !self.ranges.is_empty() || self.duplicate.is_some()
    }

    /// Whether nothing waits for what comes at `next` or later: no payload, no FIN.
    fn is_settled(&self, next: u64) -> bool {
        self.ranges.is_empty() && self.fin <= next
    }

    /// Keeps `start..end`; false where all of it was there already.
    fn insert(&mut self, start: u64, end: u64) -> bool {
        self.clock += 1;
        let first = self.ranges.partition_point(|r| r.end < start);
        let last = self.ranges.partition_point(|r| r.start <= end);
        let mut merged = Range {
            start,
            end,
            touched: self.clock,
        };
        if first < last {
            let (low, high) = (self.ranges[first], self.ranges[last - 1]);
            if last == first + 1 && low.start <= start && end <= low.end {
                self.ranges[first].touched = self.clock;
                return false;
            }
            merged.start = start.min(low.start);
            merged.end = end.max(high.end);
        }
        self.ranges.splice(first..last, [merged]);
        true
    }

    /// The offset up to which everything from `next` on is there; what lies below is let go.
    fn take(&mut self, next: u64) -> u64 {
        let mut reached = next;
        let mut gone = 0;
        for range in &self.ranges {
            if range.start > reached {
                break;
            }
            reached = reached.max(range.end);
            gone += 1;
        }
        self.ranges.drain(..gone);
        reached
    }

    /// Writes SACK blocks: a duplicate (RFC 2883 §4), then the ranges, latest first (RFC 2018 §4).
    pub(super) fn blocks(&mut self, irs: u32, out: &mut [SackBlock]) -> usize {
        let block = |start: u64, end: u64| SackBlock {
            left: irs.wrapping_add(start as u32),
            right: irs.wrapping_add(end as u32),
        };
        let mut count = 0;
        if let Some((start, end)) = self.duplicate.take() {
            out[0] = block(start, end);
            count = 1;
        }
        let mut before = u32::MAX;
        while count < out.len() {
            let latest = self
                .ranges
                .iter()
                .filter(|r| r.touched < before)
                .max_by_key(|r| r.touched);
            let Some(range) = latest else { break };
            before = range.touched;
            out[count] = block(range.start, range.end);
            count += 1;
        }
        count
    }
}

impl Endpoint {
    /// Payload or FIN of an acceptable segment.
    pub(super) fn on_payload(
        &mut self,
        cfg: &Config,
        now: Time,
        segment: &Packet,
        seq: u64,
        wire: &mut impl Wire,
        events: &mut Events,
    ) {
        if self.is(opt::ECN) {
            self.on_ecn_mark(cfg, now, segment, wire);
        }
        let unlimited = seq.wrapping_add(segment.payload as u64);
        let end = unlimited.min(self.rcv_edge);
        if segment.has(flag::FIN) && end == unlimited && !self.is(opt::PEER_FIN) {
            self.reassembly.fin = end;
        }
        if seq > self.rcv_nxt && seq < u64::MAX / 2 {
            // A FIN is an octet to SACK too: behind a lost tail it tells of the loss.
            let last = end + (self.reassembly.fin == end) as u64;
            return self.on_early(cfg, now, seq, last, wire);
        }
        let before = self.rcv_nxt;
        self.rcv_nxt = self.rcv_nxt.max(end);
        let gap = self.is(opt::OUT_OF_ORDER);
        if gap {
            self.rcv_nxt = self.reassembly.take(self.rcv_nxt);
            if self.reassembly.fin != 0 {
                self.rcv_nxt = self.rcv_nxt.min(self.reassembly.fin);
            }
            if self.reassembly.is_settled(self.rcv_nxt) {
                self.clear(opt::OUT_OF_ORDER);
            }
        }
        let arrived = self.rcv_nxt - before;
        if arrived > 0 {
            events.add(Events::DELIVERED);
            self.grow_offer(cfg, arrived);
        }
        if self.reassembly.fin == self.rcv_nxt && !self.is(opt::PEER_FIN) {
            self.rcv_nxt += 1;
            self.on_peer_fin(cfg, now, events);
            return self.send_ack(cfg, now, wire);
        }
        if gap {
            // What fills a gap is acknowledged at once (RFC 5681 §4.2).
            return self.send_ack(cfg, now, wire);
        }
        self.acknowledge(cfg, now, segment.payload, wire);
    }

    /// A segment ahead of order: kept, and acknowledged at once (RFC 5681 §4.2).
    fn on_early(&mut self, cfg: &Config, now: Time, seq: u64, end: u64, wire: &mut impl Wire) {
        self.stats.out_of_order_received += 1;
        if end > seq && !self.reassembly.insert(seq, end) {
            self.stats.duplicates_received += 1;
            self.reassembly.note_duplicate(seq, end);
        }
        if !self.reassembly.is_settled(self.rcv_nxt) {
            self.set(opt::OUT_OF_ORDER);
        }
        self.quick = self.quick.max(cfg.quick_acks);
        self.clear(opt::INTERACTIVE);
        self.send_ack(cfg, now, wire);
    }

    /// Acknowledges a segment received in order, now or a little later.
    #[inline]
    pub(super) fn acknowledge(
        &mut self,
        cfg: &Config,
        now: Time,
        payload: u16,
        wire: &mut impl Wire,
    ) {
        if cfg.ack_every <= 1 {
            return self.send_ack(cfg, now, wire);
        }
        self.last_received = now;
        self.rcv_mss = self.rcv_mss.max(payload);
        if self.quick > 0 && !self.is(opt::INTERACTIVE) {
            self.quick -= 1;
            return self.send_ack(cfg, now, wire);
        }
        let owed = self.rcv_nxt - self.last_ack_sent;
        if payload == 0 || owed > (cfg.ack_every as u64 - 1) * self.rcv_mss as u64 {
            return self.send_ack(cfg, now, wire);
        }
        if self.ack_at == Time::NEVER {
            self.ack_at = now + cfg.delayed_ack;
        }
    }

    /// The window offered grows with use, up to the buffer (Linux's `rcv_ssthresh`).
    #[inline]
    pub(super) fn grow_offer(&mut self, cfg: &Config, arrived: u64) {
        if self.is(opt::WINDOW_GROWS) {
            let grown = self.rcv_space as u64 + 2 * arrived;
            self.rcv_space = grown.min(cfg.receive_buffer as u64) as u32;
            if self.rcv_space == cfg.receive_buffer {
                self.clear(opt::WINDOW_GROWS);
            }
        }
    }

    /// Right edge the buffer allows: it moves with what the application has read.
    #[inline]
    fn desired_edge(&self) -> u64 {
        let read = if self.is(opt::PAUSED) {
            self.read
        } else {
            self.rcv_nxt
        };
        read + self.rcv_space as u64
    }

    /// Whether the window may open to `edge`: by a segment or half the buffer, not less
    /// (RFC 9293 §3.8.6.2.2).
    fn is_worth_offering(&self, edge: u64) -> bool {
        let step = (self.full_mss as u64).min(self.rcv_space as u64 / 2);
        edge >= self.rcv_edge + step
    }

    /// The window field of the next segment. What was offered is never taken back.
    #[inline]
    pub(super) fn take_window(&mut self) -> u16 {
        let mut edge = self.desired_edge();
        if self.is(opt::PAUSED) && !self.is_worth_offering(edge) {
            edge = self.rcv_edge;
        }
        let offer = edge.max(self.rcv_edge).saturating_sub(self.rcv_nxt);
        let unit = (1u64 << self.rcv_scale) - 1;
        let field = ((offer + unit) >> self.rcv_scale).min(u16::MAX as u64);
        self.rcv_edge = self.rcv_edge.max(self.rcv_nxt + (field << self.rcv_scale));
        field as u16
    }

    /// Tells the peer that reading has opened the window.
    pub(super) fn offer_window(&mut self, cfg: &Config, now: Time, wire: &mut impl Wire) {
        if self.can_receive() && self.is_worth_offering(self.desired_edge()) {
            self.send_ack(cfg, now, wire);
        }
    }

    fn can_receive(&self) -> bool {
        use super::State;
        matches!(
            self.state,
            State::Established | State::FinWait1 | State::FinWait2
        )
    }
}
