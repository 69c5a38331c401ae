// SPDX-License-Identifier: Apache-2.0
//! The clocks of an end point: one timer for what was or will be sent, one for a delayed ACK, the
//! retransmission timeout in force, and the segment whose round trip is being timed. What an expiry
//! does is decided in `endpoint/expiry.rs`.

use super::config::Config;
use super::rtt::Rtt;
use penstock_scenario::units::Time;

/// What the sender's timer is armed for; one at a time, as each excludes the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Timer {
    /// Retransmission timeout (RFC 6298).
    Retransmit,
    /// Reordering settles: RACK decides what is lost (RFC 8985 §6.2 step 5).
    Reorder,
    /// Tail loss probe (RFC 8985 §7.2).
    Probe,
    /// Zero-window probe (RFC 9293 §3.8.6.1).
    Persist,
    /// End of TIME-WAIT.
    TimeWait,
}

/// The deadlines of an end point, and how often the sender's was missed in a row.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Timers {
    /// The sender's deadline; NEVER while it is stopped.
    at: Time,
    /// When a delayed ACK is due; NEVER for none.
    ack_at: Time,
    /// One timeout before the sender's deadline as it was before [`Config::coarse`] moved it.
    since: Time,
    /// The retransmission timeout in force.
    timeout: Time,
    /// When the timed segment left; NEVER while none is timed.
    timed_at: Time,
    /// Low half of the offset that ends the timed segment.
    timed_end: u32,
    /// What the sender's timer was last armed for.
    timer: Timer,
    /// Retransmissions or probes without an answer.
    attempts: u8,
    /// Doublings of the persist timer.
    persist_backoff: u8,
    /// The ACK that waits is a compressed one: its timer counts no jiffies.
    is_compressed: bool,
}

impl Timers {
    /// All stopped; the timeout is zero before [`Timers::set_timeout`].
    pub fn new() -> Timers {
        Timers {
            at: Time::NEVER,
            ack_at: Time::NEVER,
            since: Time::ZERO,
            timeout: Time::ZERO,
            timed_at: Time::NEVER,
            timed_end: 0,
            timer: Timer::Retransmit,
            attempts: 0,
            persist_backoff: 0,
            is_compressed: false,
        }
    }

    /// When the first timer fires; [`Time::NEVER`] for none.
    #[inline]
    pub fn deadline(&self, cfg: &Config) -> Time {
        if self.is_compressed {
            return cfg.beat_after(self.at).min(self.ack_at);
        }
        cfg.beat_after(self.at.min(self.ack_at))
    }

    /// Whether an ACK that waits is due.
    pub fn is_ack_due(&self, cfg: &Config, now: Time) -> bool {
        let at = if self.is_compressed {
            self.ack_at
        } else {
            cfg.beat_after(self.ack_at)
        };
        now >= at
    }

    /// Whether the ACK that waits is compressed.
    pub fn is_ack_compressed(&self) -> bool {
        self.is_compressed
    }

    /// Lets one ACK stand for those of all segments that arrive ahead of order until `at`.
    pub fn compress_acks(&mut self, at: Time) {
        if !self.is_compressed {
            self.ack_at = at;
            self.is_compressed = true;
        }
    }

    /// Stops the sender's timer if it is due; returns what it was armed for.
    pub fn take_due(&mut self, cfg: &Config, now: Time) -> Option<Timer> {
        let is_due = now >= cfg.beat_after(self.at);
        is_due.then(|| {
            self.stop();
            self.timer
        })
    }

    /// The retransmission timeout in force, back-off included.
    #[inline]
    pub fn timeout(&self) -> Time {
        self.timeout
    }

    /// The estimate of the round trip has changed, or its back-off.
    #[inline]
    pub fn set_timeout(&mut self, cfg: &Config, rtt: &Rtt) {
        self.timeout = rtt.timeout(cfg);
    }

    /// Times the segment that ends at `end` and leaves now, unless another is being timed (one per
    /// round trip, RFC 6298 §3).
    #[inline]
    pub fn time(&mut self, end: u64, now: Time) {
        if self.timed_at == Time::NEVER {
            self.timed_at = now;
            self.timed_end = end as u32;
        }
    }

    /// When the timed segment left, if SND.UNA, now `una`, has passed it; it is timed no longer then.
    #[inline]
    pub fn take_timed(&mut self, una: u64) -> Option<Time> {
        if self.timed_at == Time::NEVER || ((una as u32).wrapping_sub(self.timed_end) as i32) < 0 {
            return None;
        }
        Some(std::mem::replace(&mut self.timed_at, Time::NEVER))
    }

    /// Karn: an ACK of the timed segment would not show which transmission it is for.
    pub fn stop_timing(&mut self) {
        self.timed_at = Time::NEVER;
    }

    /// Sets the sender's timer to fire `at` a time.
    #[inline]
    pub fn arm(&mut self, cfg: &Config, timer: Timer, at: Time, now: Time) {
        self.timer = timer;
        if at != self.at {
            self.since = at.saturating_sub(self.timeout);
        }
        self.at = cfg.coarse(at, now);
    }

    /// Sets the retransmission timer to one timeout from now.
    #[inline]
    pub fn arm_retransmit(&mut self, cfg: &Config, now: Time) {
        self.restart_retransmit(cfg, false, now);
    }

    /// The same, unless the sender's timer is running. The persist timer gives way to it.
    #[inline]
    pub fn ensure_retransmit(&mut self, cfg: &Config, now: Time) {
        if self.at == Time::NEVER || self.timer == Timer::Persist {
            self.arm_retransmit(cfg, now);
        }
    }

    /// Restarts the retransmission timer while data is in flight, else stops it (RFC 6298 §5.2,
    /// §5.3).
    #[inline]
    pub fn restart_retransmit(&mut self, cfg: &Config, is_idle: bool, now: Time) {
        let at = if is_idle {
            Time::NEVER
        } else {
            now + self.timeout
        };
        self.arm(cfg, Timer::Retransmit, at, now);
    }

    /// Arms the persist timer: the interval, one timeout at first, doubles with every probe, as the
    /// timeout does (RFC 9293 §3.8.6.1).
    pub fn arm_persist(&mut self, cfg: &Config, now: Time) {
        self.arm(cfg, Timer::Persist, now + self.persist_interval(cfg), now);
    }

    /// How long the persist timer runs.
    pub fn persist_interval(&self, cfg: &Config) -> Time {
        let shift = self.persist_backoff.min(20);
        Time(self.timeout.0.saturating_mul(1 << shift)).min(cfg.max_rto)
    }

    /// For how long the persist timer has run; zero where it does not.
    pub fn persist_wait(&self, cfg: &Config, now: Time) -> Time {
        let left = self.at.saturating_sub(now);
        match self.is(Timer::Persist) && self.is_running() {
            true => self.persist_interval(cfg).saturating_sub(left),
            false => Time::ZERO,
        }
    }

    /// The next interval of the persist timer is twice as long.
    pub fn back_off_persist(&mut self) {
        self.persist_backoff = self.persist_backoff.saturating_add(1);
    }

    /// The peer opened its window: no more probes, and the next ones start over.
    pub fn end_persist(&mut self) {
        self.stop();
        self.persist_backoff = 0;
    }

    /// Stops the sender's timer.
    #[inline]
    pub fn stop(&mut self) {
        self.at = Time::NEVER;
    }

    /// Stops both timers.
    pub fn stop_all(&mut self) {
        self.stop();
        self.on_ack_sent();
    }

    /// Moves the sender's deadline to `at` if it is earlier.
    pub fn postpone(&mut self, at: Time) {
        if at > self.at {
            self.at = at;
            self.since = at.saturating_sub(self.timeout);
        }
    }

    /// Whether the sender's timer is running.
    #[inline]
    pub fn is_running(&self) -> bool {
        self.at != Time::NEVER
    }

    /// Whether the sender's timer was last armed for `timer`.
    #[inline]
    pub fn is(&self, timer: Timer) -> bool {
        self.timer == timer
    }

    /// One timeout before the retransmission timer fires; `None` where it does not run.
    pub fn retransmit_start(&self) -> Option<Time> {
        self.is_retransmitting()
            .then(|| self.at.saturating_sub(self.timeout))
    }

    /// When the retransmission timer started to run, which is earlier where timers are coarse; `None`
    /// where it does not.
    pub fn retransmit_since(&self) -> Option<Time> {
        self.is_retransmitting().then_some(self.since)
    }

    fn is_retransmitting(&self) -> bool {
        self.is_running() && self.is(Timer::Retransmit)
    }

    /// Lets an ACK wait until `at`, unless one waits already.
    #[inline]
    pub fn delay_ack(&mut self, at: Time) {
        self.ack_at = self.ack_at.min(at);
    }

    /// Whether a delayed ACK is due by a time.
    pub fn is_ack_due_by(&self, time: Time) -> bool {
        self.ack_at <= time
    }

    /// Whether an ACK is being delayed.
    pub fn is_ack_delayed(&self) -> bool {
        self.ack_at != Time::NEVER
    }

    /// A segment left, and acknowledged all that arrived.
    #[inline]
    pub fn on_ack_sent(&mut self) {
        self.ack_at = Time::NEVER;
        self.is_compressed = false;
    }

    /// Retransmissions or probes without an answer.
    #[inline]
    pub fn attempts(&self) -> u8 {
        self.attempts
    }

    /// Counts another one, unless there were `limit` already (`u8::MAX`: none is too many); false
    /// where the peer is to be given up.
    pub fn try_again(&mut self, limit: u8) -> bool {
        if self.attempts >= limit && limit != u8::MAX {
            return false;
        }
        self.attempts = self.attempts.saturating_add(1);
        true
    }

    /// The peer answered.
    #[inline]
    pub fn on_answer(&mut self) {
        self.attempts = 0;
    }
}
