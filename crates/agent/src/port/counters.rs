// SPDX-License-Identifier: Apache-2.0
//! The counters of a port by the names of `core/counters.h`.

use indexmap::IndexMap;
use penstock_core::definitions::{self, Word};

use super::config::OBSERVE;
use super::plain::words_of;
use crate::skel::port::types::{port_counters, side_counters};

/// Counters, or their rates, by name.
pub type Named<T> = IndexMap<String, T>;

/// The names of schemes by number (`enum window_scheme`).
pub fn scheme_names() -> impl Iterator<Item = &'static str> {
    std::iter::once(OBSERVE).chain(definitions::window_schemes().map(|scheme| scheme.name))
}

/// The counters of `core/counters.h` with their values.
pub fn alone(all: &port_counters) -> impl Iterator<Item = (&'static Word, u64)> + use<> {
    definitions::counters().iter().zip(words_of(all))
}

/// Pairs of a scheme's name and the ACKs that it would have rewritten, while observed.
pub fn would_rewrite(all: &port_counters) -> impl Iterator<Item = (&'static str, u64)> + use<> {
    scheme_names().zip(all.would_rewrite).skip(1)
}

/// The reasons of `core/counters.h` with the packets that passed for them.
pub fn passed(all: &port_counters) -> impl Iterator<Item = (&'static Word, u64)> + use<> {
    definitions::pass_reasons().iter().zip(all.passed)
}

/// The counters of one side of a canary, of `core/counters.h`, with their values.
pub fn of_side(side: &side_counters) -> impl Iterator<Item = (&'static Word, u64)> + use<> {
    definitions::canary_counters().iter().zip(words_of(side))
}

/// All counters by name: `acks` ..., then `would_rewrite_SCHEME` ..., then `passed_REASON` ...
pub fn named(all: &port_counters) -> Named<u64> {
    let alone = alone(all).map(|(counter, count)| (counter.word.to_owned(), count));
    let would =
        would_rewrite(all).map(|(scheme, count)| (format!("would_rewrite_{scheme}"), count));
    let passed = passed(all).map(|(reason, count)| (format!("passed_{}", reason.word), count));
    alone.chain(would).chain(passed).collect()
}

/// The difference of `after` and `before` per second.
pub fn rates(before: &Named<u64>, after: &Named<u64>, seconds: f64) -> Named<f64> {
    let rate = |name: &String, count: &u64| {
        // Counters restart at 0 when a port is attached again.
        let more = count.saturating_sub(before.get(name).copied().unwrap_or(0));
        (more as f64 / seconds * 10.0).round() / 10.0
    };
    after
        .iter()
        .map(|(name, count)| (name.clone(), rate(name, count)))
        .collect()
}

/// The share of the ACKs since `before`, or since the attach, whose flow's window scale is unknown; none
/// without ACKs.
pub fn unknown_scale_share(before: Option<&Named<u64>>, after: &Named<u64>) -> Option<f64> {
    let more =
        |name: &str| after[name].saturating_sub(before.map_or(0, |before| before[name])) as f64;
    let (unknown, acks) = (more("passed_unknown_scale"), more("acks"));
    (acks > 0.0).then(|| (unknown / acks).min(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_counter_has_a_name_and_a_rate() {
        let mut counters = port_counters::default();
        let before = named(&counters);
        // SCHEME_NONE, which would rewrite nothing, is not listed.
        assert_eq!(
            before.len() + 1,
            words_of(&port_counters::default()).count()
        );
        counters.acks_rewritten = 300;
        counters.timeouts_seen = 2;
        counters.passed[6] = 5;
        let after = named(&counters);
        assert_eq!((after["acks_rewritten"], after["passed_stale"]), (300, 5));
        assert_eq!((after["timeouts_seen"], after["acks"]), (2, 0));
        let rates = rates(&before, &after, 2.0);
        assert_eq!(
            (
                rates["acks_rewritten"],
                rates["passed_stale"],
                rates["acks"]
            ),
            (150.0, 2.5, 0.0)
        );
    }
}
