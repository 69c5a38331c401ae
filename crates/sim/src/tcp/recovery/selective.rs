// SPDX-License-Identifier: Apache-2.0
//! What recovery with SACK keeps: the scoreboard, and what RACK, PRR and tail loss probes know.

use super::Parts;
use super::delivery::Delivery;
use super::frto::Frto;
use super::probe::Probe;
use super::prr::Prr;
use super::rack::Rack;
use super::scoreboard::{LOST, RESENT, SACKED, Scoreboard};
use crate::packet::{Packet, SackBlock};
use crate::tcp::config::{Algorithm, Config, Recovery as Method};
use crate::tcp::segment::echoed;
use crate::tcp::sender::Sender;
use penstock_scenario::units::Time;

/// Early retransmit waits at least this long for reordering to settle (2 jiffies at 1000 Hz, Linux's
/// `tcp_pause_early_retransmit`).
const EARLY_DELAY: Time = Time::from_millis(2);

/// A segment to be sent again.
#[derive(Clone, Copy, Debug)]
pub(in crate::tcp) struct Resend {
    /// Its offset.
    pub seq: u64,
    /// Its payload, bytes.
    pub len: u16,
}

/// The answer to "what is lost and waits to be sent again?".
#[derive(Clone, Copy, Debug)]
pub(in crate::tcp) enum NextLost {
    /// Nothing.
    None,
    /// Something that the window does not allow yet.
    Blocked,
    /// This, now.
    Send(Resend),
}

/// The state of recovery with SACK.
#[derive(Debug)]
pub(super) struct Selective {
    pub board: Scoreboard,
    pub rack: Option<Rack>,
    pub prr: Option<Prr>,
    pub probe: Probe,
    pub frto: Frto,
    /// The next retransmission leaves whatever the window allows: it opens the recovery.
    pub is_forced: bool,
    /// The rescue retransmission of this recovery has left.
    pub is_rescued: bool,
}

impl Selective {
    pub fn new(cfg: &Config) -> Selective {
        Selective {
            board: Scoreboard::default(),
            rack: (cfg.recovery == Method::Rack).then(Rack::new),
            prr: (cfg.prr && cfg.congestion != Algorithm::Bbr).then(Prr::default),
            probe: Probe::default(),
            frto: Frto::default(),
            is_forced: false,
            is_rescued: false,
        }
    }

    /// Bytes in the network.
    #[inline]
    pub fn pipe(&self, snd: &Sender) -> u32 {
        self.board.pipe(snd.flight())
    }

    /// Whether nothing is SACKed, lost, sent again or probed.
    #[inline]
    pub fn is_quiet(&self) -> bool {
        self.board.is_clean() && !self.probe.is_in_flight()
    }

    /// The segment at `seq` leaves for the first time; `len` counts a FIN.
    #[inline]
    pub fn on_sent(&mut self, seq: u64, len: u16, now: Time) {
        self.board.push(seq, len, now);
        if let Some(prr) = &mut self.prr {
            prr.on_sent(len as u32);
        }
    }

    /// The segment at `index` leaves again.
    pub fn on_resent(&mut self, index: usize, now: Time) {
        self.board.mark_resent(index, now);
        if let Some(prr) = &mut self.prr {
            prr.on_sent(self.board.segment(index).len as u32);
        }
    }

    /// Forgets what the ACK that moved SND.UNA acknowledged.
    #[inline]
    pub fn acknowledge(&mut self, parts: &Parts) -> Delivery {
        let (una, now, min) = (parts.snd.una(), parts.now, parts.rtt.min());
        let mut delivery = Delivery::default();
        let rack = &mut self.rack;
        self.board.acknowledge(una, |segment, bytes| {
            delivery.add(segment, bytes);
            if let Some(rack) = rack {
                rack.on_delivered(segment, now, min);
            }
        });
        delivery
    }

    /// Takes what an ACK that moved SND.UNA by `acked` bytes delivered, and its round trip.
    pub fn take_delivery(
        &mut self,
        parts: &mut Parts,
        acked: u32,
        segment: &Packet,
        sack: &[SackBlock],
    ) -> Delivery {
        let below = self.acknowledge(parts);
        let mut all = below;
        self.take_blocks(parts, sack, &mut all);
        // The sample of the ACK itself goes before that of its SACK blocks.
        let sent = if below.is_ambiguous {
            None
        } else {
            below.oldest.or(all.oldest)
        };
        if let Some(sent) = sent {
            parts.sample(sent, all.newest);
        } else if acked > 0
            && let Some(sent) = echoed(parts.now, segment)
        {
            parts.sample(sent, None);
        }
        all
    }

    /// Marks what SACK blocks report.
    fn take_blocks(&mut self, parts: &mut Parts, sack: &[SackBlock], out: &mut Delivery) {
        let (snd, now, min) = (&*parts.snd, parts.now, parts.rtt.min());
        let (una, max) = (snd.una(), snd.max());
        for (index, block) in sack.iter().enumerate() {
            let (left, right) = (snd.offset(block.left), snd.offset(block.right));
            let is_within = |other: &SackBlock| {
                snd.offset(other.left) <= left && right <= snd.offset(other.right)
            };
            if index == 0 && (right <= una || sack.get(1).is_some_and(is_within)) {
                // RFC 2883: the first block may report a segment received twice.
                out.has_duplicate = true;
                parts.stats.spurious_retransmits += 1;
                if let Some(rack) = &mut self.rack {
                    rack.on_duplicate(una, max);
                }
            } else if left < right && right > una && right <= max {
                let rack = &mut self.rack;
                self.board.sack(left.max(una), right, |segment| {
                    out.add(segment, segment.len as u32);
                    out.sacked += segment.len as u32;
                    if let Some(rack) = rack {
                        rack.on_delivered(segment, now, min);
                    }
                });
            }
        }
    }

    /// Bytes newly found lost, and how long until RACK or early retransmit may find more. `head`:
    /// enough duplicate ACKs, or such a wait, show that the first segment is lost.
    pub fn find_losses(&mut self, parts: &Parts, is_recovering: bool, head: bool) -> (u32, Time) {
        let (cfg, rtt) = (parts.cfg, &*parts.rtt);
        let threshold = cfg.dupack_threshold;
        if let Some(rack) = &self.rack {
            let is_certain = is_recovering || self.board.sacked_segments() >= threshold as u32;
            let smoothed = rtt.smoothed(cfg);
            return rack.detect(&mut self.board, parts.now, is_certain, rtt.min(), smoothed);
        }
        let mss = parts.snd.mss() as u32;
        let head = head && !is_recovering;
        let newly = self.board.detect_by_count(threshold, mss, head);
        let is_early = newly == 0 && !is_recovering && self.may_retransmit_early(parts);
        let wait = Time(rtt.smoothed(cfg).0 / 4).max(EARLY_DELAY);
        (newly, if is_early { wait } else { Time::ZERO })
    }

    /// Whether fewer duplicates than usual mean a loss, as no more can come (RFC 5827 §3.2).
    fn may_retransmit_early(&self, parts: &Parts) -> bool {
        let (snd, board) = (&*parts.snd, &self.board);
        let room = parts.congestion.cwnd().min(snd.window());
        let may_send = snd.unsent() > 0 && room >= self.pipe(snd) + snd.mss() as u32;
        parts.cfg.early_retransmit
            && board.has_sacked()
            && board.len() < 4
            && board.sacked_segments() < board.len() as u32
            && !may_send
    }

    /// A timeout: the head is lost, and all that RACK would have waited for (RFC 8985 §6.3);
    /// without RACK everything not SACKed is. The window is one segment beyond what still flies.
    pub fn on_timeout(&mut self, parts: &mut Parts) {
        let smoothed = parts.rtt.smoothed(parts.cfg);
        let patience = self.rack.as_ref().map_or(Time::ZERO, |rack| {
            rack.patience_in_recovery(parts.rtt.min(), smoothed)
        });
        self.board.mark_lost_by_timeout(parts.now, patience);
        self.probe.end();
        self.is_forced = true;
        let window = self.pipe(parts.snd) + parts.snd.mss() as u32;
        parts.congestion.set_cwnd(window);
    }

    /// What is sent again next, as far as a window of `cwnd` bytes allows (NextSeg rules 1 and 4,
    /// RFC 6675 §4), unless pacing holds it (`is_held`).
    pub fn next_lost(&mut self, snd: &Sender, cwnd: u32, is_held: bool, now: Time) -> NextLost {
        let Some(index) = self.board.next_lost() else {
            return NextLost::None;
        };
        if is_held {
            return NextLost::Blocked;
        }
        let segment = self.board.segment(index);
        let (una, pipe) = (snd.una(), self.pipe(snd));
        let seq = una + segment.seq.wrapping_sub(una as u32) as u64;
        let room = cwnd.saturating_sub(pipe);
        if !self.is_forced && room < segment.len as u32 && pipe > 0 {
            return NextLost::Blocked;
        }
        // Of a window that has shrunk, what is left of it; the head whatever it is (Linux's
        // `__tcp_retransmit_skb`).
        let left = (una + snd.window() as u64).saturating_sub(seq);
        if left == 0 && seq != una {
            return NextLost::Blocked;
        }
        let mut len = segment.len;
        if left > 0 && left < len as u64 {
            len = left as u16;
            self.board.split(index, len);
        }
        self.is_forced = false;
        self.on_resent(index, now);
        NextLost::Send(Resend { seq, len })
    }

    /// The last segment, where it may be lost without a trace: to be sent once more in this recovery
    /// (RFC 6675's rescue retransmission).
    pub fn rescue(&mut self, snd: &Sender, now: Time) -> Option<Resend> {
        if self.rack.is_some() || self.is_rescued {
            return None;
        }
        let (index, last) = self.board.last()?;
        if last.is(SACKED | LOST | RESENT) {
            return None;
        }
        self.is_rescued = true;
        self.on_resent(index, now);
        Some(Resend {
            seq: snd.max() - last.len as u64,
            len: last.len,
        })
    }
}
