// SPDX-License-Identifier: Apache-2.0
//! The counters of a port by the names of `bpf/abi.h`.

use indexmap::IndexMap;

use crate::skel::port::types::port_counters;

/// Counters, or their rates, by name.
pub type Named<T> = IndexMap<String, T>;

/// The schemes of `would_rewrite` (`enum port_scheme`).
pub const SCHEMES: [&str; 3] = ["observe", "fairq", "hscc"];

/// The reasons of `passed` (`enum pass_reason`).
pub const REASONS: [&str; 10] = [
    "not_ip",
    "not_tcp",
    "fragment",
    "truncated",
    "malformed",
    "too_deep",
    "stale",
    "unknown_scale",
    "table_full",
    "failed",
];

/// Pairs of name and value of the counters that stand alone, in the order of `bpf/abi.h`.
macro_rules! alone {
    ($counters:expr, $($name:ident)*) => { [$((stringify!($name), $counters.$name)),*] };
}

/// All counters by name: `acks` ..., then `would_rewrite_fairq` ..., then `passed_not_ip` ...
pub fn named(counters: &port_counters) -> Named<u64> {
    let alone = alone!(
        counters,
        egress_packets egress_bytes ingress_packets acks rewritten floored first_rewritten
        kept_edge marked syns flows_begun flows_ended zero_windows clamps stalls
    );
    let all = SCHEMES.len() + REASONS.len() + alone.len();
    debug_assert_eq!(
        8 * all,
        size_of::<port_counters>(),
        "a counter without a name"
    );
    let would = SCHEMES.iter().zip(counters.would_rewrite);
    let passed = REASONS.iter().zip(counters.passed);
    let alone = alone
        .map(|(name, count)| (name.to_owned(), count))
        .into_iter();
    alone
        .chain(would.map(|(scheme, count)| (format!("would_rewrite_{scheme}"), count)))
        .chain(passed.map(|(reason, count)| (format!("passed_{reason}"), count)))
        .collect()
}

/// What `after` has more than `before`, per second.
pub fn rates(before: &Named<u64>, after: &Named<u64>, seconds: f64) -> Named<f64> {
    let rate = |name: &String, count: &u64| {
        let more = count.saturating_sub(before.get(name).copied().unwrap_or(0));
        (more as f64 / seconds * 10.0).round() / 10.0
    };
    after
        .iter()
        .map(|(name, count)| (name.clone(), rate(name, count)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_counter_has_a_name_and_a_rate() {
        let mut counters = port_counters::default();
        let before = named(&counters);
        assert_eq!(8 * before.len(), size_of::<port_counters>());
        counters.rewritten = 300;
        counters.passed[6] = 5;
        let after = named(&counters);
        assert_eq!((after["rewritten"], after["passed_stale"]), (300, 5));
        let rates = rates(&before, &after, 2.0);
        assert_eq!(
            (rates["rewritten"], rates["passed_stale"], rates["acks"]),
            (150.0, 2.5, 0.0)
        );
    }
}
