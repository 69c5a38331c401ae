// SPDX-License-Identifier: Apache-2.0
//! The congestion window as the algorithms see it, and an ACK as they see it.

use penstock_scenario::units::Time;

/// The congestion window, in bytes.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(super) struct Window {
    pub cwnd: u32,
    pub ssthresh: u32,
    /// What was acknowledged towards the next segment of growth: bytes, or segments where windows are
    /// in whole segments ([`Counting::Delivered`](crate::tcp::config::Counting::Delivered)).
    pub credit: u32,
}

impl Window {
    #[inline]
    pub fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// Slow start in whole segments, up to the threshold (Linux `tcp_slow_start`); returns how many of
    /// the `segments` delivered are left for congestion avoidance.
    #[inline]
    pub fn grow_to_threshold(&mut self, segments: u32, mss: u32) -> u32 {
        let room = (self.ssthresh - self.cwnd).div_ceil(mss);
        let taken = segments.min(room);
        self.cwnd = self.cwnd.saturating_add(taken * mss);
        segments - taken
    }

    /// Congestion avoidance: a segment for every `per_segment` of the `segments` delivered. What was
    /// saved up at a slower pace counts once (Linux `tcp_cong_avoid_ai`).
    #[inline]
    pub fn grow_by_credit(&mut self, segments: u32, per_segment: u32, mss: u32) {
        let mut grown = 0;
        if self.credit >= per_segment {
            self.credit = 0;
            grown = 1;
        }
        self.credit = self.credit.saturating_add(segments);
        if self.credit >= per_segment {
            grown += self.credit / per_segment;
            self.credit %= per_segment;
        }
        self.cwnd = self.cwnd.saturating_add(grown * mss);
    }
}

/// What an ACK showed to have arrived.
#[derive(Clone, Copy, Debug)]
pub(in crate::tcp) struct Progress {
    /// Bytes by which SND.UNA moved.
    pub acked: u32,
    /// Segments newly acknowledged or SACKed; where they are not counted, of the bytes.
    pub segments: u32,
    /// The round trip measured, zero for none.
    pub sample: Time,
}

impl Progress {
    /// An ACK of `acked` bytes without SACK, in segments of `mss`.
    pub fn of_bytes(acked: u32, mss: u16) -> Progress {
        Progress {
            acked,
            segments: acked.div_ceil(mss.max(1) as u32),
            sample: Time::ZERO,
        }
    }
}

/// An ACK of new data.
pub(super) struct Acked {
    pub now: Time,
    pub bytes: u32,
    /// Segments that count: those it acknowledges, and SACKs for [`Counting::Delivered`](
    /// crate::tcp::config::Counting::Delivered).
    pub segments: u32,
    pub mss: u32,
    /// Sequence offsets: the new SND.UNA and SND.NXT.
    pub una: u64,
    pub nxt: u64,
    /// The round trip measured by this ACK, zero where it measured none.
    pub rtt: Time,
    /// Smoothed round trip.
    pub smoothed: Time,
}
