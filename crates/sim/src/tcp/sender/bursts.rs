// SPDX-License-Identifier: Apache-2.0
//! How much leaves at once, as Linux hands packets of several segments to the device.
//!
//! While the application writes, each piece of half the largest window leaves as soon as it is filled
//! (`tcp_sendmsg`, `tcp_xmit_size_goal`); what has to wait is joined and leaves in bursts
//! (`tcp_write_xmit`, `tcp_grow_skb`). So the rest of a window is filled with a short segment by a
//! burst of at least one full segment, but not by a piece of one.

use super::Sender;
use crate::tcp::config::Config;
use penstock_scenario::units::Time;

/// The most that leaves at once, bytes (GSO_MAX_SIZE).
const MAX_BURST: u32 = 65_536;
/// Segments that may always leave at once (`tcp_min_tso_segs`).
const MIN_BURST: u32 = 2;
/// With each of these the smallest round trip halves what leaves at once beyond the pacing rate
/// (`tcp_tso_rtt_log`).
const HALVING: Time = Time::from_micros(512);

/// Bytes that leave at once at most, whole segments of `mss`, where `paced` may leave in a tick of
/// the pacing rate: on a path with a round trip of less than 16 ms, more (`tcp_tso_autosize`).
pub fn largest_burst(paced: u64, min: Time, mss: u32) -> u32 {
    let halvings = (min.0 / HALVING.0).min(31);
    let bytes = paced.saturating_add((MAX_BURST >> halvings) as u64);
    let bytes = bytes.min(MAX_BURST as u64) as u32;
    (bytes / mss).max(MIN_BURST) * mss
}

/// The pieces of what is being written.
#[derive(Debug, Default)]
pub struct Pieces {
    /// Where the present one ends.
    end: u64,
    /// Length of each; 0: nothing is being written, all that waits is one piece.
    len: u32,
    /// The present one carries PSH: every second does, so that half a window never waits for an ACK
    /// (`forced_push`).
    pushes: bool,
}

impl Pieces {
    /// What is written from now on begins at SND.NXT.
    pub fn begin(&mut self, snd: &Sender) {
        let mss = snd.mss as u32;
        let half = (snd.max_window / 2).min(MAX_BURST);
        self.len = (half / mss * mss).max(mss);
        self.end = snd.nxt + self.len as u64;
        self.pushes = false;
    }

    /// All is written.
    pub fn join(&mut self) {
        self.len = 0;
    }

    /// Bytes up to the end of the present piece.
    fn left(&mut self, snd: &Sender) -> u64 {
        if self.len == 0 {
            return snd.unsent();
        }
        if snd.nxt >= self.end {
            self.end += self.len as u64;
            self.pushes = !self.pushes;
        }
        snd.unsent().min(self.end - snd.nxt)
    }

    fn push_at(&self, end: u64) -> bool {
        self.len > 0 && self.pushes && end == self.end
    }
}

/// Segments that leave together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Burst {
    /// Payload of all.
    pub len: u32,
    /// The last one carries PSH.
    pub pushes: bool,
}

/// Why nothing leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// The congestion window is full.
    Congestion,
    /// The peer's window has no room, or Nagle holds a short segment.
    Window,
}

impl Sender {
    /// Bytes from SND.NXT that the peer's window takes.
    pub fn usable(&self, cfg: &Config) -> u32 {
        self.edge(cfg).saturating_sub(self.nxt) as u32
    }

    /// The next burst as far as the peer's window, Nagle and the congestion window allow, which has
    /// `room` next to the `in_flight` bytes: at most `most`, of which half the congestion window is a
    /// bound, so that there are two in flight (`tcp_cwnd_test`). Something must be unsent.
    pub fn next_burst(
        &self,
        cfg: &Config,
        pieces: &mut Pieces,
        in_flight: u32,
        room: u32,
        most: u32,
    ) -> Result<Burst, Wait> {
        let (mss, left) = (self.mss as u64, pieces.left(self));
        let usable = self.usable(cfg) as u64;
        let first = left.min(mss);
        if room < first as u32 && in_flight > 0 {
            return Err(Wait::Congestion);
        }
        if usable < first {
            return Err(Wait::Window);
        }
        let is_held = self.holds_short(cfg, in_flight);
        let mut len = first;
        if left > mss {
            let most = (room.min(most) as u64 / mss * mss).max(mss);
            len = left.min(usable).min(most);
            if len % mss != 0 && is_held {
                len -= len % mss;
            }
        } else if left < mss && left == self.unsent() && is_held && !self.fin {
            return Err(Wait::Window);
        }
        Ok(Burst {
            len: len as u32,
            pushes: len > mss || pieces.push_at(self.nxt + len),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u32 = 1_448;

    fn segments(paced: u64, min_micros: u64) -> u32 {
        largest_burst(paced, Time::from_micros(min_micros), MSS) / MSS
    }

    /// As in a capture: ten segments in 4.46 ms are 6,341 bytes a tick, and left by fours; in 7.78 ms
    /// 3,635 bytes, and left by twos.
    #[test]
    fn long_round_trips_make_short_bursts() {
        assert_eq!(segments(6_341, 4_460), 4);
        assert_eq!(segments(3_635, 7_780), 2);
        assert_eq!(segments(0, 100_000), 2);
    }

    #[test]
    fn short_round_trips_make_long_bursts() {
        assert_eq!(segments(0, 511), 45);
        assert_eq!(segments(0, 512), 22);
        assert_eq!(segments(u64::MAX / 2, 511), 45);
    }
}
