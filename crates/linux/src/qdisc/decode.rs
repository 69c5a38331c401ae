// SPDX-License-Identifier: Apache-2.0
//! A qdisc from a message of the kernel (`linux/rtnetlink.h`, `linux/gen_stats.h`,
//! `linux/pkt_sched.h`). An attribute that is malformed or of another kernel's form is left out.

use netlink_packet_route::tc::{TcHeader, TcStatsBasic, TcStatsQueue};

use super::{Counters, Limit, Qdisc};
use crate::netlink::{attributes, text, u32_at, u64_at};

/// Length of `struct tcmsg`, bytes.
const TCMSG: usize = 20;

const TCA_STATS_BASIC: u16 = 1;
const TCA_STATS_QUEUE: u16 = 3;
const TCA_STATS_PKT64: u16 = 8;
const TCA_TBF_PARMS: u16 = 1;
const TCA_TBF_RATE64: u16 = 4;
const TCA_RED_PARMS: u16 = 1;
/// Of codel, fq_codel and pie.
const TCA_CODEL_LIMIT: u16 = 2;
/// Of fq and fq_pie.
const TCA_FQ_LIMIT: u16 = 1;

/// The qdisc of an RTM_NEWQDISC message.
pub fn qdisc(payload: &[u8]) -> Option<Qdisc> {
    let header = TcHeader::parse(payload).ok()?;
    let mut qdisc = Qdisc {
        interface: header.index as u32,
        handle: header.handle.into(),
        parent: header.parent.into(),
        ..Qdisc::default()
    };
    for attribute in attributes(payload.get(TCMSG..)?) {
        match attribute.kind() {
            // The kind comes before the options, whose form depends on it.
            libc::TCA_KIND => qdisc.kind = text(attribute.value()),
            libc::TCA_OPTIONS => options(&mut qdisc, attribute.value()),
            libc::TCA_STATS2 => qdisc.counters = counters(attribute.value()),
            _ => (),
        }
    }
    Some(qdisc)
}

fn counters(statistics: &[u8]) -> Counters {
    let mut counters = Counters::default();
    let mut packets = None;
    for attribute in attributes(statistics) {
        let value = attribute.value();
        match attribute.kind() {
            TCA_STATS_BASIC => {
                if let Ok(basic) = TcStatsBasic::parse(value) {
                    counters.sent_bytes = basic.bytes;
                    counters.sent_packets = basic.packets.into();
                }
            }
            TCA_STATS_QUEUE => {
                if let Ok(queue) = TcStatsQueue::parse(value) {
                    counters.backlog_bytes = queue.backlog;
                    counters.backlog_packets = queue.qlen;
                    counters.drops = queue.drops;
                }
            }
            TCA_STATS_PKT64 => packets = u64_at(value, 0),
            _ => (),
        }
    }
    if let Some(packets) = packets {
        counters.sent_packets = packets;
    }
    counters
}

/// Options of the kinds that report a limit, each in a form of its own.
fn options(qdisc: &mut Qdisc, value: &[u8]) {
    match qdisc.kind.as_str() {
        "bfifo" => qdisc.limit = u32_at(value, 0).map(Limit::Bytes),
        "pfifo" => qdisc.limit = u32_at(value, 0).map(Limit::Packets),
        // `struct tc_netem_qopt` and `struct tc_sfq_qopt`
        "netem" => qdisc.limit = u32_at(value, 4).map(Limit::Packets),
        "sfq" => qdisc.limit = u32_at(value, 8).map(Limit::Packets),
        "red" => qdisc.limit = word(value, TCA_RED_PARMS).map(Limit::Bytes),
        "codel" | "fq_codel" | "pie" => {
            qdisc.limit = word(value, TCA_CODEL_LIMIT).map(Limit::Packets);
        }
        "fq" | "fq_pie" => qdisc.limit = word(value, TCA_FQ_LIMIT).map(Limit::Packets),
        "tbf" => {
            let mut large = None;
            for attribute in attributes(value) {
                match attribute.kind() {
                    // `struct tc_tbf_qopt`: two ratespecs of 12 bytes, whose last word is bytes a
                    // second, then the limit. Rates above 32 bits follow in an attribute.
                    TCA_TBF_PARMS => {
                        let value = attribute.value();
                        qdisc.limit = u32_at(value, 24).map(Limit::Bytes);
                        qdisc.rate_bps = u32_at(value, 8).map(|rate| u64::from(rate) * 8);
                    }
                    TCA_TBF_RATE64 => large = u64_at(attribute.value(), 0),
                    _ => (),
                }
            }
            if let Some(rate) = large {
                qdisc.rate_bps = Some(rate.saturating_mul(8));
            }
        }
        _ => (),
    }
}

/// The first word of the attribute of a kind.
fn word(options: &[u8], kind: u16) -> Option<u32> {
    let mut all = attributes(options);
    let attribute = all.find(|attribute| attribute.kind() == kind)?;
    u32_at(attribute.value(), 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
        let mut bytes = (4 + value.len() as u16).to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(value);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    fn words(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    fn message(parent: u32, parts: &[Vec<u8>]) -> Vec<u8> {
        let header = words(&[0, 8, 0x1_0000, parent, 0]);
        [header, parts.concat()].concat()
    }

    /// A tbf of 25 MB/s with 128 kB of room.
    fn tbf(extra: &[Vec<u8>]) -> Vec<u8> {
        let mut parameters = vec![0u8; 36];
        parameters[8..12].copy_from_slice(&25_000_000u32.to_ne_bytes());
        parameters[24..28].copy_from_slice(&131_072u32.to_ne_bytes());
        let basic = [5_000_000_000u64.to_ne_bytes().to_vec(), words(&[7, 0])].concat();
        let mut statistics = vec![
            attribute(TCA_STATS_BASIC, &basic),
            attribute(TCA_STATS_QUEUE, &words(&[3, 4_500, 118, 0, 0])),
        ];
        statistics.extend_from_slice(extra);
        message(
            u32::MAX,
            &[
                attribute(libc::TCA_KIND, b"tbf\0"),
                attribute(libc::TCA_OPTIONS, &attribute(TCA_TBF_PARMS, &parameters)),
                attribute(libc::TCA_STATS2, &statistics.concat()),
            ],
        )
    }

    #[test]
    fn a_tbf_reports_its_rate_limit_and_counters() {
        let root = qdisc(&tbf(&[])).unwrap();
        let child = qdisc(&message(0x1_0001, &[])).unwrap();
        assert!(root.is_root() && !child.is_root() && child.is_below(&root));
        assert_eq!((root.interface, root.kind.as_str()), (8, "tbf"));
        assert_eq!(root.rate_bps, Some(200_000_000));
        assert_eq!(root.limit, Some(Limit::Bytes(131_072)));
        assert_eq!(
            root.counters,
            Counters {
                sent_bytes: 5_000_000_000,
                sent_packets: 7,
                backlog_bytes: 4_500,
                backlog_packets: 3,
                drops: 118,
            }
        );
    }

    #[test]
    fn other_kinds_report_their_limits() {
        let limit = |kind: &str, options: &[u8]| {
            let kind = [kind.as_bytes(), b"\0"].concat();
            let parts = [
                attribute(libc::TCA_KIND, &kind),
                attribute(libc::TCA_OPTIONS, options),
            ];
            qdisc(&message(u32::MAX, &parts)).unwrap().limit
        };
        let packets = Some(Limit::Packets(70));
        let [first, second] = [1, 2].map(|kind| attribute(kind, &words(&[70])));
        let other = attribute(9, &words(&[5]));
        assert_eq!(limit("netem", &words(&[3000, 70, 0])), packets);
        assert_eq!(limit("sfq", &words(&[1514, 0, 70, 1024, 127])), packets);
        for kind in ["codel", "fq_codel", "pie"] {
            assert_eq!(
                limit(kind, &[other.clone(), second.clone()].concat()),
                packets
            );
        }
        for kind in ["fq", "fq_pie"] {
            assert_eq!(
                limit(kind, &[other.clone(), first.clone()].concat()),
                packets
            );
        }
        assert_eq!(limit("red", &first), Some(Limit::Bytes(70)));
        assert_eq!(limit("cake", &first), None);
        assert_eq!(limit("fq_codel", &first), None);
    }

    #[test]
    fn packets_beyond_32_bits_are_counted() {
        let many = attribute(TCA_STATS_PKT64, &5_000_000_007u64.to_ne_bytes());
        let root = qdisc(&tbf(&[many])).unwrap();
        assert_eq!(root.counters.sent_packets, 5_000_000_007);
    }

    #[test]
    fn a_message_cut_short_or_garbled_is_no_panic() {
        let whole = tbf(&[]);
        for length in 0..whole.len() {
            let _ = qdisc(&whole[..length]);
        }
        for position in 0..whole.len() {
            let mut garbled = whole.clone();
            garbled[position] ^= 0xff;
            let _ = qdisc(&garbled);
        }
    }
}
