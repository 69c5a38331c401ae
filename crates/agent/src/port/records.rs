// SPDX-License-Identifier: Apache-2.0
//! The records of the ring buffers `samples` and `events` (`bpf/abi.h`), read field by field.
//! Records that are too short are rejected.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// One millisecond in which something left by the port, as one CPU saw it (`struct port_sample`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// When the millisecond began, CLOCK_MONOTONIC.
    pub time_ns: u64,
    /// The CPU; meaningless once CPUs are added up.
    pub cpu: u32,
    /// Packets that wanted to leave.
    pub packets: u32,
    /// Their bytes.
    pub bytes: u32,
    /// Longest queue that one of them found, bytes.
    pub queue_max: u32,
    /// Queue that the last of them found, bytes.
    pub queue_last: u32,
    /// Packets that the port's qdisc has dropped so far; wraps.
    pub drops: u32,
    /// Flows counted at its end.
    pub flows: u32,
    /// Flows that began.
    pub new_flows: u32,
    /// ACKs that came in.
    pub acks: u32,
    /// Of these, those whose window was lowered.
    pub rewritten: u32,
    /// Window that a flow may have, bytes.
    pub window_bytes: u32,
    /// ACKs that FairQ would have lowered.
    pub would_fairq: u32,
    /// ACKs that HSCC would have lowered.
    pub would_hscc: u32,
}

/// Sorts samples by time and merges those of the same millisecond.
pub fn add_up(mut samples: Vec<Sample>) -> Vec<Sample> {
    samples.sort_by_key(|sample| sample.time_ns);
    samples.dedup_by(|other, kept| {
        let is_same = other.time_ns == kept.time_ns;
        if is_same {
            kept.take(other);
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

impl Sample {
    /// Merges the same millisecond of another CPU. Which CPU was the last in it is unknown, so the
    /// longer queue counts as the last.
    fn take(&mut self, other: &Sample) {
        self.packets = self.packets.saturating_add(other.packets);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.queue_max = self.queue_max.max(other.queue_max);
        self.queue_last = self.queue_last.max(other.queue_last);
        self.drops = earlier(self.drops, other.drops);
        self.flows = self.flows.max(other.flows);
        self.new_flows = self.new_flows.saturating_add(other.new_flows);
        self.acks = self.acks.saturating_add(other.acks);
        self.rewritten = self.rewritten.saturating_add(other.rewritten);
        self.window_bytes = self.window_bytes.min(other.window_bytes);
        self.would_fairq = self.would_fairq.saturating_add(other.would_fairq);
        self.would_hscc = self.would_hscc.saturating_add(other.would_hscc);
    }
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

/// Takes fields off the front of a record, in the byte order of this machine.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (field, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*field)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_ne_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_ne_bytes)
    }

    /// As on the wire: big-endian.
    fn wire_port(&mut self) -> Option<u16> {
        self.take().map(u16::from_be_bytes)
    }
}

/// The address in 16 bytes of a key or event; IPv4 is in the first four.
pub fn address(bytes: [u8; 16], is_v6: bool) -> IpAddr {
    match is_v6 {
        true => IpAddr::V6(Ipv6Addr::from(bytes)),
        false => IpAddr::V4(Ipv4Addr::new(bytes[0], bytes[1], bytes[2], bytes[3])),
    }
}

impl Sample {
    /// Reads a record of `samples`; None if it is too short.
    pub fn read(record: &[u8]) -> Option<Sample> {
        let mut fields = Fields(record);
        Some(Sample {
            time_ns: fields.u64()?,
            cpu: fields.u32()?,
            packets: fields.u32()?,
            bytes: fields.u32()?,
            queue_max: fields.u32()?,
            queue_last: fields.u32()?,
            drops: fields.u32()?,
            flows: fields.u32()?,
            new_flows: fields.u32()?,
            acks: fields.u32()?,
            rewritten: fields.u32()?,
            window_bytes: fields.u32()?,
            would_fairq: fields.u32()?,
            would_hscc: fields.u32()?,
        })
    }
}

impl FlowEvent {
    /// Reads a record of `events`; None if it is too short, or of an unknown kind or family.
    pub fn read(record: &[u8]) -> Option<FlowEvent> {
        let mut fields = Fields(record);
        let (time_ns, begun_ns, bytes) = (fields.u64()?, fields.u64()?, fields.u64()?);
        let (source, destination) = (fields.take::<16>()?, fields.take::<16>()?);
        let ports = (fields.wire_port()?, fields.wire_port()?);
        let network = fields.u32()?;
        let [family, kind] = fields.take::<2>()?;
        let is_v6 = match family {
            4 => false,
            6 => true,
            _ => return None,
        };
        let kind = match kind {
            0 => EventKind::Begin,
            1 => EventKind::Transfer,
            2 => EventKind::End,
            _ => return None,
        };
        Some(FlowEvent {
            kind,
            time_ns,
            begun_ns,
            bytes,
            flow: FlowKey {
                source: (address(source, is_v6), ports.0),
                destination: (address(destination, is_v6), ports.1),
                network,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample_record() -> Vec<u8> {
        let mut record = 7_000_000u64.to_ne_bytes().to_vec();
        for field in 0..=13u32 {
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
        let sample = Sample::read(&sample_record()).unwrap();
        assert_eq!(sample.time_ns, 7_000_000);
        assert_eq!((sample.packets, sample.queue_max, sample.drops), (1, 3, 5));
        assert_eq!((sample.window_bytes, sample.would_hscc), (10, 12));
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
        // The reserved bytes at the end carry nothing.
        let sample = sample_record();
        assert!((0..sample.len() - 4).all(|length| Sample::read(&sample[..length]).is_none()));
        let event = event_record(4, 1);
        assert!((0..event.len() - 6).all(|length| FlowEvent::read(&event[..length]).is_none()));
        assert_eq!(FlowEvent::read(&event_record(5, 1)), None);
        assert_eq!(FlowEvent::read(&event_record(4, 3)), None);
    }
}
