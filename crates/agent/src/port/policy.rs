// SPDX-License-Identifier: Apache-2.0
//! Which flows of a port are controlled: rules and canary of a [`Deployment`] as the value of the
//! map `policy`, and back.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use penstock_scenario::policy::{mask_v4, mask_v6};
use penstock_scenario::{Deployment, MOST_RULES, Rule, Share};
use serde::Serialize;

use crate::skel::port::types::{policy_kind, policy_rule, port_policy};

/// A policy's numbers are from 1 to this, as a flow's entry has a byte for it.
const LAST_NUMBER: u32 = 255;

/// All hashes, of 32 bits.
const HASHES: f64 = 4_294_967_296.0;

/// The policy of a port in the terms of its configuration.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Policy {
    /// Flows that match one of these rules are left alone.
    pub exclude: Vec<Rule>,
    /// If there are such rules, flows that match none of them are left alone.
    pub include: Vec<Rule>,
    /// The share of flows that is controlled, unless that is all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub canary: Option<f64>,
}

impl Policy {
    /// That of a deployment.
    pub fn of(port: &Deployment) -> Policy {
        Policy {
            exclude: port.exclude.clone(),
            include: port.include.clone(),
            canary: port.canary.map(|Share(share)| share),
        }
    }

    /// Whether it leaves no flow alone.
    pub fn is_open(&self) -> bool {
        *self == Policy::default()
    }

    /// As an element of the map; the hash of the canary has this seed.
    pub fn to_map(&self, number: u32, seed: u64) -> port_policy {
        let mut map = port_policy {
            number,
            rules: (self.exclude.len() + self.include.len()) as u32,
            includes: self.include.len() as u32,
            canary: self.canary.map_or(0, threshold),
            seed,
            rule: [policy_rule::default(); MOST_RULES],
        };
        let excludes = self.exclude.iter().map(|rule| to_map(*rule, 0));
        let rules = excludes.chain(self.include.iter().map(|rule| to_map(*rule, 1)));
        for (element, rule) in map.rule.iter_mut().zip(rules) {
            *element = rule;
        }
        map
    }

    /// Reads an element of the map.
    pub fn from_map(map: &port_policy) -> Policy {
        let rules = map.rule.iter().take(map.rules as usize);
        let (include, exclude): (Vec<_>, Vec<_>) = rules.partition(|rule| rule.includes != 0);
        let of_map = |rules: Vec<&policy_rule>| rules.into_iter().filter_map(of_map).collect();
        // So many digits were kept, and more would only show the conversion.
        let share = (f64::from(map.canary) / HASHES * 1e6).round() / 1e6;
        Policy {
            exclude: of_map(exclude),
            include: of_map(include),
            canary: (map.canary != 0).then_some(share),
        }
    }

    /// The keys in which two policies differ, as the daemon's configuration names them.
    pub fn differences(&self, other: &Policy) -> Vec<String> {
        let canaries = [self, other].map(|policy| policy.canary.map(threshold));
        [
            ("exclude", self.exclude != other.exclude),
            ("include", self.include != other.include),
            ("canary", canaries[0] != canaries[1]),
        ]
        .into_iter()
        .filter(|(_, is_other)| *is_other)
        .map(|(key, _)| key.to_owned())
        .collect()
    }

    /// What it leaves alone, in words.
    pub fn sentence(&self) -> String {
        let list = |rules: &[Rule]| {
            let rules: Vec<String> = rules.iter().map(Rule::to_string).collect();
            rules.join(", ")
        };
        let mut parts = Vec::new();
        if !self.exclude.is_empty() {
            parts.push(format!("excludes {}", list(&self.exclude)));
        }
        if !self.include.is_empty() {
            parts.push(format!("includes {} only", list(&self.include)));
        }
        parts.extend(
            self.canary
                .map(|share| format!("canary of {} % of flows", share * 100.0)),
        );
        parts.join("; ")
    }
}

/// The greatest hash of a flow that is controlled.
fn threshold(share: f64) -> u32 {
    ((share * HASHES).round() - 1.0).clamp(1.0, f64::from(u32::MAX)) as u32
}

/// What to write so that `wanted` replaces the policy `running` of a port, and its number, 0 if no
/// flow is left alone. None to write if it is the same. The canary keeps its seed, so that a larger
/// one contains the flows of a smaller.
pub fn succeed(
    wanted: &Policy,
    elements: &[port_policy; 2],
    running: u32,
) -> (u32, Option<port_policy>) {
    if wanted.is_open() {
        return (0, None);
    }
    let current = &elements[(running & 1) as usize];
    if running != 0 && Policy::from_map(current).differences(wanted).is_empty() {
        return (running, None);
    }
    // Entries of flows are stamped with numbers, so none is used again soon.
    let last = match running {
        0 => elements[0].number.max(elements[1].number),
        _ => running,
    };
    let number = if last >= LAST_NUMBER { 2 } else { last + 1 };
    let seed = match elements[0].seed | elements[1].seed {
        0 => RandomState::new().build_hasher().finish() | 1,
        seed => seed,
    };
    (number, Some(wanted.to_map(number, seed)))
}

fn on_wire(bits: u128) -> [u32; 4] {
    let word = |index: u32| ((bits >> (96 - 32 * index)) as u32).to_be();
    [word(0), word(1), word(2), word(3)]
}

fn from_wire(words: [u32; 4]) -> u128 {
    let word = |sum: u128, word: &u32| sum << 32 | u128::from(u32::from_be(*word));
    words.iter().fold(0, word)
}

fn to_map(rule: Rule, includes: u32) -> policy_rule {
    let first = |value, mask| ([value, 0, 0, 0], [mask, 0, 0, 0]);
    let (kind, (value, mask)) = match rule {
        Rule::Prefix(IpAddr::V4(address), bits) => {
            let mask = mask_v4(bits).to_be();
            (
                policy_kind::POLICY_IPV4,
                first(address.to_bits().to_be(), mask),
            )
        }
        Rule::Prefix(IpAddr::V6(address), bits) => {
            let mask = on_wire(mask_v6(bits));
            (policy_kind::POLICY_IPV6, (on_wire(address.to_bits()), mask))
        }
        Rule::Tcp(from, to) => (policy_kind::POLICY_TCP, first(from.into(), to.into())),
        Rule::Dscp(dscp) => (policy_kind::POLICY_DSCP, first(dscp.into(), 0)),
        Rule::Mark(value, mask) => (policy_kind::POLICY_MARK, first(value, mask)),
    };
    policy_rule {
        value,
        mask,
        kind,
        includes,
    }
}

fn of_map(rule: &policy_rule) -> Option<Rule> {
    let (value, mask) = (rule.value[0], rule.mask[0]);
    Some(match rule.kind {
        policy_kind::POLICY_IPV4 => {
            let address = Ipv4Addr::from_bits(u32::from_be(value));
            Rule::Prefix(address.into(), mask.count_ones() as u8)
        }
        policy_kind::POLICY_IPV6 => {
            let address = Ipv6Addr::from_bits(from_wire(rule.value));
            Rule::Prefix(address.into(), from_wire(rule.mask).count_ones() as u8)
        }
        policy_kind::POLICY_TCP => Rule::Tcp(value as u16, mask as u16),
        policy_kind::POLICY_DSCP => Rule::Dscp(value as u8),
        policy_kind::POLICY_MARK => Rule::Mark(value, mask),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(exclude: &[&str], include: &[&str], canary: Option<f64>) -> Policy {
        let rules = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
        Policy {
            exclude: rules(exclude),
            include: rules(include),
            canary,
        }
    }

    #[test]
    fn the_map_gives_back_what_was_written() {
        let all = [
            "10.0.0.0/8",
            "0.0.0.0/0",
            "fd00::/8",
            "::/0",
            "tcp:1-9",
            "dscp:46",
        ];
        for wanted in [
            policy(&all, &["mark:0x10/0xff", "192.0.2.1"], Some(0.1)),
            policy(&[], &[], Some(1.0)),
            policy(&[], &["fd00::1"], None),
        ] {
            assert_eq!(Policy::from_map(&wanted.to_map(1, 2)), wanted);
        }
        let map = policy(&["10.0.0.0/8"], &[], None).to_map(1, 2);
        assert_eq!(
            map.rule[0].value.map(u32::to_ne_bytes).concat()[..2],
            [10, 0]
        );
        assert_eq!(map.rule[0].mask[0].to_ne_bytes(), [255, 0, 0, 0]);
    }

    #[test]
    fn a_number_is_not_used_again_and_the_seed_stays() {
        let mut elements = [port_policy::default(); 2];
        let mut running = 0;
        let mut next = |policy: &Policy| {
            let (number, map) = succeed(policy, &elements, running);
            if let Some(map) = map {
                assert_ne!(number & 1, running & 1, "the one in use stays");
                elements[(number & 1) as usize] = map;
            }
            running = number;
            (number, elements[(number & 1) as usize].seed)
        };
        let open = Policy::default();
        let ten = policy(&[], &[], Some(0.1));
        let (number, seed) = next(&ten);
        assert_eq!((number, seed != 0), (1, true));
        assert_eq!(next(&ten), (1, seed));
        assert_eq!(next(&policy(&[], &[], Some(0.2))), (2, seed));
        assert_eq!(next(&open).0, 0);
        assert_eq!(next(&ten), (3, seed));
        for _ in 0..1000 {
            let (number, _) = next(&policy(&["tcp:1"], &[], None));
            assert!((1..=LAST_NUMBER).contains(&number));
            next(&policy(&["tcp:2"], &[], None));
        }
    }

    #[test]
    fn differences_are_named_by_their_keys() {
        let one = policy(&["tcp:1"], &[], Some(0.1));
        let other = policy(&[], &["tcp:1"], Some(0.2));
        assert_eq!(one.differences(&other), ["exclude", "include", "canary"]);
        assert!(
            one.differences(&Policy::from_map(&one.to_map(1, 1)))
                .is_empty()
        );
        assert_eq!(one.sentence(), "excludes tcp:1; canary of 10 % of flows");
    }
}
