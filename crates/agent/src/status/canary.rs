// SPDX-License-Identifier: Apache-2.0
//! What the flows of a canary do, compared with those held out.

use serde::Serialize;

use crate::format;
use crate::port::counters::{Named, of_side, rates};
use crate::skel::port::types::side_counters;

/// Both sides of a canary.
#[derive(Clone, Debug, Serialize)]
pub struct Canary {
    /// The share of flows that is to be controlled.
    pub share: f64,
    /// The flows of which the scheme lowers windows.
    pub controlled: Side,
    /// The flows that it leaves alone.
    pub held_out: Side,
}

/// One side.
#[derive(Clone, Debug, Serialize)]
pub struct Side {
    /// Flows counted, on average over the time of the reading.
    pub flows: f64,
    /// What each flow sent that was new, bytes per second, headers included; none without a flow.
    pub goodput_per_flow: Option<f64>,
    /// Counters since the port was attached, while it had a policy.
    pub counters: Named<u64>,
    /// The same per second, over the time of the reading.
    pub rates: Named<f64>,
}

impl Canary {
    /// Compares two readings, `seconds` apart.
    pub fn of(
        share: f64,
        before: &[side_counters; 2],
        after: &[side_counters; 2],
        seconds: f64,
    ) -> Canary {
        let side = |index: usize| Side::of(&before[index], &after[index], seconds);
        Canary {
            share,
            controlled: side(0),
            held_out: side(1),
        }
    }

    /// A line for each side.
    pub fn lines(&self) -> [String; 2] {
        [
            format!("canary, controlled: {}", self.controlled.sentence()),
            format!("canary, held out: {}", self.held_out.sentence()),
        ]
    }
}

impl Side {
    fn of(before: &side_counters, after: &side_counters, seconds: f64) -> Side {
        let named = |side| -> Named<u64> {
            let pairs = of_side(side).map(|(counter, count)| (counter.word.to_owned(), count));
            pairs.collect()
        };
        let (before, counters) = (named(before), named(after));
        let rates = rates(&before, &counters, seconds);
        let flows = rates["flow_ms"] / 1000.0;
        let new_bytes = (rates["egress_bytes"] - rates["repeated_bytes"]).max(0.0);
        Side {
            flows: (flows * 10.0).round() / 10.0,
            goodput_per_flow: (flows > 0.0).then(|| (new_bytes / flows).round()),
            counters,
            rates,
        }
    }

    fn sentence(&self) -> String {
        let rate = |name: &str| self.rates[name];
        let goodput = self.goodput_per_flow.unwrap_or(0.0) * 8.0 / 1e6;
        format!(
            "{:.1} flows of {goodput:.2} Mb/s each, {} ACKs/s rewritten of {}, {} of bytes repeated, {:.1} timeouts/s",
            self.flows,
            format::count(rate("acks_rewritten") as u64),
            format::count(rate("acks") as u64),
            format::percent(rate("repeated_bytes") as u64, rate("egress_bytes") as u64),
            rate("timeouts_seen"),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goodput_is_what_flows_sent_while_they_were_counted() {
        let before = [side_counters::default(); 2];
        let mut after = before;
        after[1].egress_bytes = 1_100_000;
        after[1].repeated_bytes = 100_000;
        after[1].flow_ms = 4_000;
        let canary = Canary::of(0.1, &before, &after, 2.0);
        assert_eq!(canary.controlled.goodput_per_flow, None);
        // Two flows for two seconds; half a megabyte a second of new bytes.
        assert_eq!(canary.held_out.flows, 2.0);
        assert_eq!(canary.held_out.goodput_per_flow, Some(250_000.0));
        assert!(canary.lines()[1].contains("2.0 flows of 2.00 Mb/s each"));
    }
}
