// SPDX-License-Identifier: Apache-2.0
//! The rules of a switch. Table 0 copies, table 1 forwards; without the controller they stay.
//!
//! Controllers that know the same of the network write the same rules, cookies included.

use crate::fabric::{Distances, Fabric, Mac, Place};
use crate::lldp;
use crate::openflow::{Action, Field, FlowMod, Instruction, Match};
use crate::segment::COPY_BYTES;
use penstock_core::flow::flag;
use penstock_sdn::message::ETHERTYPE;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};

const COPIES: u8 = 0;
const ROUTES: u8 = 1;
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const TCP: u8 = 6;
const WHOLE: u16 = 0xffff;

/// Whose rules these are: the upper bits of all cookies.
const MARK: u64 = 0x0050_656e << 32;

/// Why a packet was copied: the lowest bits of the cookie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Nothing is copied.
    None = 0,
    /// It shows a link.
    Lldp = 1,
    /// It is a SYN, FIN or RST.
    Segment = 2,
    /// No route leads where it goes.
    Miss = 3,
}

impl Reason {
    /// That of a cookie.
    pub fn of(cookie: u64) -> Option<Reason> {
        let all = [Reason::Lldp, Reason::Segment, Reason::Miss];
        (cookie & MASK_OWNER == MARK)
            .then(|| all.into_iter().find(|one| *one as u64 == cookie & 0xff))?
    }
}

const MASK_OWNER: u64 = 0xffff_ffff << 32;

/// The bits of a cookie that are the same in all rules of a switch: a digest of them.
const DIGEST_BITS: std::ops::Range<u32> = 8..32;

/// The cookies and masks that find all of our rules with another digest.
pub fn others(digest: u64) -> impl Iterator<Item = (u64, u64)> {
    let differs = move |bit| (MARK | !digest & bit, MASK_OWNER | bit);
    DIGEST_BITS.map(|bit| 1 << bit).map(differs)
}

/// The rules of all switches, with their digests. If the controller sends messages as frames, those of
/// guests are dropped: its own do not pass the tables.
pub fn all(fabric: &Fabric, has_frames: bool) -> BTreeMap<u64, (u64, Vec<FlowMod>)> {
    let mut rules = BTreeMap::new();
    for (datapath, ports) in fabric.tree() {
        let mut own = of_switch(fabric, datapath, &ports);
        own.extend(has_frames.then(forged));
        rules.insert(datapath, own);
    }
    let hosts: Vec<_> = fabric.hosts().map(|(host, _)| host).collect();
    let mut distances = Distances::new();
    for from in &hosts {
        for to in hosts.iter().filter(|to| *to != from) {
            for out in fabric
                .path_by(&mut distances, *from, *to)
                .into_iter()
                .flatten()
            {
                rules
                    .entry(out.datapath)
                    .or_default()
                    .push(route(*from, *to, out));
            }
        }
    }
    let rules = rules.into_iter();
    rules.map(|(at, rules)| (at, digested(rules))).collect()
}

fn digested(mut rules: Vec<FlowMod>) -> (u64, Vec<FlowMod>) {
    let mut hasher = DefaultHasher::new();
    rules.hash(&mut hasher);
    let mask = DIGEST_BITS.fold(0, |mask, bit| mask | 1 << bit);
    let digest = hasher.finish() & mask;
    for rule in &mut rules {
        rule.cookie |= digest;
    }
    (digest, rules)
}

fn of_switch(fabric: &Fabric, datapath: u64, tree: &BTreeSet<u32>) -> Vec<FlowMod> {
    let rule = |table, priority, reason, matches, instructions| FlowMod {
        cookie: MARK | reason as u64,
        table,
        priority,
        matches: Match(matches),
        instructions,
    };
    let goto = || Instruction::Goto(ROUTES);
    let copy = |bytes| Action::Copy(bytes);
    let mut rules = vec![
        frames_of_links(),
        rule(COPIES, 0, Reason::None, vec![], vec![goto()]),
    ];
    for port in fabric.edges(datapath) {
        for ethertype in [IPV4, IPV6] {
            for flag in [flag::SYN, flag::FIN, flag::RST].map(u16::from) {
                let matches = vec![
                    Field::InPort(port),
                    Field::EthType(ethertype),
                    Field::IpProto(TCP),
                    Field::TcpFlags(flag, flag),
                ];
                let copies = Instruction::Apply(vec![copy(COPY_BYTES)]);
                rules.push(rule(
                    COPIES,
                    50,
                    Reason::Segment,
                    matches,
                    vec![copies, goto()],
                ));
            }
        }
    }
    let flood = [copy(COPY_BYTES)]
        .into_iter()
        .chain(tree.iter().map(|port| Action::Output(*port)))
        .collect();
    let miss = vec![Instruction::Apply(flood)];
    rules.push(rule(ROUTES, 0, Reason::Miss, vec![], miss));
    rules
}

fn forged() -> FlowMod {
    FlowMod {
        cookie: MARK,
        table: COPIES,
        priority: 100,
        matches: Match(vec![Field::EthType(ETHERTYPE)]),
        instructions: Vec::new(),
    }
}

/// What finds links: frames of LLDP are copied.
pub fn frames_of_links() -> FlowMod {
    FlowMod {
        cookie: MARK | Reason::Lldp as u64,
        table: COPIES,
        priority: 100,
        matches: Match(vec![Field::EthType(lldp::ETHERTYPE)]),
        instructions: vec![Instruction::Apply(vec![Action::Copy(WHOLE)])],
    }
}

/// The table, cookie and mask of all routes.
pub const ALL_ROUTES: (u8, u64, u64) = (ROUTES, MARK, MASK_OWNER);

fn route(from: Mac, to: Mac, out: Place) -> FlowMod {
    FlowMod {
        cookie: MARK,
        table: ROUTES,
        priority: 10,
        matches: Match(vec![Field::EthSrc(from.0), Field::EthDst(to.0)]),
        instructions: vec![Instruction::Apply(vec![Action::Output(out.port)])],
    }
}
