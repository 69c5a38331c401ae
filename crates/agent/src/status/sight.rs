// SPDX-License-Identifier: Apache-2.0
//! Whether our programs see what passes: a program of another tool that runs first may end the
//! chain of its hook, and XDP or a hardware offload pass by all hooks. The interface counts such
//! packets, our programs do not. A program on another interface may also redirect packets past this one
//! (`bpf_redirect_peer`): neither counts these, but the ACKs that answer them come in.

use std::collections::BTreeMap;
use std::sync::Mutex;

use anyhow::Result;
use penstock_linux::link;

use super::reading::Reading;
use crate::port::Side;
use crate::port::counters::{Named, named, unknown_scale_share};
use crate::skel::port::types::port_counters;

/// So few packets of the interface that ours did not count prove nothing: the two are not read at
/// once, and a packet may be on its way. Nor do the scales of so few ACKs.
const ENOUGH: u64 = 16;

/// Of so many ACKs that come in, at least one answers a packet that left: an ACK may cover a large
/// packet, which counts as its segments.
const ACKS_PER_PACKET: u64 = 16;

/// Whether each side is blind, egress and ingress; none: unknown.
pub type Blind = [Option<bool>; 2];

/// Packets as an interface and our programs counted them, egress and ingress.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sight {
    index: u32,
    passed: [u64; 2],
    seen: [u64; 2],
    acks: u64,
}

impl Sight {
    /// Reads the counters of an interface and those of our programs on it; none if it is gone.
    ///
    /// # Errors
    /// The kernel gives no answer.
    pub fn of(interface: &str, counters: &port_counters) -> Result<Option<Sight>> {
        let link = link::find(interface)?.filter(|link| link.name == interface);
        Ok(link.map(|link| Sight {
            index: link.index,
            passed: [link.sent_packets, link.received_packets],
            seen: [counters.egress_packets, counters.ingress_packets],
            acks: counters.acks,
        }))
    }

    /// Whether it is of the same port as `earlier`, whose counters go on: they begin again with another
    /// interface of its name, and where it is attached again.
    fn continues(&self, earlier: &Sight) -> bool {
        let has_counted_on = |side: usize| self.seen[side] >= earlier.seen[side];
        self.index == earlier.index && has_counted_on(0) && has_counted_on(1)
    }

    /// From where to count on: a side without a verdict goes on from `last`.
    fn after(mut self, last: &Sight, verdicts: Blind) -> Sight {
        if !self.continues(last) {
            return self;
        }
        for side in [0, 1] {
            if verdicts[side].is_none() {
                self.passed[side] = last.passed[side];
                self.seen[side] = last.seen[side];
            }
        }
        if verdicts[0].is_none() {
            self.acks = last.acks;
        }
        self
    }

    /// Whether the data that leaves is redirected past the interface, by the ACKs since `earlier`.
    fn is_passed_by(&self, earlier: &Sight) -> bool {
        let acks = self.acks.saturating_sub(earlier.acks);
        let left = self.seen[0].saturating_sub(earlier.seen[0]);
        acks >= ENOUGH && acks > left * ACKS_PER_PACKET
    }

    /// The sides on which packets passed unseen since `earlier`. None if too few passed for a verdict.
    pub fn blind_since(&self, earlier: &Sight) -> Blind {
        if !self.continues(earlier) {
            return [None; 2];
        }
        let is_passed_by = [self.is_passed_by(earlier), false];
        [0, 1].map(|side| {
            let passed = self.passed[side].saturating_sub(earlier.passed[side]);
            let seen = self.seen[side].saturating_sub(earlier.seen[side]);
            match (seen > 0, passed >= ENOUGH) {
                _ if is_passed_by[side] => Some(true),
                (true, _) => Some(false),
                (false, true) => Some(true),
                _ => None,
            }
        })
    }
}

/// The names of the blind sides.
pub fn names(blind: Blind) -> Vec<&'static str> {
    let sides = Side::BOTH.iter().zip(blind);
    let blind = sides.filter(|(_, is_blind)| *is_blind == Some(true));
    blind.map(|(side, _)| side.name()).collect()
}

/// What was last known of each port; a scraper asks again and again.
#[derive(Debug, Default)]
pub struct Sights(Mutex<BTreeMap<String, Known>>);

#[derive(Debug)]
struct Known {
    sight: Sight,
    blind: Blind,
    scales: Scales,
}

/// The share of ACKs with an unknown scale, and the counters when it was judged.
#[derive(Debug)]
struct Scales {
    counters: Named<u64>,
    unknown_share: Option<f64>,
}

impl Scales {
    /// Goes on from `last` until enough ACKs have passed, and begins again with a port that does.
    fn after(now: Named<u64>, last: Option<Scales>) -> Scales {
        let last = last.filter(|last| last.counters["acks"] <= now["acks"]);
        match last {
            Some(last) if now["acks"] - last.counters["acks"] < ENOUGH => last,
            last => Scales {
                unknown_share: unknown_scale_share(last.as_ref().map(|last| &last.counters), &now),
                counters: now,
            },
        }
    }
}

impl Sights {
    /// Sets `blind` and `unknown_scale_share` in readings, by what passed since the last verdict.
    pub fn judge(&self, readings: &mut [Reading]) {
        let mut known = self.0.lock().unwrap_or_else(|broken| broken.into_inner());
        known.retain(|interface, _| readings.iter().any(|r| r.interface == *interface));
        for reading in readings {
            let Ok(Some(now)) = Sight::of(&reading.interface, &reading.counters) else {
                continue;
            };
            let (last, mut blind, scales) = match known.remove(&reading.interface) {
                Some(known) => (known.sight, known.blind, Some(known.scales)),
                None => (now, [None; 2], None),
            };
            let scales = Scales::after(named(&reading.counters), scales);
            reading.unknown_scale_share = scales.unknown_share;
            let verdicts = now.blind_since(&last);
            for (old, new) in blind.iter_mut().zip(verdicts) {
                *old = new.or(*old);
            }
            reading.blind = names(blind);
            let sight = now.after(&last, verdicts);
            let now = Known {
                sight,
                blind,
                scales,
            };
            known.insert(reading.interface.clone(), now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_side_is_blind_if_what_passed_was_not_seen() {
        let sight = |passed, seen| Sight {
            index: 3,
            passed: [passed, 1000],
            seen: [seen, 500],
            acks: 0,
        };
        let first = sight(1000, 900);
        let since = |now: Sight| now.blind_since(&first)[0];
        assert_eq!(since(sight(1015, 900)), None, "too few");
        assert_eq!(since(sight(1016, 900)), Some(true));
        assert_eq!(since(sight(1016, 901)), Some(false));
        assert_eq!(first.blind_since(&first), [None, None]);
        assert_eq!(
            since(sight(2000, 10)),
            None,
            "a port that was attached again"
        );
        let again = sight(2000, 10).after(&first, [None; 2]);
        assert_eq!(again, sight(2000, 10), "and counts from there on");
        let other = Sight {
            index: 4,
            ..sight(9999, 900)
        };
        assert_eq!(since(other), None, "another interface of this name");
        let few = sight(1010, 900);
        let next = few.after(&first, few.blind_since(&first));
        assert_eq!(next, first, "few packets at a time add up");
        let redirected = |acks, seen| Sight {
            acks,
            ..sight(1000, seen)
        };
        assert_eq!(since(redirected(15, 900)), None, "too few");
        assert_eq!(since(redirected(16, 900)), Some(true));
        assert_eq!(since(redirected(33, 902)), Some(true));
        assert_eq!(since(redirected(32, 902)), Some(false));
        assert_eq!(names([Some(true), None]), ["egress"]);
        assert_eq!(names([Some(false), Some(true)]), ["ingress"]);
    }

    #[test]
    fn the_share_of_unknown_scales_is_that_of_the_latest_acks() {
        let counted = |acks, unknown| {
            let mut counters = named(&port_counters::default());
            counters["acks"] = acks;
            counters["passed_unknown_scale"] = unknown;
            counters
        };
        let first = Scales::after(counted(0, 0), None);
        assert_eq!(first.unknown_share, None);
        let next = Scales::after(counted(100, 25), Some(first));
        assert_eq!(next.unknown_share, Some(0.25));
        let few = Scales::after(counted(115, 40), Some(next));
        assert_eq!(few.unknown_share, Some(0.25), "too few");
        let enough = Scales::after(counted(120, 35), Some(few));
        assert_eq!(enough.unknown_share, Some(0.5), "of 20");
        let again = Scales::after(counted(10, 1), Some(enough));
        assert_eq!(again.unknown_share, Some(0.1), "attached again");
    }
}
