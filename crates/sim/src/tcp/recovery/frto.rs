// SPDX-License-Identifier: Apache-2.0
//! F-RTO (RFC 5682 §3.1, with SACK, as Linux has it): after a timeout new data goes first, and if what
//! was sent once arrives, nothing was lost but time.

use super::Parts;
use super::delivery::Delivery;
use super::scoreboard::Scoreboard;
use crate::packet::{Packet, flag};
use crate::tcp::segment::timestamp;
use crate::tcp::sender::Sender;

/// How far the test after a timeout has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Step {
    /// None is under way: what is lost is sent again.
    #[default]
    Off,
    /// Only the first segment has left again.
    Head,
    /// It was acknowledged: new data leaves now, and what is lost waits for the next ACK.
    New,
    /// New data has left: ACKs show whether what is lost was.
    Tested,
}

/// The test, and what a needless timeout took.
#[derive(Debug, Default)]
pub(super) struct Frto {
    step: Step,
    /// Clock of timestamps at the first timeout of this repair.
    stamp: u32,
    /// Congestion window and threshold before it; `None` outside such a repair.
    before: Option<(u32, u32)>,
}

impl Frto {
    /// A timeout, before the window falls. `is_first`: it lowers the threshold. `is_new`: it begins a
    /// repair. `is_tried`: it is to be tested.
    pub fn on_timeout(&mut self, parts: &Parts, is_first: bool, is_new: bool, is_tried: bool) {
        if is_first {
            if is_new || self.before.is_none() {
                self.stamp = timestamp(parts.now);
            }
            let mss = parts.snd.mss();
            self.before = Some(parts.congestion.to_restore(parts.cfg, mss));
        }
        self.step = if is_tried { Step::Head } else { Step::Off };
    }

    /// The repair is over, or is no longer that of a timeout.
    pub fn end(&mut self) {
        (self.step, self.before) = (Step::Off, None);
    }

    /// Whether what is lost waits.
    #[inline]
    pub fn holds_lost(&self) -> bool {
        self.step == Step::New
    }

    /// Nothing new has left: true if what is lost waited for it, and no longer does.
    #[inline]
    pub fn give_up(&mut self, snd: &Sender, recover: u64) -> bool {
        let is_over = self.step == Step::New && snd.max() == recover;
        if is_over {
            self.step = Step::Off;
        }
        is_over
    }

    /// Whether an ACK shows the timeout to be needless: for a transmission before it, or
    /// for what was sent only once (`tcp_process_loss`).
    pub fn is_needless(
        &self,
        acked: u32,
        segment: &Packet,
        delivery: &Delivery,
        recover: u64,
    ) -> bool {
        let is_earlier = self.before.is_some()
            && acked > 0
            && segment.has(flag::TIMESTAMPS)
            && segment.ts_ecr != 0
            && (segment.ts_ecr.wrapping_sub(self.stamp) as i32) < 0;
        let is_original = self.step != Step::Off && delivery.has_original_up_to(recover);
        is_earlier || is_original
    }

    /// An ACK that does not; `recover` moves where new data is to show more.
    pub fn on_ack(
        &mut self,
        acked: u32,
        delivery: &Delivery,
        is_repeated: bool,
        snd: &Sender,
        recover: &mut u64,
    ) {
        if self.step == Step::New {
            self.step = Step::Tested;
        }
        match self.step {
            Step::Tested if delivery.sacked > 0 || is_repeated => self.step = Step::Off,
            Step::Head if acked > 0 && snd.una() < *recover => {
                *recover = snd.max();
                self.step = if snd.is_drained() {
                    Step::Off
                } else {
                    Step::New
                };
            }
            _ => {}
        }
    }

    /// Takes back what a needless timeout did.
    pub fn undo(&mut self, parts: &mut Parts, board: &mut Scoreboard) {
        board.forget_lost();
        parts.timers.on_answer();
        if let Some((cwnd, threshold)) = self.before {
            parts.congestion.restore(cwnd, threshold);
        }
        self.end();
    }
}
