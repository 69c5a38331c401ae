// SPDX-License-Identifier: Apache-2.0
//! What a controller sends.

use crate::openflow::action::{Action, Instruction};
use crate::openflow::frame::{Version, kind};
use crate::openflow::matching::Match;
use crate::openflow::port::number;
use crate::openflow::read::Role;
use penstock_sdn::codec::Output;

/// The versions spoken here, oldest first.
pub(crate) const VERSIONS: [Version; 2] = [Version::V13, Version::V15];

/// The version in the header of our HELLO.
pub const HELLO: Version = Version::V13;

const NO_BUFFER: u32 = 0xffff_ffff;
const ALL_GROUPS: u32 = 0xffff_ffff;
const ALL_TABLES: u8 = 0xff;
const ADD: u8 = 0;
const DELETE: u8 = 3;

/// Subjects of multipart requests, `enum ofp_multipart_type`.
pub(crate) mod multipart {
    pub const RULES: u16 = 1;
    pub const PORT_DESC: u16 = 13;
}

/// Reasons of packets for the controller: no rule matches, or one sends it.
const PACKETS: u32 = 0b11;
/// In 1.5 also those that a PACKET_OUT brings (OFPR_PACKET_OUT), by patch ports from another bridge.
const PACKETS_15: u32 = PACKETS | 1 << 5;
/// Reasons why a port is reported: it is new, gone or changed.
const PORTS: u32 = 0b111;

/// A rule of a flow table.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FlowMod {
    /// Its mark.
    pub cookie: u64,
    /// The table it is in.
    pub table: u8,
    /// The highest that matches wins.
    pub priority: u16,
    /// The packets it applies to.
    pub matches: Match,
    /// What is done with them; nothing: they are dropped.
    pub instructions: Vec<Instruction>,
}

/// Writes messages one after the other, each with a number of its own.
#[derive(Clone, Debug)]
pub struct Writer {
    version: Version,
    next_xid: u32,
    bytes: Vec<u8>,
}

impl Writer {
    /// One that has written nothing.
    pub fn new(version: Version) -> Writer {
        Writer {
            version,
            next_xid: 1,
            bytes: Vec::new(),
        }
    }

    /// The version that is written from now on.
    pub fn set_version(&mut self, version: Version) {
        self.version = version;
    }

    /// What is to be sent; take from the front what was.
    pub fn bytes(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// HELLO with the versions spoken here.
    pub fn hello(&mut self) -> u32 {
        self.message(kind::HELLO, |_, out| {
            let bits = VERSIONS.iter().fold(0, |bits, one| bits | 1 << *one as u8);
            out.u16(1);
            out.u16(8);
            out.u32(bits);
        })
    }

    /// Asks whether the switch is there; it repeats the data.
    pub fn echo(&mut self, data: &[u8]) -> u32 {
        self.message(kind::ECHO_REQUEST, |_, out| out.extend(data))
    }

    /// Answers the request with the number `xid`.
    pub fn echo_reply(&mut self, xid: u32, data: &[u8]) {
        self.numbered(xid, kind::ECHO_REPLY, |_, out| out.extend(data));
    }

    /// Asks for the switch's number.
    pub fn features(&mut self) -> u32 {
        self.message(kind::FEATURES_REQUEST, |_, _| ())
    }

    /// Asks for all ports.
    pub fn ports(&mut self) -> u32 {
        self.multipart(multipart::PORT_DESC, |version, out| {
            if version == Version::V15 {
                out.u32(number::ANY);
                out.zeros(4);
            }
        })
    }

    /// Asks for the rules of a table whose cookies are as this one in the bits of the mask.
    pub fn rules(&mut self, table: u8, cookie: u64, mask: u64) -> u32 {
        self.multipart(multipart::RULES, |version, out| {
            out.push(table);
            out.zeros(3);
            out.u32(number::ANY);
            out.u32(ALL_GROUPS);
            out.zeros(4);
            out.u64(cookie);
            out.u64(mask);
            Match::default().write(version, out);
        })
    }

    /// Adds a rule, or replaces that with the same priority and match.
    pub fn add(&mut self, rule: &FlowMod) -> u32 {
        self.message(kind::FLOW_MOD, |version, out| {
            flow_mod(ADD, u64::MAX, rule, version, out);
        })
    }

    /// Removes all rules, of all tables, whose cookies are as this one in the bits of the mask.
    pub fn delete(&mut self, cookie: u64, mask: u64) -> u32 {
        let all = FlowMod {
            cookie,
            table: ALL_TABLES,
            priority: 0,
            matches: Match::default(),
            instructions: Vec::new(),
        };
        self.message(kind::FLOW_MOD, |version, out| {
            flow_mod(DELETE, mask, &all, version, out);
        })
    }

    /// Sends a packet, from Ethernet on.
    pub fn packet_out(&mut self, actions: &[Action], data: &[u8]) -> u32 {
        self.message(kind::PACKET_OUT, |version, out| {
            out.u32(NO_BUFFER);
            if version == Version::V13 {
                out.u32(number::CONTROLLER);
            }
            let length_at = out.len();
            out.u16(0);
            if version == Version::V13 {
                out.zeros(6);
            } else {
                out.zeros(2);
                let from = crate::openflow::Field::InPort(number::CONTROLLER);
                Match(vec![from]).write(version, out);
            }
            let start = out.len();
            Action::write_all(actions, out);
            out.set_length(length_at, start);
            out.extend(data);
        })
    }

    /// Asks for an answer when all before is done.
    pub fn barrier(&mut self) -> u32 {
        self.message(kind::BARRIER_REQUEST, |_, _| ())
    }

    /// Asks for a role; the switch refuses `election` if it knows of a later one.
    pub fn role(&mut self, role: Role, election: u64) -> u32 {
        self.message(kind::ROLE_REQUEST, |_, out| {
            out.u32(role as u32);
            out.zeros(4);
            out.u64(election);
        })
    }

    /// Asks for packets and changes of ports in any role; unasked, a slave gets no packets (§7.3.10).
    pub fn asynchronous(&mut self) -> u32 {
        self.message(kind::SET_ASYNC, |version, out| match version {
            // Each for master and slave; the last two are of rules that end.
            Version::V13 => [PACKETS, PACKETS, PORTS, PORTS, 0, 0]
                .into_iter()
                .for_each(|mask| out.u32(mask)),
            Version::V15 => [PACKETS_15, PACKETS_15, PORTS, PORTS]
                .into_iter()
                .zip(0..)
                .for_each(|(mask, property)| {
                    out.u16(property);
                    out.u16(8);
                    out.u32(mask);
                }),
        })
    }

    fn multipart(&mut self, subject: u16, body: impl FnOnce(Version, &mut Vec<u8>)) -> u32 {
        self.message(kind::MULTIPART_REQUEST, |version, out| {
            out.u16(subject);
            out.zeros(6);
            body(version, out);
        })
    }

    fn message(&mut self, kind: u8, body: impl FnOnce(Version, &mut Vec<u8>)) -> u32 {
        let xid = self.next_xid;
        self.next_xid = xid.wrapping_add(1).max(1);
        self.numbered(xid, kind, body);
        xid
    }

    fn numbered(&mut self, xid: u32, kind: u8, body: impl FnOnce(Version, &mut Vec<u8>)) {
        let start = self.bytes.len();
        self.bytes.extend([self.version as u8, kind, 0, 0]);
        self.bytes.u32(xid);
        body(self.version, &mut self.bytes);
        self.bytes.set_length(start + 2, start);
    }
}

/// §7.3.4.2
fn flow_mod(command: u8, cookie_mask: u64, rule: &FlowMod, version: Version, out: &mut Vec<u8>) {
    out.u64(rule.cookie);
    out.u64(cookie_mask);
    out.extend([rule.table, command]);
    out.zeros(4); // no timeouts
    out.u16(rule.priority);
    out.u32(NO_BUFFER);
    out.u32(number::ANY);
    out.u32(ALL_GROUPS);
    out.zeros(4); // no flags; importance
    rule.matches.write(version, out);
    for instruction in &rule.instructions {
        instruction.write(out);
    }
}
