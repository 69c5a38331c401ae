// SPDX-License-Identifier: Apache-2.0
//! The numbers of a port, the same on the screen, as plain text and as JSON.

use serde::Serialize;

use super::history::History;
use crate::attach::grant;
use crate::format::{bytes, count, percent, rate, scaled, sparkline};
use crate::port::config::OBSERVE;
use crate::port::counters::Named;

/// The numbers of a port.
#[derive(Clone, Debug, Serialize)]
pub struct View {
    /// Its name.
    pub interface: String,
    /// The scheme attached to it.
    pub scheme: String,
    /// Whether its programs are on both sides of the interface.
    pub attached: bool,
    /// Whether ACKs are rewritten now.
    pub acting: bool,
    /// Whether packets pass untouched because of `penstockd pause`.
    pub paused: bool,
    /// In how many seconds a pause ends by itself, if it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resumes_in_s: Option<f64>,
    /// The sides on which packets pass unseen by its programs.
    pub blind: Vec<&'static str>,
    /// Age of the heartbeat, seconds.
    pub heartbeat_age_s: f64,
    /// Size of its queue.
    pub buffer_bytes: u32,
    /// Longest queue between readings, the newest last: each tenth of a second, if there are few ports.
    pub peaks_bytes: Vec<u32>,
    /// The time that these cover, seconds.
    pub peaks_span_s: f64,
    /// Flows counted now.
    pub flows: u32,
    /// Window granted to each flow, if windows are limited.
    pub window_bytes: Option<u32>,
    /// Its credit, if its windows are that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credit: Option<grant::Status>,
    /// Rates per second of all counters, of `drops` where they are known, and of grants where windows are credit, by name.
    pub rates: Named<f64>,
}

impl View {
    /// The view of a port's history.
    pub fn of(history: &History) -> View {
        let now = &history.now;
        View {
            interface: now.interface.clone(),
            scheme: now.scheme.clone(),
            attached: !now.is_off,
            acting: now.is_acting(),
            paused: now.is_paused(),
            resumes_in_s: now.resumes_in_s(),
            blind: now.blind.clone(),
            heartbeat_age_s: now.heartbeat_age_s,
            buffer_bytes: now.config.buffer_bytes,
            peaks_bytes: history.peaks(),
            peaks_span_s: history.span_s(),
            flows: now.state.flows,
            window_bytes: now.window_bytes(),
            credit: now.credit.clone(),
            rates: history.rates(),
        }
    }

    /// Per second; 0 before the second reading.
    pub fn rate(&self, name: &str) -> f64 {
        self.rates.get(name).copied().unwrap_or(0.0)
    }

    fn share(&self, queue: u32) -> String {
        percent(queue.into(), self.buffer_bytes.into())
    }

    /// Longest queue of the last second, bytes.
    pub fn peak_bytes(&self) -> u32 {
        let each_second = self.peaks_bytes.len() as f64 / self.peaks_span_s.max(1e-3);
        self.peaks_bytes
            .iter()
            .rev()
            .take((each_second.round() as usize).max(1))
            .copied()
            .max()
            .unwrap_or(0)
    }

    /// Whether the scheme acts.
    pub fn standing(&self) -> String {
        if !self.attached {
            return "PASSING: its programs are detached".to_owned();
        }
        if !self.blind.is_empty() {
            return format!("BLIND at {}: packets pass unseen", self.blind.join(" and "));
        }
        match (self.paused, self.resumes_in_s) {
            (true, Some(seconds)) => return format!("PASSING: paused for {seconds:.0} s more"),
            (true, None) => return "PASSING: paused until penstockd resume".to_owned(),
            (false, _) => (),
        }
        if let (Some(credit), true) = (&self.credit, self.acting) {
            return format!("acting as {}, {}", credit.side, rate(credit.rate_bps));
        }
        match (self.scheme.as_str(), self.acting, self.window_bytes) {
            (OBSERVE, _, _) => "watching".to_owned(),
            (_, true, Some(0)) => "acting, window at the floor".to_owned(),
            (_, true, Some(window)) => format!("acting, window {}", bytes(window.into())),
            (_, true, None) => "acting".to_owned(),
            (_, false, _) => "PASSING: heartbeat stale, no agent runs".to_owned(),
        }
    }

    /// Queue, rate and losses.
    pub fn queue(&self) -> String {
        format!(
            "queue {} of {}, {}, drops {}/s, timeouts {}/s, marks {}/s",
            self.share(self.peak_bytes()),
            bytes(self.buffer_bytes.into()),
            rate((self.rate("egress_bytes") * 8.0) as u64),
            self.rates
                .get("drops")
                .copied()
                .map_or("?".to_owned(), per_second),
            per_second(self.rate("timeouts_seen")),
            per_second(self.rate("ecn_marks")),
        )
    }

    /// The queue over the last seconds: six, if there are few ports.
    pub fn sparkline(&self) -> String {
        format!("|{}|", sparkline(&self.peaks_bytes, self.buffer_bytes))
    }

    /// Flows, and what the scheme does to their ACKs.
    pub fn flows(&self) -> String {
        let [acks, rewritten, floored] =
            ["acks", "acks_rewritten", "acks_floored"].map(|name| self.rate(name));
        if let Some(credit) = &self.credit {
            return format!(
                "flows {} (+{}/s), {} hold {}, {} wait, {} grants/s, {} resent",
                count(self.flows.into()),
                per_second(self.rate("flows_begun")),
                count(credit.active.into()),
                bytes(credit.outstanding_bytes.into()),
                count(credit.waiting.into()),
                per_second(self.rate("grants")),
                per_second(self.rate("grants_resent")),
            );
        }
        format!(
            "flows {} (+{}/s), ACKs {}/s, rewritten {}/s ({}), floored {}",
            count(self.flows.into()),
            per_second(self.rate("flows_begun")),
            per_second(acks),
            per_second(rewritten),
            percent(rewritten.min(acks) as u64, acks as u64),
            percent(floored as u64, rewritten as u64),
        )
    }

    /// All of it in one line.
    pub fn line(&self) -> String {
        format!(
            "{} {} {}; {}; {}",
            self.interface,
            self.scheme,
            self.standing(),
            self.queue(),
            self.flows()
        )
    }
}

/// At most four characters.
fn per_second(rate: f64) -> String {
    scaled(rate, "").replace(' ', "")
}
