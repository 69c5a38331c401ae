// SPDX-License-Identifier: Apache-2.0
//! The records that `penstockd observe` reads, number by number: samples of a millisecond, and events.

use std::cell::RefCell;
use std::os::fd::{AsFd, AsRawFd};
use std::rc::Rc;

use libbpf_rs::libbpf_sys::bpf_map_create_opts;
use libbpf_rs::{MapCore, MapFlags, MapHandle, MapType, RingBuffer, RingBufferBuilder};
use penstockd::host::clock::monotonic_ns;
use penstockd::port::config::FLOW_EVENTS;
use penstockd::port::plain::{bytes_of, of_bytes};
use penstockd::port::records::{EventKind, FlowEvent, read_sample};
use penstockd::skel::port::types;

use super::common::packet::{ACK, FIN, Segment, ethernet};
use super::port::Port;
use super::segments::{ack, flows, open, syn, syn_ack};

const MILLISECOND: u64 = 1_000_000;
const SECOND: u64 = 1000 * MILLISECOND;
const MICROSECOND: u64 = 1000;

/// The first slot.
const KEY: [u8; 4] = [0; 4];

/// A ring buffer that the programs of a port write to while it exists.
struct Ring<'port> {
    place: &'port dyn MapCore,
    ring: RingBuffer<'static>,
    records: Rc<RefCell<Vec<Vec<u8>>>>,
}

impl Ring<'_> {
    fn new(place: &dyn MapCore) -> Ring<'_> {
        let options = bpf_map_create_opts {
            sz: size_of::<bpf_map_create_opts>() as _,
            ..Default::default()
        };
        let map = MapHandle::create(MapType::RingBuf, Some("test"), 0, 0, 1 << 16, &options);
        let map = map.unwrap();
        let descriptor = map.as_fd().as_raw_fd().to_ne_bytes();
        place.update(&KEY, &descriptor, MapFlags::ANY).unwrap();
        let records = Rc::new(RefCell::new(Vec::new()));
        let into = Rc::clone(&records);
        let mut builder = RingBufferBuilder::new();
        let keep = move |record: &[u8]| {
            into.borrow_mut().push(record.to_vec());
            0
        };
        builder.add(&map, keep).unwrap();
        Ring {
            place,
            ring: builder.build().unwrap(),
            records,
        }
    }

    fn take<T>(&self, read: impl Fn(&[u8]) -> Option<T>) -> Vec<T> {
        self.ring.consume().unwrap();
        let records = std::mem::take(&mut *self.records.borrow_mut());
        records.iter().map(|record| read(record).unwrap()).collect()
    }
}

impl Drop for Ring<'_> {
    fn drop(&mut self) {
        let _ = self.place.delete(&KEY);
    }
}

/// Counters that differ from each other, and by another number each from those of `times` 0.
fn counters(times: u64) -> types::port_counters {
    let mut counters = types::port_counters {
        egress_packets: 1000 + 3 * times,
        egress_bytes: 5000 + 4000 * times,
        flows_begun: 70 + 5 * times,
        acks: 400 + 6 * times,
        acks_rewritten: 300 + 7 * times,
        ..Default::default()
    };
    for (number, count) in (1..).zip(&mut counters.would_rewrite) {
        *count = 20 * number + (8 + number) * times;
    }
    counters
}

#[test]
fn a_sample_is_what_was_counted_in_its_millisecond() {
    let port = Port::new();
    let ring = Ring::new(&port.0.maps.samples);
    let data = Segment::new("10.0.0.1", "10.0.0.2");
    port.run("fairq_egress", &syn(&data).frame());
    let samples = ring.take(read_sample);
    assert!(samples.is_empty(), "there was none before: {samples:?}");
    port.run("fairq_ingress", &syn_ack(&data).frame());
    port.run("fairq_egress", &data.frame());
    port.change_state(|state| state.sent_bytes = 100);
    let before = counters(1);
    port.change_stats(|stats| {
        stats.counters = before;
        stats.sample.before = counters(0);
        stats.sample.end_ns = 7 * MILLISECOND;
        (stats.sample.queue_max, stats.sample.queue_last) = (700, 300);
    });
    ring.take(read_sample);
    let begun = monotonic_ns();
    port.run("fairq_egress", &data.frame());
    let ended = monotonic_ns();
    let samples = ring.take(read_sample);
    let state = port.state();
    assert_eq!(samples.len(), 1);
    let sample = samples[0];
    assert_eq!(sample.time_ns, 6 * MILLISECOND);
    assert_eq!((sample.packets, sample.bytes), (3, 4000));
    assert_eq!((sample.queue_max, sample.queue_last), (700, 300));
    assert_eq!((sample.flows, sample.flows_begun), (1, 5));
    assert_eq!((sample.acks, sample.acks_rewritten), (6, 7));
    assert_eq!((sample.window_bytes, sample.drops), (state.window_bytes, 0));
    for (number, count) in (9..).zip(sample.would_rewrite) {
        assert_eq!(count, number);
    }
    assert_eq!((state.sent_bytes, state.queue_bytes), (4100, 300));
    // The next begins, on the CPU that the packet passed on.
    let all = port.stats_of_cpus();
    let next = all[sample.cpu as usize].sample;
    assert_eq!(bytes_of(&next.before), bytes_of(&before));
    assert_eq!((next.queue_max, next.end_ns % MILLISECOND), (0, 0));
    assert!(begun < next.end_ns && next.end_ns <= ended + MILLISECOND);
}

#[test]
fn milliseconds_are_counted_by_their_longest_queue() {
    let port = Port::new();
    let data = Segment::new("10.0.0.1", "10.0.0.2").frame();
    for (bytes, bucket) in [
        (0, 0),
        (1, 1),
        (2, 2),
        (3, 2),
        (4, 3),
        (0xffff, 16),
        (0x1_0000, 17),
        (u32::MAX, 32),
    ] {
        port.change_stats(|stats| {
            stats.depth.fill(0);
            (stats.sample.end_ns, stats.sample.queue_max) = (MILLISECOND, bytes);
        });
        port.run("observe_egress", &data);
        let mut expected = [0; 33];
        expected[bucket] = 1;
        assert_eq!(port.stats_of(0).depth, expected, "{bytes} bytes");
    }
}

/// As if the flows had sent earlier.
fn change_flows(port: &Port, change: impl Fn(&mut types::port_flow)) {
    let maps = &port.0.maps;
    for flows in [&maps.flows4, &maps.flows6] {
        for key in flows.keys().collect::<Vec<_>>() {
            let flow = flows.lookup(&key, MapFlags::ANY).unwrap().unwrap();
            let mut flow = of_bytes(&flow).unwrap();
            change(&mut flow);
            flows
                .update(&key, bytes_of(&flow), MapFlags::EXIST)
                .unwrap();
        }
    }
}

/// What a packet wrote, and the times before and after it.
struct Seen {
    events: Vec<FlowEvent>,
    begun: u64,
    ended: u64,
}

impl Seen {
    fn kinds(&self) -> Vec<(EventKind, u64)> {
        let kind = |event: &FlowEvent| (event.kind, event.bytes);
        self.events.iter().map(kind).collect()
    }

    /// The time is so many seconds before the packet, to the unit that an entry of a flow keeps.
    #[track_caller]
    fn was_before(&self, time_ns: u64, seconds: u64, unit: u64) {
        let then = time_ns + seconds * SECOND;
        let around = self.begun - unit..=self.ended + unit;
        assert!(around.contains(&then), "{then} is not in {around:?}");
    }
}

#[test]
fn events_report_flows_and_their_transfers() {
    use EventKind::{Begin, End, Transfer};
    const VLAN: u16 = 5;
    for (_, data) in flows() {
        let port = Port::new();
        port.configure(|config| config.flags = FLOW_EVENTS);
        let ring = Ring::new(&port.0.maps.events);
        let run = |side: &str, segment: &Segment| {
            let frame = ethernet(segment.source, &[(0x8100, VLAN)], &segment.ip());
            let begun = monotonic_ns();
            port.run(&format!("observe_{side}"), &frame);
            let events = ring.take(FlowEvent::read);
            for FlowEvent { flow, .. } in &events {
                let ends = [(data.source, 40_000), (data.destination, 80)];
                assert_eq!([flow.source, flow.destination], ends);
                assert_eq!(flow.network, u32::from(VLAN));
            }
            Seen {
                events,
                begun,
                ended: monotonic_ns(),
            }
        };
        run("egress", &syn(&data));
        run("ingress", &syn_ack(&data));
        let mut sent = data.with(|s| s.payload = 100);
        let first = run("egress", &sent);
        assert_eq!(first.kinds(), [(Begin, 0)]);
        first.was_before(first.events[0].time_ns, 0, 0);
        assert_eq!(first.events[0].begun_ns, first.events[0].time_ns);
        // More of the transfer, and some of it again; then the peer sends a request.
        (sent.seq, sent.payload) = (sent.seq + 100, 200);
        let last = run("egress", &sent);
        let again = run("egress", &sent);
        assert_eq!([last.kinds(), again.kinds()], [[], []]);
        assert_eq!(run("ingress", &ack(&sent)).kinds(), []);
        change_flows(&port, |flow| {
            flow.begun_ms = flow.begun_ms.wrapping_sub(10_000);
            flow.burst_us = flow.burst_us.wrapping_sub(3_000_000);
            flow.last_us = flow.last_us.wrapping_sub(2_000_000);
        });
        let seen = run("ingress", &ack(&sent).with(|s| s.payload = 50));
        assert_eq!(seen.kinds(), [(Transfer, 300)]);
        first.was_before(seen.events[0].begun_ns, 3, MICROSECOND);
        last.was_before(seen.events[0].time_ns, 2, MICROSECOND);
        // After a silence begins another.
        for kinds in [vec![], vec![(Transfer, 200)]] {
            sent.seq += 200;
            assert_eq!(run("egress", &sent).kinds(), kinds);
            change_flows(&port, |flow| flow.entry.last_ns -= SECOND);
        }
        let fin = sent.with(|s| (s.seq, s.payload, s.flags) = (s.seq + 200, 0, FIN | ACK));
        let seen = run("egress", &fin);
        assert_eq!(seen.kinds(), [(Transfer, 200), (End, 0)]);
        seen.was_before(seen.events[1].time_ns, 0, 0);
        first.was_before(seen.events[1].begun_ns, 10, MILLISECOND);
    }
}

/// A sweep reports of flows that fell silent the transfer, then the end.
#[test]
fn a_sweep_ends_the_transfers_of_silent_flows() {
    use EventKind::{End, Transfer};
    let port = Port::new();
    port.configure(|config| config.flags = FLOW_EVENTS);
    let ring = Ring::new(&port.0.maps.events);
    for (_, data) in flows() {
        open(&port, "observe", &data.with(|s| s.payload = 100));
    }
    let swept = || {
        ring.take(FlowEvent::read);
        port.sweep();
        let mut kinds: Vec<_> = ring
            .take(FlowEvent::read)
            .iter()
            .map(|it| (it.kind, it.bytes))
            .collect();
        kinds.sort_by_key(|(_, bytes)| *bytes);
        kinds
    };
    assert_eq!(swept(), []);
    change_flows(&port, |flow| flow.entry.last_ns -= SECOND);
    assert_eq!(swept(), [(Transfer, 100); 2]);
    port.configure(|config| (config.flags, config.window.idle_ns) = (FLOW_EVENTS, 1));
    assert_eq!(swept(), [(End, 0); 2]);
    assert_eq!(port.counters().flows_ended, 2);
}
