// SPDX-License-Identifier: Apache-2.0
//! The counters of a port by the names of `core/counters.h`.

use indexmap::IndexMap;

use crate::skel::port::types::port_counters;

/// Counters, or their rates, by name.
pub type Named<T> = IndexMap<String, T>;

/// A counter's name and meaning.
#[derive(Clone, Copy, Debug)]
pub struct Definition {
    /// As everywhere: in `bpf/`, in JSON, in OpenMetrics (with `_total`).
    pub name: &'static str,
    /// What it counts.
    pub meaning: &'static str,
}

/// `PORT_COUNTERS` of `core/counters.h`.
pub const COUNTERS: [Definition; 15] = [
    Definition {
        name: "egress_packets",
        meaning: "Packets that left by the port",
    },
    Definition {
        name: "egress_bytes",
        meaning: "Bytes that left by the port",
    },
    Definition {
        name: "ingress_packets",
        meaning: "Packets that came in by the port",
    },
    Definition {
        name: "acks",
        meaning: "ACKs that came in by the port",
    },
    Definition {
        name: "acks_rewritten",
        meaning: "ACKs whose window was lowered",
    },
    Definition {
        name: "acks_floored",
        meaning: "ACKs whose window would have been lowered further but for the floor",
    },
    Definition {
        name: "acks_first_rewritten",
        meaning: "Rewritten SYN-ACKs and first ACKs of a flow",
    },
    Definition {
        name: "acks_edge_kept",
        meaning: "ACKs whose window was left higher, not to take back what was offered",
    },
    Definition {
        name: "ecn_marks",
        meaning: "Packets marked with ECN CE",
    },
    Definition {
        name: "syns",
        meaning: "SYNs and SYN-ACKs in both directions",
    },
    Definition {
        name: "flows_begun",
        meaning: "Flows that began, or sent again after idleness",
    },
    Definition {
        name: "flows_ended",
        meaning: "Flows that ended or idled",
    },
    Definition {
        name: "zero_windows",
        meaning: "ACKs whose receiver offered nothing",
    },
    Definition {
        name: "clamps",
        meaning: "Times that the scheme began to clamp all flows",
    },
    Definition {
        name: "timeouts_seen",
        meaning: "Data or SYNs repeated after 190 ms without a packet of their flow",
    },
];

/// `PASS_REASON_LIST` of `core/counters.h`.
pub const REASONS: [Definition; 10] = [
    Definition {
        name: "not_ip",
        meaning: "Neither IPv4 nor IPv6",
    },
    Definition {
        name: "not_tcp",
        meaning: "Another protocol than TCP",
    },
    Definition {
        name: "fragment",
        meaning: "A fragment of an IP packet",
    },
    Definition {
        name: "truncated",
        meaning: "Ends within a header",
    },
    Definition {
        name: "malformed",
        meaning: "Lengths that contradict each other",
    },
    Definition {
        name: "too_deep",
        meaning: "More VLAN tags, extension headers or tunnels than are followed",
    },
    Definition {
        name: "stale",
        meaning: "The agent's heartbeat is stale, or its ABI differs",
    },
    Definition {
        name: "unknown_scale",
        meaning: "An ACK of a flow whose SYNs were not seen",
    },
    Definition {
        name: "table_full",
        meaning: "No entry could be made for its flow",
    },
    Definition {
        name: "failed",
        meaning: "The kernel refused to change the packet",
    },
];

/// The schemes by number (`enum window_scheme`).
pub const SCHEMES: [&str; 3] = ["observe", "fairq", "hscc"];

/// Words of `struct port_counters`.
const WORDS: usize = size_of::<port_counters>() / 8;

/// Pairs of name and value of all that stand alone, in the order of `core/counters.h`.
pub fn alone(counters: &port_counters) -> impl Iterator<Item = (&'static Definition, u64)> + use<> {
    COUNTERS.iter().zip(words(counters))
}

/// Pairs of a scheme's name and the ACKs that it would have rewritten, while observed.
pub fn would_rewrite(
    counters: &port_counters,
) -> impl Iterator<Item = (&'static str, u64)> + use<> {
    let all = SCHEMES.iter().zip(counters.would_rewrite);
    all.skip(1).map(|(name, count)| (*name, count))
}

/// Pairs of a reason and the packets that passed for it without being looked at further.
pub fn passed(
    counters: &port_counters,
) -> impl Iterator<Item = (&'static Definition, u64)> + use<> {
    REASONS.iter().zip(counters.passed)
}

fn words(counters: &port_counters) -> [u64; WORDS] {
    // SAFETY: the struct is u64 fields and arrays of u64 alone, as many as there are words.
    unsafe { std::mem::transmute(*counters) }
}

/// All counters by name: `acks` ..., then `would_rewrite_SCHEME` ..., then `passed_REASON` ...
pub fn named(all: &port_counters) -> Named<u64> {
    let alone = alone(all).map(|(counter, count)| (counter.name.to_owned(), count));
    let would =
        would_rewrite(all).map(|(scheme, count)| (format!("would_rewrite_{scheme}"), count));
    let passed = passed(all).map(|(reason, count)| (format!("passed_{}", reason.name), count));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_counter_has_a_name_and_a_rate() {
        let mut counters = port_counters::default();
        let before = named(&counters);
        // SCHEME_NONE, which would rewrite nothing, is not listed.
        assert_eq!(before.len() + 1, WORDS);
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
