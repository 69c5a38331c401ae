// SPDX-License-Identifier: Apache-2.0
//! Samples of the delivery rate (draft-cheng-iccrg-delivery-rate-estimation): from the departure of a
//! segment to its acknowledgement, how much was delivered, and in what time.
//!
//! The draft keeps a record with each segment. Here all segments that leave at one instant share a
//! record, found by that instant, so that other congestion controls pay nothing for it.

use penstock_scenario::units::Time;
use std::collections::VecDeque;

/// What was known when segments left.
#[derive(Clone, Copy, Debug)]
struct Departure {
    at: Time,
    delivered: u64,
    delivered_at: Time,
    /// When the segment left whose acknowledgement was the last delivery.
    first_sent: Time,
    is_app_limited: bool,
}

/// A sample.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    /// Bytes per second.
    pub rate: u64,
    /// Bytes delivered when the acknowledged segment left.
    pub prior_delivered: u64,
    /// The application, not the network, limited the rate.
    pub is_app_limited: bool,
}

/// The state of the estimator.
#[derive(Debug, Default)]
pub(super) struct DeliveryRate {
    delivered: u64,
    delivered_at: Time,
    first_sent: Time,
    /// Samples are limited by the application until this is delivered; 0 for none.
    app_limited_until: u64,
    departures: VecDeque<Departure>,
}

impl DeliveryRate {
    /// Bytes delivered so far.
    pub fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Whether the application limits what is in flight.
    pub fn is_app_limited(&self) -> bool {
        self.app_limited_until != 0
    }

    /// Nothing more is to be sent, with `in_flight` bytes in flight.
    pub fn limit(&mut self, in_flight: u32) {
        self.app_limited_until = (self.delivered + in_flight as u64).max(1);
    }

    /// A segment leaves; `is_idle`: nothing is in flight before it.
    pub fn on_sent(&mut self, now: Time, is_idle: bool) {
        if is_idle {
            (self.first_sent, self.delivered_at) = (now, now);
        }
        let last = self.departures.back();
        if last.is_some_and(|last| last.at == now && last.delivered == self.delivered) {
            return;
        }
        self.departures.push_back(Departure {
            at: now,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent: self.first_sent,
            is_app_limited: self.is_app_limited(),
        });
    }

    /// An ACK delivered `bytes`, the newest of them sent at `newest`. Intervals below `min_rtt` are
    /// no samples: ACKs were compressed.
    pub fn on_ack(
        &mut self,
        now: Time,
        bytes: u32,
        newest: Option<Time>,
        min_rtt: Time,
    ) -> Option<Sample> {
        if bytes > 0 {
            self.delivered += bytes as u64;
            self.delivered_at = now;
        }
        if self.delivered > self.app_limited_until {
            self.app_limited_until = 0;
        }
        let newest = newest?;
        let after = self.departures.partition_point(|each| each.at <= newest);
        self.departures.drain(..after.saturating_sub(1));
        let of = *self.departures.front().filter(|first| first.at == newest)?;
        self.first_sent = of.at;
        let sending = of.at.saturating_sub(of.first_sent);
        let interval = sending.max(now.saturating_sub(of.delivered_at));
        if interval < min_rtt || interval.as_nanos() == 0 {
            return None;
        }
        Some(Sample {
            rate: (self.delivered - of.delivered) * 1_000_000_000 / interval.as_nanos(),
            prior_delivered: of.delivered,
            is_app_limited: of.is_app_limited,
        })
    }
}
