// SPDX-License-Identifier: Apache-2.0
//! The congestion window as the algorithms see it, and an ACK as they see it.

use penstock_scenario::units::Time;

/// The congestion window, in bytes.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(super) struct Window {
    pub cwnd: u32,
    pub ssthresh: u32,
    /// Bytes acknowledged towards the next segment of growth.
    pub credit: u32,
}

impl Window {
    #[inline]
    pub fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }
}

/// An ACK of new data.
pub(super) struct Acked {
    pub now: Time,
    pub bytes: u32,
    pub mss: u32,
    /// Sequence offsets: the new SND.UNA and SND.NXT.
    pub una: u64,
    pub nxt: u64,
    /// The round trip measured by this ACK, zero where it measured none.
    pub rtt: Time,
    /// Smoothed round trip.
    pub smoothed: Time,
}
