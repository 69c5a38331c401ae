// SPDX-License-Identifier: Apache-2.0
//! Two ports on the way of one pair of hosts, and what its shim does.

use super::*;
use crate::fabric::{Cable, Fabric, NO_MTU};
use crate::rng::Rng;
use penstock_core::definitions;
use penstock_scenario::units::{Buffer, Rate};

const FLOW: FlowId = FlowId(0);
const PORTS: [u32; 2] = [0, 2];
/// One new flow with its ten segments fills it.
const BUFFER: u32 = 10_000;
const DURATION: Time = Time::from_millis(10);

struct Bed {
    sicc: Sicc,
    network: Network,
}

impl Bed {
    fn new(params: &Params) -> Bed {
        let cable = Cable {
            rate: Rate(1_000_000_000),
            delay: Time(1),
            jitter: Time::ZERO,
            mtu: NO_MTU,
        };
        let port = (cable, Buffer::Packets(10));
        let fabric = Fabric::dumbbell([1, 1, 0], Buffer::Packets(10), [port; 3]);
        let links = PORTS.map(|link| (link, link, params.clone()));
        let channel = Channel::new(Time::ZERO, None, 0.0, Rng::new(1, 1));
        let mut bed = Bed {
            sicc: Sicc::new(params.clone(), links, channel, QueueReports::Instant),
            network: Network::new(&fabric, Rng::new(1, 0)),
        };
        bed.sicc.on_connect(FLOW, 0, 1);
        // The sender's shim sees the scale of the windows in the SYN-ACK.
        let mut answer = syn(FLOW.reverse(), flag::SYN | flag::ACK);
        bed.sicc.on_delivery(Time::ZERO, &mut answer);
        bed
    }

    /// A SYN or FIN leaves by both ports.
    fn pass(&mut self, time: Time, flags: u16) {
        for link in PORTS {
            let packet = syn(FLOW, flags);
            self.sicc.on_report(&Report { link, time, packet });
        }
        self.deliver(time);
    }

    fn deliver(&mut self, now: Time) {
        while let Some(message) = self.sicc.channel.receive(now) {
            self.sicc.receive(now, message, &mut self.network);
        }
    }

    /// The queue of one port is reported.
    fn report(&mut self, now: Time, port: usize, queue: u32) {
        self.sicc.decide(now, port, &[queue]);
        self.deliver(now);
    }

    /// Whether the window of an ACK for the sender is lowered.
    fn is_clamped(&mut self, now: Time) -> bool {
        let mut ack = Packet {
            flow: FLOW.reverse(),
            flags: flag::ACK,
            window: u16::MAX,
            ..Packet::default()
        };
        self.sicc.on_delivery(now, &mut ack);
        ack.window < u16::MAX
    }
}

fn syn(flow: FlowId, flags: u16) -> Packet {
    let options = SynOptions {
        mss: 1460,
        window_scale: Some(7),
        sack: false,
        timestamps: false,
    };
    Packet {
        flow,
        flags,
        options: options.pack(),
        ..Packet::default()
    }
}

fn ms(time: u64) -> Time {
    Time::from_millis(time)
}

fn default() -> Params {
    Params::new(definitions::of("sicc"), BUFFER)
}

#[test]
fn a_pair_is_clamped_until_no_port_wants_it() {
    let mut bed = Bed::new(&default());
    bed.pass(ms(0), flag::SYN);
    assert!(!bed.is_clamped(ms(0)));
    for port in [0, 1] {
        bed.report(ms(1), port, BUFFER);
    }
    assert!(bed.is_clamped(ms(1)));
    bed.report(ms(2), 0, 0);
    bed.report(ms(2), 1, BUFFER);
    assert!(bed.is_clamped(ms(2)), "the other port's queue is long");
    bed.report(ms(3), 0, 0);
    assert!(bed.is_clamped(ms(3)));
    bed.report(ms(4), 1, 0);
    assert!(!bed.is_clamped(ms(4)));
}

/// A port that never foresaw incast, or has ended it, holds no clamp of another up.
#[test]
fn ports_without_incast_keep_no_pair_clamped() {
    let mut bed = Bed::new(&default());
    bed.pass(ms(0), flag::SYN);
    bed.report(ms(1), 0, BUFFER);
    assert!(bed.is_clamped(ms(1)));
    bed.report(ms(2), 0, 0);
    assert!(!bed.is_clamped(ms(2)));
}

/// The next connection of the pair is not to begin under the clamp of the last.
#[test]
fn a_pair_whose_flows_have_ended_is_released() {
    let mut bed = Bed::new(&default());
    bed.pass(ms(0), flag::SYN);
    bed.report(ms(1), 0, BUFFER);
    bed.pass(ms(1), flag::FIN | flag::ACK);
    assert!(bed.is_clamped(ms(1)));
    bed.report(ms(2), 0, 0);
    assert!(!bed.is_clamped(ms(2)));
}

/// Algorithms 1 and 2: an OFF goes to all sources behind a port, and clears their flags.
#[test]
fn as_printed_the_off_of_one_port_ends_the_clamp_of_all() {
    let mut bed = Bed::new(&Params::paper(definitions::of("sicc"), BUFFER));
    bed.pass(ms(0), flag::SYN);
    for port in [0, 1] {
        bed.report(ms(1), port, BUFFER);
    }
    assert!(bed.is_clamped(ms(1)));
    let old = ms(1) + DURATION;
    bed.report(old, 1, BUFFER);
    assert!(bed.is_clamped(old), "its queue is long");
    bed.report(old, 0, 0);
    assert!(!bed.is_clamped(old));
}

/// The copy of its SYN was lost, that of the SYN-ACK was not, and it was reset without a FIN.
#[test]
fn a_number_that_is_used_again_has_no_flow_at_any_port() {
    let mut params = default();
    params.set_field("counts", 1);
    let mut bed = Bed::new(&params);
    let packet = syn(FLOW.reverse(), flag::SYN | flag::ACK);
    let (link, time) = (PORTS[0] ^ 1, ms(0));
    bed.sicc.on_report(&Report { link, time, packet });
    bed.deliver(ms(0));
    assert!(bed.sicc.ports[0].flows.contains(&FLOW));
    bed.sicc.on_connect(FLOW, 2, 3);
    assert!(bed.sicc.ports[0].flows.is_empty());
}
