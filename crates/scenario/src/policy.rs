// SPDX-License-Identifier: Apache-2.0
//! Which flows of a port a scheme controls: rules that exclude or include some of them.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use serde::de::{Deserialize, Deserializer, Error};
use serde::{Serialize, Serializer};

/// How many rules a port has room for (`POLICY_RULES` of `bpf/abi.h`).
pub const MOST_RULES: usize = 32;

/// What some flows have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Either end's address begins with so many bits of this one.
    Prefix(IpAddr, u8),
    /// Either end's TCP port is in this range.
    Tcp(u16, u16),
    /// What leaves by the port has this DSCP.
    Dscp(u8),
    /// What leaves by the port has this mark, in the bits of the second number.
    Mark(u32, u32),
}

impl FromStr for Rule {
    type Err = String;

    /// As in "10.0.0.0/8", "fd00::1", "tcp:179", "tcp:8000-8099", "dscp:46", "mark:0x10/0xff".
    fn from_str(text: &str) -> Result<Rule, String> {
        let parsed = match text.split_once(':') {
            Some(("tcp", ports)) => tcp(ports),
            Some(("dscp", dscp)) => dscp.parse().ok().filter(|d| *d < 64).map(Rule::Dscp),
            Some(("mark", mark)) => masked(mark),
            _ => return prefix(text),
        };
        parsed.ok_or_else(|| no_rule(text))
    }
}

fn no_rule(text: &str) -> String {
    format!(
        "\"{text}\" is no rule; allowed: a prefix as in 10.0.0.0/8 or fd00::/8, tcp:179, tcp:8000-8099, dscp:46 (0 to 63), mark:0x10/0xff"
    )
}

fn tcp(text: &str) -> Option<Rule> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last) = (first.parse().ok()?, last.parse().ok()?);
    (1..=last)
        .contains(&first)
        .then_some(Rule::Tcp(first, last))
}

fn masked(text: &str) -> Option<Rule> {
    let number = |text: &str| match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    };
    let (value, mask) = text.split_once('/').unwrap_or((text, "0xffffffff"));
    let (value, mask) = (number(value)?, number(mask)?);
    (value & !mask == 0).then_some(Rule::Mark(value, mask))
}

fn prefix(text: &str) -> Result<Rule, String> {
    let (address, bits) = match text.split_once('/') {
        Some((address, bits)) => (address, bits.parse().ok()),
        None => (text, Some(u8::MAX)),
    };
    let address: IpAddr = address.parse().map_err(|_| no_rule(text))?;
    let all = if address.is_ipv4() { 32 } else { 128 };
    let bits = match bits {
        Some(u8::MAX) if !text.contains('/') => all,
        Some(bits) if bits <= all => bits,
        _ => {
            return Err(format!("\"{text}\": no such length; allowed: /0 to /{all}"));
        }
    };
    let first = first_of(address, bits);
    match first == address {
        true => Ok(Rule::Prefix(address, bits)),
        false => Err(format!(
            "\"{text}\" has bits beyond its length; allowed: {first}/{bits}, or {address}/{all}"
        )),
    }
}

/// The lowest address of a prefix.
fn first_of(address: IpAddr, bits: u8) -> IpAddr {
    match address {
        IpAddr::V4(address) => Ipv4Addr::from_bits(address.to_bits() & mask_v4(bits)).into(),
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & mask_v6(bits)).into(),
    }
}

/// The mask of an IPv4 prefix of so many bits, at most 32.
pub fn mask_v4(bits: u8) -> u32 {
    u32::MAX.checked_shl(32 - u32::from(bits)).unwrap_or(0)
}

/// The mask of an IPv6 prefix of so many bits, at most 128.
pub fn mask_v6(bits: u8) -> u128 {
    u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0)
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Rule::Prefix(address, bits) => write!(f, "{address}/{bits}"),
            Rule::Tcp(first, last) if first == last => write!(f, "tcp:{first}"),
            Rule::Tcp(first, last) => write!(f, "tcp:{first}-{last}"),
            Rule::Dscp(dscp) => write!(f, "dscp:{dscp}"),
            Rule::Mark(value, u32::MAX) => write!(f, "mark:{value:#x}"),
            Rule::Mark(value, mask) => write!(f, "mark:{value:#x}/{mask:#x}"),
        }
    }
}

impl<'de> Deserialize<'de> for Rule {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Rule, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(Error::custom)
    }
}

impl Serialize for Rule {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_read_and_shown_alike() {
        for text in [
            "10.0.0.0/8",
            "0.0.0.0/0",
            "::/0",
            "fd00::/8",
            "192.0.2.1/32",
            "fd00::1/128",
            "tcp:179",
            "tcp:8000-8099",
            "dscp:0",
            "dscp:63",
            "mark:0x10",
            "mark:0x10/0xff",
            "mark:0x0/0x1",
        ] {
            let rule = text.parse::<Rule>().map(|rule| rule.to_string());
            assert_eq!(rule, Ok(text.to_owned()));
        }
        let same = |one: &str, other: &str| {
            assert_eq!(one.parse::<Rule>(), other.parse(), "{one}");
        };
        same("192.0.2.1", "192.0.2.1/32");
        same("fd00::1", "fd00::1/128");
        same("mark:16/255", "mark:0x10/0xff");
    }

    #[test]
    fn refusals_name_what_is_allowed() {
        for text in [
            "",
            "10.0.0.0/",
            "tcp:",
            "tcp:0",
            "tcp:65536",
            "tcp:9-8",
            "dscp:64",
            "dscp:ef",
            "mark:0x100/0xff",
            "mark:x",
            "udp:53",
            "10.0.0/8",
            "10.0.0.0/33",
            "::/129",
            "10.0.0.0/255",
        ] {
            let error = text.parse::<Rule>().err();
            assert!(error.is_some_and(|e| e.contains("allowed: ")), "{text}");
        }
        let error = "10.1.0.0/8".parse::<Rule>();
        assert!(error.is_err_and(|e| e.ends_with("allowed: 10.0.0.0/8, or 10.1.0.0/32")));
    }
}
