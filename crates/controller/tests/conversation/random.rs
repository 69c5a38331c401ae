// SPDX-License-Identifier: Apache-2.0
//! Whatever switches and agents send, the controller stands, and its state stays bounded.

use crate::wire::{copy, greeting, message, segment};
use crate::{SECRET, controller};
use penstock_controller::fabric::{FIND_NS, MAX_HOSTS, Place};
use penstock_controller::lldp::Lldp;
use penstock_controller::openflow::kind;
use penstock_controller::switch::Writes;
use penstock_sdn::message::{Agent, Ask, Body, Key, QueueReport};
use proptest::prelude::*;

/// Nanoseconds of 36 years.
const YEARS: i64 = 1 << 60;
const SWITCHES: usize = 2;

/// What happens next.
#[derive(Clone, Debug)]
enum Event {
    /// A message of a switch: its type and body.
    Message(usize, u8, Vec<u8>),
    /// A copy, as a rule made it: of a switch, with a reason and a port.
    Copy(usize, u8, u32, Vec<u8>),
    /// A datagram.
    Datagram(Vec<u8>),
    /// The agent reports a queue.
    Queue(u64, u32, u32),
    /// It asks for the flows of a port.
    Ask(u64, u32, bool),
    /// Time passes.
    Later(u64),
    /// The clock jumps, forward or back.
    Jump(i64),
    /// The switch connects again.
    Again(usize),
}

fn bytes(most: usize) -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(any::<u8>(), 0..most)
}

/// LLDP of this controller or another one, by some port of a switch.
fn link() -> impl Strategy<Value = Vec<u8>> {
    (1u64..3, 1u64..3, 0u32..4, 0u64..5).prop_map(|(sender, datapath, port, number)| {
        Lldp::new(SECRET, sender).frame(Place { datapath, port }, number)
    })
}

/// A SYN or FIN of one of few hosts.
fn any_segment() -> impl Strategy<Value = Vec<u8>> {
    let any = (0u8..4, 0u8..4, any::<u16>(), any::<u8>());
    any.prop_map(|(from, to, port, flags)| segment(from, to, port, flags))
}

fn event() -> impl Strategy<Value = Event> {
    let switch = || 0..SWITCHES;
    let multipart = (prop_oneof![Just(1u8), Just(13)], bytes(200)).prop_map(|(subject, rest)| {
        let head = [0, subject, 0, 0, 0, 0, 0, 0];
        (kind::MULTIPART_REPLY, [&head[..], &rest].concat())
    });
    let message = prop_oneof![(0u8..30, bytes(200)), multipart];
    prop_oneof![
        2 => (switch(), message).prop_map(|(at, (kind, body))| Event::Message(at, kind, body)),
        4 => (switch(), 0u8..5, 0u32..4, prop_oneof![1 => bytes(80), 6 => any_segment(), 1 => link()])
            .prop_map(|(at, reason, port, data)| Event::Copy(at, reason, port, data)),
        1 => bytes(120).prop_map(Event::Datagram),
        1 => (0u64..3, 0u32..3, any::<u32>()).prop_map(|(at, port, queue)| Event::Queue(at, port, queue)),
        1 => (0u64..3, 0u32..3, any::<bool>()).prop_map(|(at, port, all)| Event::Ask(at, port, all)),
        2 => (0u64..3_000_000_000).prop_map(Event::Later),
        1 => (-YEARS..YEARS).prop_map(Event::Jump),
        1 => switch().prop_map(Event::Again),
    ]
}

proptest! {
    #[test]
    fn any_conversation_is_survived(
        events in proptest::collection::vec(event(), 1..60),
        one_writes in any::<bool>(),
    ) {
        let mut controller = controller(if one_writes { Writes::One } else { Writes::All });
        let (mut now_ns, mut agent) = (1, Agent::new(Key::new(SECRET), 1, 7));
        let from = "127.0.0.1:1".parse().expect("an address");
        for at in 0..SWITCHES {
            controller.connect(at, now_ns);
            controller.on_bytes(at, &greeting(at as u64 + 1), now_ns).expect("it is right");
        }
        prop_assert_eq!(controller.fabric().switches().count(), SWITCHES);
        let hello = agent.seal(&Body::Hello(vec!["10.0.0.1".parse().expect("an address")]));
        controller.on_datagram(from, &hello, 5, now_ns);
        for (_, answer) in controller.datagrams() {
            agent.unseal(&answer).expect("it is of the controller");
        }
        now_ns += FIND_NS;
        for event in events {
            match event {
                Event::Message(at, kind, body) => {
                    if controller.on_bytes(at, &message(kind, &body), now_ns).is_err() {
                        controller.disconnect(at);
                    }
                }
                Event::Copy(at, reason, port, data) => {
                    let _ = controller.on_bytes(at, &copy(reason, port, &data), now_ns);
                }
                Event::Datagram(bytes) => controller.on_datagram(from, &bytes, 5, now_ns),
                Event::Queue(datapath, port, queue) => {
                    let queues = vec![(port, queue)];
                    let report = agent.seal(&Body::Queues(QueueReport { datapath, queues }));
                    controller.on_datagram(from, &report, 5, now_ns);
                }
                Event::Ask(datapath, port, wants_all) => {
                    let ports = vec![(port, wants_all)];
                    let ask = agent.seal(&Body::Ask(Ask { datapath, ports }));
                    controller.on_datagram(from, &ask, 5, now_ns);
                }
                Event::Later(ns) => now_ns = now_ns.saturating_add(ns),
                Event::Jump(ns) => now_ns = now_ns.saturating_add_signed(ns).clamp(1, 1 << 62),
                Event::Again(at) => {
                    controller.disconnect(at);
                    controller.connect(at, now_ns);
                    let _ = controller.on_bytes(at, &greeting(at as u64 + 1), now_ns);
                }
            }
            controller.report(now_ns);
            for lost in controller.tick(now_ns) {
                controller.disconnect(lost);
            }
            for (_, answer) in controller.datagrams() {
                let taken = agent.unseal(&answer);
                prop_assert!(taken.is_ok(), "{:?}", taken);
            }
            prop_assert!(controller.fabric().hosts().count() <= MAX_HOSTS);
            for connection in controller.connections() {
                let out = controller.output(connection).expect("it is connected");
                prop_assert!(out.len() < 1 << 20, "{} bytes", out.len());
                out.clear();
            }
        }
        let counters = controller.counters();
        prop_assert!(controller.ports().all(|(_, port)| port.flows <= counters.copies));
    }
}
