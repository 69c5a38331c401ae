// SPDX-License-Identifier: Apache-2.0
//! The receiving direction's sequence space (RFC 9293 §3.3.1): what arrived, the window offered, and
//! the peer's timestamps.

mod reassembly;
mod tuning;

use super::config::{AckRules, Config};
use super::{Stats, sequence};
use crate::packet::{Packet, SackBlock, flag};
use penstock_scenario::units::Time;
use reassembly::Reassembly;
use tuning::Tuning;

/// What arrived, and how far. All positions are offsets from the peer's initial sequence number.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Receiver {
    /// Made when the first segment arrives ahead of order or twice.
    reassembly: Option<Box<Reassembly>>,
    /// Made where the window's limit may rise.
    tuning: Option<Box<Tuning>>,
    /// How far the window offered may grow now, bytes.
    limit: u32,
    /// The offset that the peer's FIN occupies; 0 before it arrived.
    fin: u64,
    /// RCV.NXT as last acknowledged (RFC 7323's Last.ACK.sent).
    acknowledged: u64,
    /// RCV.NXT: everything below it arrived.
    nxt: u64,
    /// Right edge of the window offered; never retreats.
    edge: u64,
    /// IRS.
    irs: u32,
    /// Bytes offered to the peer, as the application reads at once.
    space: u32,
    /// TS.Recent (RFC 7323 §4.3).
    ts_recent: u32,
    /// Shift of the window field offered.
    scale: u8,
    /// The window offered has not grown to the buffer yet.
    grows: bool,
    /// Payload or a FIN waits for what comes before it.
    has_gap: bool,
    /// The peer's FIN was received in order.
    peer_fin: bool,
}

/// Where a segment stood among what had arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Next in order.
    Next,
    /// At the start of a gap.
    Gap,
    /// Ahead of order.
    Early,
}

/// What an acceptable segment with payload or FIN brought.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    pub place: Place,
    /// Payload in order.
    pub delivered: bool,
    /// The window offered has grown.
    pub has_grown: bool,
    /// The peer's FIN, in order.
    pub fin: bool,
}

impl Receiver {
    /// Before any connection.
    pub fn new() -> Receiver {
        Receiver {
            reassembly: None,
            tuning: None,
            limit: 0,
            fin: 0,
            acknowledged: 0,
            nxt: 0,
            edge: 0,
            irs: 0,
            space: 0,
            ts_recent: 0,
            scale: 0,
            grows: false,
            has_gap: false,
            peer_fin: false,
        }
    }

    /// Before the peer's SYN.
    pub fn open(&mut self, cfg: &Config) {
        let space = cfg.receive_buffer.min(cfg.initial_receive_window);
        *self = Receiver {
            space,
            limit: cfg.receive_buffer,
            grows: space < cfg.receive_buffer,
            ..Receiver::new()
        };
    }

    /// The peer's SYN arrived; `timestamps`: both sides use them.
    pub fn on_syn(&mut self, syn: &Packet, scale: u8, timestamps: bool) {
        self.irs = syn.seq;
        self.nxt = 1;
        self.scale = scale;
        if timestamps {
            self.ts_recent = syn.ts_val;
        }
    }

    /// The handshake is complete; `mss`: payload of a full segment.
    pub fn establish(&mut self, cfg: &Config, mss: u16, now: Time) {
        if cfg.receive_memory < cfg.receive_buffer {
            let tuning = Tuning::new(cfg, mss, self.space, self.nxt, now);
            self.limit = tuning.first_limit();
            self.space = self.space.min(self.limit);
            self.tuning = Some(Box::new(tuning));
        }
    }

    /// The connection is gone; what was delivered stays readable.
    pub fn close(&mut self) {
        self.reassembly = None;
        self.tuning = None;
        self.fin = 0;
        self.has_gap = false;
    }

    /// Payload bytes received in order.
    #[inline]
    pub fn delivered(&self) -> u64 {
        self.nxt.saturating_sub(1 + self.peer_fin as u64)
    }

    /// RCV.NXT.
    #[inline]
    pub fn nxt(&self) -> u64 {
        self.nxt
    }

    /// Bytes that arrived and were not acknowledged.
    #[inline]
    pub fn owed(&self) -> u64 {
        self.nxt - self.acknowledged
    }

    /// A segment left, and acknowledged all that arrived.
    #[inline]
    pub fn on_acknowledged(&mut self) {
        self.acknowledged = self.nxt;
    }

    /// The acknowledgement number of a segment sent now.
    #[inline]
    pub fn ack_number(&self) -> u32 {
        sequence::wire(self.nxt, self.irs)
    }

    /// The offset of a sequence number of the peer.
    #[inline]
    pub fn offset(&self, wire: u32) -> u64 {
        sequence::offset(self.nxt, self.irs, wire)
    }

    /// Whether payload or a FIN waits for what comes before it.
    pub fn has_gap(&self) -> bool {
        self.has_gap
    }

    /// Whether a segment at `seq` is the next one in order.
    #[inline]
    pub fn is_next(&self, seq: u32) -> bool {
        seq == self.ack_number()
    }

    /// Whether the window offered takes `payload` bytes at RCV.NXT.
    #[inline]
    pub fn has_room(&self, payload: u16) -> bool {
        self.nxt + payload as u64 <= self.edge
    }

    /// RFC 9293 §3.4, table 6, but a segment that merely repeats what was received does not pass.
    pub fn is_acceptable(&self, seq: u64, length: u64) -> bool {
        let edge = self.edge.max(self.nxt);
        if length == 0 {
            // What a peer sends that has filled the window, with a FIN behind it perhaps, stands at
            // its edge: the ACK is valid (RFC 9293 §3.10.7.4 makes the allowance), and to drop it
            // on both sides would be an endless exchange. An offset "before" 0 wraps to a huge one.
            return seq >= self.nxt && seq <= edge + 1;
        }
        let end = seq.wrapping_add(length);
        self.edge > self.nxt
            && (seq < edge || sequence::is_before_start(seq))
            && end > self.nxt
            && !sequence::is_before_start(end)
    }

    /// Protection against wrapped sequence numbers (RFC 7323 §5), where timestamps are in use.
    pub fn is_outdated(&self, segment: &Packet) -> bool {
        segment.has(flag::TIMESTAMPS) && !segment.has(flag::RST) && self.is_older(segment)
    }

    fn is_older(&self, segment: &Packet) -> bool {
        (segment.ts_val.wrapping_sub(self.ts_recent) as i32) < 0
    }

    /// TS.Recent of an acceptable segment (RFC 7323 §4.3), where timestamps are in use.
    pub fn note_timestamp(&mut self, segment: &Packet, seq: u64) {
        if segment.has(flag::TIMESTAMPS) && seq <= self.acknowledged {
            self.ts_recent = segment.ts_val;
        }
    }

    /// Checks and keeps the timestamp of a segment at RCV.NXT, where timestamps are in use; false
    /// where it is missing or old.
    #[inline]
    pub fn take_timestamp(&mut self, segment: &Packet) -> bool {
        if !segment.has(flag::TIMESTAMPS) || self.is_older(segment) {
            return false;
        }
        if self.nxt <= self.acknowledged {
            self.ts_recent = segment.ts_val;
        }
        true
    }

    /// The timestamp to echo.
    #[inline]
    pub fn ts_recent(&self) -> u32 {
        self.ts_recent
    }

    /// Takes payload or FIN of an acceptable segment at `seq`; `sack`: both sides use it. Without it the window does not
    /// grow ahead of order, or the peer would not count the ACKs as duplicates (`tcp_data_queue_ofo`).
    pub fn take(
        &mut self,
        cfg: &Config,
        now: Time,
        segment: &Packet,
        seq: u64,
        sack: bool,
        stats: &mut Stats,
    ) -> Arrival {
        let whole = seq.wrapping_add(segment.payload as u64);
        let end = whole.min(self.edge);
        if segment.has(flag::FIN) && end == whole && !self.peer_fin {
            self.fin = end;
        }
        if seq > self.nxt && !sequence::is_before_start(seq) {
            // A FIN is an octet to SACK too: behind a lost tail it shows the loss.
            let last = end + (self.fin == end) as u64;
            let has_grown = self.grows
                && cfg.ack_rules == AckRules::Linux
                && sack
                && segment.payload > 0
                && self.widen(cfg, segment, segment.payload.into());
            return Arrival {
                has_grown,
                ..self.take_early(seq, last, stats)
            };
        }
        let before = self.nxt;
        self.nxt = self.nxt.max(end);
        let place = if self.has_gap {
            Place::Gap
        } else {
            Place::Next
        };
        if self.has_gap {
            self.close_gap();
        }
        let arrived = self.nxt - before;
        // What had come ahead of order has had its turn.
        let own = match cfg.ack_rules {
            AckRules::Linux => arrived.min(segment.payload.into()),
            _ => arrived,
        };
        let has_grown = arrived > 0 && self.grow_window(cfg, now, segment, own);
        let fin = self.fin == self.nxt && !self.peer_fin;
        if fin {
            self.nxt += 1;
            self.peer_fin = true;
        }
        Arrival {
            place,
            delivered: arrived > 0,
            has_grown,
            fin,
        }
    }

    /// A segment ahead of order is kept.
    fn take_early(&mut self, seq: u64, end: u64, stats: &mut Stats) -> Arrival {
        stats.out_of_order_received += 1;
        let reassembly = self.reassembly.get_or_insert_default();
        if end > seq && !reassembly.insert(seq, end) {
            stats.duplicates_received += 1;
            reassembly.note_duplicate(seq, end);
        }
        self.has_gap = !reassembly.is_empty() || self.fin > self.nxt;
        Arrival {
            place: Place::Early,
            delivered: false,
            has_grown: false,
            fin: false,
        }
    }

    /// RCV.NXT moves over what had arrived ahead of order, but not over a FIN.
    fn close_gap(&mut self) {
        let Some(reassembly) = &mut self.reassembly else {
            return;
        };
        self.nxt = reassembly.take(self.nxt);
        if self.fin != 0 {
            self.nxt = self.nxt.min(self.fin);
        }
        self.has_gap = !reassembly.is_empty() || self.fin > self.nxt;
    }

    /// Takes the next segment in order, `payload` bytes for which the window has room, while there is
    /// no gap.
    #[inline]
    pub fn take_next(&mut self, payload: u16) {
        self.nxt += payload as u64;
    }

    /// `seq..end` was received before: the next SACK blocks report it (RFC 2883).
    pub fn note_duplicate(&mut self, seq: u64, end: u64) {
        let reassembly = self.reassembly.get_or_insert_default();
        reassembly.note_duplicate(seq, end);
    }

    /// Counts an ACK of a segment ahead of order; returns how many have repeated RCV.NXT.
    pub fn count_repeat(&mut self) -> u8 {
        let nxt = self.nxt;
        self.reassembly
            .as_mut()
            .map_or(0, |reassembly| reassembly.count_repeat(nxt))
    }

    /// The round trip that what arrives shows, where the window's limit may rise; zero before the first, which
    /// timestamps never show below a millisecond.
    pub fn round_trip(&self) -> Option<Time> {
        self.tuning.as_ref().map(|tuning| tuning.round_trip())
    }

    /// Writes the SACK blocks to report; returns how many.
    pub fn sack_blocks(&mut self, out: &mut [SackBlock]) -> usize {
        match &mut self.reassembly {
            None => 0,
            Some(reassembly) => reassembly.blocks(self.irs, out),
        }
    }

    /// The window offered grows with use, up to its limit (Linux's `rcv_ssthresh`), and the limit
    /// up to the buffer; true where the window has grown by a `segment` that brought `arrived` bytes.
    #[inline]
    pub fn grow_window(&mut self, cfg: &Config, now: Time, segment: &Packet, arrived: u64) -> bool {
        self.grows && self.grow(cfg, now, segment, arrived)
    }

    fn grow(&mut self, cfg: &Config, now: Time, segment: &Packet, arrived: u64) -> bool {
        // tcp_event_data_recv does not grow it for less.
        let has_grown = arrived >= 128 && self.widen(cfg, segment, arrived);
        if let Some(tuning) = &mut self.tuning {
            let limit = tuning.on_arrival(segment, self.nxt, self.space, now);
            self.limit = self.limit.max(limit.min(cfg.receive_buffer));
        }
        self.grows = self.space != cfg.receive_buffer;
        has_grown
    }

    /// The window offered grows by twice `arrived`, by two full segments at least (`tcp_grow_window`; what was
    /// recorded with linux-3.18 is without the latter), while `segment` is not read yet; true where it has.
    fn widen(&mut self, cfg: &Config, segment: &Packet, arrived: u64) -> bool {
        let share = self
            .tuning
            .as_mut()
            .and_then(|tuning| tuning.measure(segment));
        if let Some(share) = share {
            self.limit_to(share.min(cfg.receive_buffer));
        }
        let (room, mss) = match &self.tuning {
            Some(tuning) => (self.limit.min(tuning.room_after(segment)), tuning.mss()),
            None => (self.limit, cfg.mss),
        };
        let before = self.space;
        let is_whole = cfg.ack_rules == AckRules::Linux;
        let least = if is_whole { mss as u64 } else { 0 };
        let grown = self.space as u64 + 2 * arrived.max(least);
        self.space = grown.min(room.max(before) as u64) as u32;
        self.space > before
    }

    /// Where the limit rises, what is offered counts again, as far as it allows (`tcp_set_window_clamp`).
    fn limit_to(&mut self, limit: u32) {
        let offered = (self.edge - self.acknowledged).min(limit as u64) as u32;
        self.space = if limit < self.limit {
            self.space.min(limit)
        } else {
            self.space.max(offered)
        };
        self.limit = limit;
    }

    /// Bytes offered to the peer.
    #[inline]
    pub fn space(&self) -> u32 {
        self.space
    }

    /// Whether the window offered is still smaller than the buffer.
    #[inline]
    pub fn window_grows(&self) -> bool {
        self.grows
    }

    /// The window field of a SYN or SYN-ACK, which is not scaled.
    pub fn take_syn_window(&mut self) -> u16 {
        let field = self.space.min(u16::MAX as u32) as u16;
        self.edge = self.edge.max(self.nxt + field as u64);
        field
    }

    /// The window field of the next segment. What was offered is never taken back.
    #[inline]
    pub fn take_window(&mut self) -> u16 {
        let edge = (self.nxt + self.space as u64).max(self.edge);
        let offer = edge - self.nxt;
        let unit = (1u64 << self.scale) - 1;
        let field = ((offer + unit) >> self.scale).min(u16::MAX as u64);
        self.edge = self.edge.max(self.nxt + (field << self.scale));
        field as u16
    }
}
