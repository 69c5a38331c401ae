// SPDX-License-Identifier: Apache-2.0
//! Closing (RFC 9293 §3.6), resets (§3.5.2, RFC 5961) and TIME-WAIT.

use super::config::Config;
use super::endpoint::{Endpoint, State, opt};
use super::timers::Timer;
use super::{Events, Wire};
use crate::packet::{Packet, flag};
use penstock_scenario::units::Time;

impl Endpoint {
    /// CLOSED, no timers; counters and what was delivered stay readable.
    pub(super) fn become_closed(&mut self) {
        self.state = State::Closed;
        self.rtx_at = Time::NEVER;
        self.ack_at = Time::NEVER;
        self.reassembly.clear();
        self.clear(opt::OUT_OF_ORDER);
        self.board = None;
    }

    /// Our FIN left for the first time.
    pub(super) fn on_fin_sent(&mut self) {
        self.state = match self.state {
            State::Established => State::FinWait1,
            State::CloseWait => State::LastAck,
            other => other,
        };
    }

    /// Our FIN is acknowledged.
    pub(super) fn on_fin_acked(&mut self, cfg: &Config, now: Time, events: &mut Events) {
        match self.state {
            State::FinWait1 => self.state = State::FinWait2,
            State::Closing => self.enter_time_wait(cfg, now),
            State::LastAck => {
                self.become_closed();
                events.add(Events::CLOSED);
            }
            _ => {}
        }
    }

    /// The peer's FIN arrived in order.
    pub(super) fn on_peer_fin(&mut self, cfg: &Config, now: Time, events: &mut Events) {
        self.set(opt::PEER_FIN);
        events.add(Events::PEER_CLOSED);
        match self.state {
            State::Established => self.state = State::CloseWait,
            State::FinWait1 => self.state = State::Closing,
            State::FinWait2 => self.enter_time_wait(cfg, now),
            _ => {}
        }
    }

    pub(super) fn enter_time_wait(&mut self, cfg: &Config, now: Time) {
        self.state = State::TimeWait;
        self.board = None;
        self.arm(Timer::TimeWait, now + cfg.time_wait);
    }

    pub(super) fn send_reset(&mut self, cfg: &Config, now: Time, wire: &mut impl Wire) {
        let mut reset = self.segment(self.snd_max, flag::RST | flag::ACK);
        reset.header = cfg.header;
        if self.is(opt::TIMESTAMPS) {
            self.stamp(now, &mut reset);
            reset.header += super::handshake::TIMESTAMPS_LEN;
        }
        self.stats.segments_sent += 1;
        wire.send(reset, &[]);
    }

    /// Answers a segment that belongs to no connection (RFC 9293 §3.10.7.1).
    pub(super) fn refuse(&mut self, cfg: &Config, segment: &Packet, wire: &mut impl Wire) {
        let mut reset = Packet {
            flow: self.flow,
            seq: 0,
            ack: 0,
            ts_val: 0,
            ts_ecr: 0,
            options: 0,
            payload: 0,
            window: 0,
            flags: flag::RST,
            header: cfg.header,
            hop: 0,
        };
        if segment.has(flag::ACK) {
            reset.seq = segment.ack;
        } else {
            let length = segment.payload as u32
                + segment.has(flag::SYN) as u32
                + segment.has(flag::FIN) as u32;
            reset.flags |= flag::ACK;
            reset.ack = segment.seq.wrapping_add(length);
        }
        self.stats.segments_sent += 1;
        wire.send(reset, &[]);
    }
}
