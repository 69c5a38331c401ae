// SPDX-License-Identifier: Apache-2.0
//! The records of the ring buffers `samples` and `events` (`bpf/abi.h`). Records that are too
//! short are rejected.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::plain::of_bytes;
use crate::skel::port::types::{flow_event, flow_event_kind, port_sample};

/// One millisecond in which something left by the port, as one CPU saw it.
pub type Sample = port_sample;

/// Sorts samples by time and merges those of the same millisecond.
pub fn add_up(mut samples: Vec<Sample>) -> Vec<Sample> {
    samples.sort_by_key(|sample| sample.time_ns);
    samples.dedup_by(|other, sum| {
        let is_same = other.time_ns == sum.time_ns;
        if is_same {
            merge(sum, other);
        }
        is_same
    });
    // A CPU records a millisecond when it sends again, with the drops until then: these may include
    // drops of a later millisecond, but miss none.
    for index in (1..samples.len()).rev() {
        samples[index - 1].drops = earlier(samples[index - 1].drops, samples[index].drops);
    }
    samples
}

/// The earlier of two values of a counter that wraps.
fn earlier(one: u32, other: u32) -> u32 {
    if other.wrapping_sub(one) < 1 << 31 {
        one
    } else {
        other
    }
}

/// Merges the same millisecond of another CPU. Which CPU was the last in it is unknown, so the longer
/// queue counts as the last.
fn merge(sum: &mut Sample, other: &Sample) {
    for (total, more) in [
        (&mut sum.packets, other.packets),
        (&mut sum.bytes, other.bytes),
        (&mut sum.flows_begun, other.flows_begun),
        (&mut sum.acks, other.acks),
        (&mut sum.acks_rewritten, other.acks_rewritten),
    ] {
        *total = total.saturating_add(more);
    }
    for (total, more) in sum.would_rewrite.iter_mut().zip(other.would_rewrite) {
        *total = total.saturating_add(more);
    }
    sum.queue_max = sum.queue_max.max(other.queue_max);
    sum.queue_last = sum.queue_last.max(other.queue_last);
    sum.drops = earlier(sum.drops, other.drops);
    sum.flows = sum.flows.max(other.flows);
    sum.window_bytes = sum.window_bytes.min(other.window_bytes);
}

/// The kind of a [`FlowEvent`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// A flow began.
    Begin,
    /// A burst of data of one flow is over.
    Transfer,
    /// A flow ended.
    End,
}

/// The two ends of a flow, the source of the data first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FlowKey {
    /// Address and TCP port of the sender of the data.
    pub source: (IpAddr, u16),
    /// Address and TCP port of its receiver.
    pub destination: (IpAddr, u16),
    /// VLAN tags or VNI.
    pub network: u32,
}

/// An event of a flow (`struct flow_event`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowEvent {
    /// Its kind.
    pub kind: EventKind,
    /// Time, CLOCK_MONOTONIC; of a transfer, of its last data.
    pub time_ns: u64,
    /// When the flow, or the transfer, began.
    pub begun_ns: u64,
    /// Payload of the transfer, bytes.
    pub bytes: u64,
    /// The flow.
    pub flow: FlowKey,
}

/// The address in 16 bytes of a key or event; IPv4 is in the first four.
pub fn address(bytes: [u8; 16], is_v6: bool) -> IpAddr {
    match is_v6 {
        true => IpAddr::V6(Ipv6Addr::from(bytes)),
        false => IpAddr::V4(Ipv4Addr::new(bytes[0], bytes[1], bytes[2], bytes[3])),
    }
}

/// The struct that a record begins with; None if it is too short.
fn first<T: Copy>(record: &[u8]) -> Option<T> {
    of_bytes(record.get(..size_of::<T>())?)
}

/// Reads a record of `samples`; None if it is too short.
pub fn read_sample(record: &[u8]) -> Option<Sample> {
    first(record)
}

impl FlowEvent {
    /// Reads a record of `events`; None if it is too short, or of an unknown kind or family.
    pub fn read(record: &[u8]) -> Option<FlowEvent> {
        let event: flow_event = first(record)?;
        let is_v6 = match event.family {
            4 => false,
            6 => true,
            _ => return None,
        };
        let kind = match flow_event_kind(event.kind.into()) {
            flow_event_kind::FLOW_EVENT_BEGIN => EventKind::Begin,
            flow_event_kind::FLOW_EVENT_TRANSFER => EventKind::Transfer,
            flow_event_kind::FLOW_EVENT_END => EventKind::End,
            _ => return None,
        };
        let host = |words: [u32; 4], port: u16| {
            // SAFETY: the same bytes in smaller pieces.
            let bytes = unsafe { std::mem::transmute::<[u32; 4], [u8; 16]>(words) };
            (address(bytes, is_v6), u16::from_be(port))
        };
        Some(FlowEvent {
            kind,
            time_ns: event.time_ns,
            begun_ns: event.begun_ns,
            bytes: event.bytes,
            flow: FlowKey {
                source: host(event.source, event.source_port),
                destination: host(event.destination, event.destination_port),
                network: event.network,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample_record() -> Vec<u8> {
        let mut record = 7_000_000u64.to_ne_bytes().to_vec();
        let fields = (size_of::<Sample>() - 8) as u32 / 4;
        for field in 0..fields {
            record.extend(field.to_ne_bytes());
        }
        record
    }

    fn event_record(family: u8, kind: u8) -> Vec<u8> {
        let mut record = Vec::new();
        for field in [9u64, 5, 11_500] {
            record.extend(field.to_ne_bytes());
        }
        let mut addresses = [0u8; 32];
        addresses[..4].copy_from_slice(&[10, 0, 0, 1]);
        addresses[16..20].copy_from_slice(&[10, 0, 1, 2]);
        record.extend(addresses);
        record.extend([0x1f, 0x90, 0x9c, 0x40]);
        record.extend(3u32.to_ne_bytes());
        record.extend([family, kind, 0, 0, 0, 0, 0, 0]);
        record
    }

    #[test]
    fn a_sample_is_read_in_the_order_of_the_abi() {
        let sample = read_sample(&sample_record()).unwrap();
        assert_eq!(sample.time_ns, 7_000_000);
        assert_eq!((sample.packets, sample.queue_max, sample.drops), (1, 3, 5));
        assert_eq!((sample.acks_rewritten, sample.window_bytes), (9, 10));
        assert_eq!(sample.would_rewrite[..3], [11, 12, 13]);
    }

    #[test]
    fn the_cpus_of_a_millisecond_add_up_to_one_sample() {
        let sample = |time_ns, cpu, drops| Sample {
            time_ns,
            cpu,
            packets: 3,
            queue_max: 100 * (cpu + 1),
            drops,
            ..Sample::default()
        };
        let all = vec![
            sample(2, 0, 5),
            sample(1, 1, u32::MAX),
            sample(2, 1, 4),
            sample(1, 0, 1),
            // Recorded late, as that CPU did not send again until the third millisecond.
            sample(0, 0, 3),
        ];
        let merged = add_up(all);
        assert_eq!(merged.len(), 3);
        let numbers = |s: &Sample| (s.time_ns, s.packets, s.queue_max, s.drops);
        assert_eq!(numbers(&merged[0]), (0, 3, 100, u32::MAX));
        assert_eq!(numbers(&merged[1]), (1, 6, 200, u32::MAX));
        assert_eq!(numbers(&merged[2]), (2, 6, 200, 4));
    }

    #[test]
    fn an_event_is_read_in_the_order_of_the_abi() {
        let event = FlowEvent::read(&event_record(4, 1)).unwrap();
        assert_eq!(event.kind, EventKind::Transfer);
        assert_eq!((event.time_ns, event.begun_ns, event.bytes), (9, 5, 11_500));
        assert_eq!(event.flow.source, ("10.0.0.1".parse().unwrap(), 8080));
        assert_eq!(
            event.flow.destination,
            ("10.0.1.2".parse().unwrap(), 40_000)
        );
        assert_eq!(event.flow.network, 3);
        let six = FlowEvent::read(&event_record(6, 2)).unwrap();
        assert!(six.flow.source.0.is_ipv6());
    }

    #[test]
    fn whatever_is_too_short_or_unknown_is_no_record() {
        let sample = sample_record();
        assert!((0..sample.len()).all(|length| read_sample(&sample[..length]).is_none()));
        let event = event_record(4, 1);
        assert!((0..event.len()).all(|length| FlowEvent::read(&event[..length]).is_none()));
        assert_eq!(FlowEvent::read(&event_record(5, 1)), None);
        assert_eq!(FlowEvent::read(&event_record(4, 3)), None);
    }
}
