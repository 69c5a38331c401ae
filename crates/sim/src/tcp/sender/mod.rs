// SPDX-License-Identifier: Apache-2.0
//! The sending direction's sequence space (RFC 9293 §3.3.1): what was written, sent and
//! acknowledged, and the window the peer offers. How long the next segment may be is in `sizing.rs`,
//! how many may leave together in `bursts.rs`.

mod bursts;
mod sizing;

pub(super) use bursts::{Pieces, Wait, largest_burst};

use super::config::Config;
use super::sequence;

/// What the application wrote, and how far it got. All positions are offsets from the initial
/// sequence number.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Sender {
    /// SND.UNA: everything below it is acknowledged.
    una: u64,
    /// SND.NXT: what is sent next. A timeout without SACK sets it back to SND.UNA.
    nxt: u64,
    /// Highest SND.NXT ever: what lies below it was sent before.
    max: u64,
    /// After the last byte written.
    end: u64,
    /// ISS.
    iss: u32,
    /// SND.WND, bytes.
    window: u32,
    /// Largest send window the peer ever offered.
    max_window: u32,
    /// By how much SND.UNA last moved.
    advance: u32,
    /// Payload of a full segment in force.
    mss: u16,
    /// Shift of the peer's window field.
    scale: u8,
    /// A FIN follows what was written.
    fin: bool,
    /// [`Sender::take_all_acked`] has not returned true yet for what was written.
    unreported: bool,
    /// MSS as negotiated; `mss` may be less ([`Config::half_window_mss`]).
    full_mss: u16,
    /// Segments sent, all kinds.
    segments_sent: u32,
    /// Low half of the sequence number of the segment that last updated the send window (SND.WL1).
    wl1: u32,
    /// Payload bytes sent, retransmissions included.
    bytes_sent: u64,
    /// End of the last short segment sent (Minshall).
    short_end: u64,
}

impl Sender {
    /// Nothing written.
    pub fn new() -> Sender {
        Sender {
            una: 0,
            nxt: 0,
            max: 0,
            end: 1,
            iss: 0,
            window: 0,
            max_window: 0,
            advance: 0,
            mss: 0,
            scale: 0,
            fin: false,
            unreported: false,
            full_mss: 0,
            segments_sent: 0,
            bytes_sent: 0,
            wl1: 0,
            short_end: 0,
        }
    }

    /// Starts at `iss`. What was written before the first connection is kept; a past connection
    /// leaves its counters only.
    pub fn open(&mut self, iss: u32) {
        let is_first = self.max == 0;
        *self = Sender {
            end: if is_first { self.end } else { 1 },
            fin: is_first && self.fin,
            iss,
            segments_sent: self.segments_sent,
            bytes_sent: self.bytes_sent,
            ..Sender::new()
        };
    }

    /// Appends `bytes` to what is to be sent; false after [`Sender::finish`].
    pub fn write(&mut self, bytes: u64) -> bool {
        if self.fin || bytes == 0 {
            return false;
        }
        self.end = self.end.saturating_add(bytes).min(u64::MAX / 2);
        self.unreported = true;
        true
    }

    /// Lets a FIN follow what was written.
    pub fn finish(&mut self) {
        self.fin = true;
    }

    /// Takes [`Sender::finish`] back; returns whether it was called.
    pub fn withhold_fin(&mut self) -> bool {
        std::mem::take(&mut self.fin)
    }

    /// Payload bytes written.
    pub fn written(&self) -> u64 {
        self.end - 1
    }

    /// Payload bytes acknowledged.
    pub fn acked(&self) -> u64 {
        self.una.min(self.end).saturating_sub(1)
    }

    /// Segments sent, all kinds.
    pub fn segments_sent(&self) -> u64 {
        self.segments_sent.into()
    }

    /// Payload bytes sent, retransmissions included.
    pub fn bytes_sent(&self) -> u64 {
        self.bytes_sent
    }

    /// Counts a segment that leaves with `payload` bytes.
    #[inline]
    pub fn count(&mut self, payload: u16) {
        self.segments_sent += 1;
        self.bytes_sent += payload as u64;
    }

    /// SND.UNA.
    #[inline]
    pub fn una(&self) -> u64 {
        self.una
    }

    /// SND.NXT.
    #[inline]
    pub fn nxt(&self) -> u64 {
        self.nxt
    }

    /// The highest SND.NXT so far.
    #[inline]
    pub fn max(&self) -> u64 {
        self.max
    }

    /// SND.WND, bytes.
    #[inline]
    pub fn window(&self) -> u32 {
        self.window
    }

    /// Payload of a full segment, bytes.
    #[inline]
    pub fn mss(&self) -> u16 {
        self.mss
    }

    /// By how much SND.UNA last moved.
    pub fn last_advance(&self) -> u32 {
        self.advance
    }

    /// The number on the wire of `offset`.
    #[inline]
    pub fn wire(&self, offset: u64) -> u32 {
        sequence::wire(offset, self.iss)
    }

    /// The offset of an acknowledgement number or an edge of a SACK block.
    #[inline]
    pub fn offset(&self, wire: u32) -> u64 {
        sequence::offset(self.una, self.iss, wire)
    }

    /// By how much the acknowledgement number `ack` is beyond SND.UNA, modulo 2^32.
    #[inline]
    pub fn distance(&self, ack: u32) -> u32 {
        ack.wrapping_sub(sequence::wire(self.una, self.iss))
    }

    /// Whether `ack` acknowledges the SYN and nothing else.
    pub fn is_ack_of_syn(&self, ack: u32) -> bool {
        ack == self.iss.wrapping_add(1)
    }

    /// Bytes between SND.UNA and SND.NXT.
    #[inline]
    pub fn flight(&self) -> u32 {
        (self.nxt - self.una) as u32
    }

    /// Bytes sent and not acknowledged, wherever SND.NXT is.
    #[inline]
    pub fn outstanding(&self) -> u32 {
        (self.max - self.una) as u32
    }

    /// Whether all that was sent is acknowledged.
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.una == self.max
    }

    /// Whether what leaves next was sent before.
    #[inline]
    pub fn is_repeating(&self) -> bool {
        self.nxt < self.max
    }

    /// Bytes from SND.NXT to the last one written.
    #[inline]
    pub fn unsent(&self) -> u64 {
        self.end.saturating_sub(self.nxt)
    }

    /// Whether nothing is left to send at SND.NXT, not even a FIN.
    pub fn is_drained(&self) -> bool {
        self.nxt >= self.end + self.fin as u64
    }

    /// Whether all payload is sent and the FIN is not.
    #[inline]
    pub fn is_fin_due(&self) -> bool {
        self.fin && self.nxt == self.end
    }

    /// Whether `end`, the offset after a segment, is the end of what was written.
    #[inline]
    pub fn is_end(&self, end: u64) -> bool {
        end >= self.end
    }

    /// Whether a FIN goes with the last byte.
    #[inline]
    pub fn is_finishing(&self) -> bool {
        self.fin
    }

    /// Whether the peer has acknowledged our FIN.
    pub fn is_fin_acked(&self) -> bool {
        self.fin && self.una > self.end
    }

    /// Whether our FIN has left.
    #[inline]
    pub fn is_fin_sent(&self) -> bool {
        self.max > self.end
    }

    /// The SYN left: it is the first octet of the sequence space.
    pub fn on_syn_sent(&mut self) {
        self.nxt = 1;
        self.max = 1;
    }

    /// The SYN is acknowledged by a segment that offers `field`; the window in a SYN is not scaled.
    pub fn on_syn_acked(&mut self, field: u16, is_scaled: bool) {
        self.una = 1;
        self.window = (field as u32) << if is_scaled { self.scale } else { 0 };
    }

    /// What the handshake agreed on: the payload of a full segment, and the scale of the peer's
    /// window.
    pub fn negotiate(&mut self, mss: u16, scale: u8) {
        self.full_mss = mss;
        self.mss = mss;
        self.scale = scale;
    }

    /// SND.UNA moves to `ack`; returns by how much.
    #[inline]
    pub fn acknowledge(&mut self, ack: u64) -> u32 {
        self.advance = (ack - self.una) as u32;
        self.una = ack;
        self.nxt = self.nxt.max(ack);
        self.advance
    }

    /// Whether all that was written is acknowledged; true once only.
    #[inline]
    pub fn take_all_acked(&mut self) -> bool {
        let is_news = self.una >= self.end && self.unreported;
        if is_news {
            self.unreported = false;
        }
        is_news
    }

    /// The window a segment's field stands for.
    #[inline]
    pub fn scaled(&self, field: u16) -> u32 {
        (field as u32) << self.scale
    }

    /// SND.WND, where the segment is newer than the last that set it (RFC 9293 §3.10.7.4). `seq`
    /// and `ack` are the segment's, `rcv_nxt` is RCV.NXT. True where the window has changed.
    pub fn update_window(
        &mut self,
        cfg: &Config,
        field: u16,
        seq: u64,
        ack: u64,
        rcv_nxt: u64,
    ) -> bool {
        let is_early = sequence::is_before_start(seq);
        let is_after_wl1 = (seq as u32).wrapping_sub(self.wl1) as i32 >= 0;
        let is_newer = is_after_wl1 && seq >= rcv_nxt && !is_early;
        if ack == self.una && !is_newer {
            return false;
        }
        let window = self.scaled(field);
        let repeats = ack == self.una && seq as u32 == self.wl1;
        if cfg.repeats_only_open && repeats && window < self.window && window > 0 {
            return false;
        }
        if is_after_wl1 && !is_early {
            self.note_update(seq);
        }
        if window == self.window {
            return false;
        }
        self.set_window(cfg, window);
        true
    }

    /// An expected segment at `seq` counts as one that updated the window, even to the same.
    #[inline]
    pub fn note_update(&mut self, seq: u64) {
        self.wl1 = seq as u32;
    }

    /// Takes `window` for SND.WND.
    #[inline]
    pub fn set_window(&mut self, cfg: &Config, window: u32) {
        self.window = window;
        self.note_window(cfg);
    }

    /// Keeps the largest window seen, and the MSS Linux derives from it: half, where the window is
    /// above the default MSS of 536 (`tcp_bound_to_half_wnd`).
    #[inline]
    pub fn note_window(&mut self, cfg: &Config) {
        if self.window <= self.max_window {
            return;
        }
        self.max_window = self.window;
        if cfg.half_window_mss {
            let bound = if self.max_window > 536 {
                self.max_window / 2
            } else {
                self.max_window
            };
            self.mss = (self.full_mss as u32).min(bound.max(28)) as u16;
        }
    }

    /// SND.NXT moves to `end`.
    #[inline]
    pub fn on_sent(&mut self, end: u64) {
        self.nxt = end;
        self.max = self.max.max(end);
    }

    /// All that is in flight is to be sent again.
    pub fn go_back(&mut self) {
        self.nxt = self.una;
    }
}
