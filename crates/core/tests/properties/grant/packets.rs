// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//! What single packets may do: of receivers with little room, of late or odd senders, or forged ones.

use super::overload::Overload;
use super::{ACTIVE, IDLE, MSS, SCALE, View, WAITING, open};
use penstock_core::flow::flag;
use penstock_core::{Grant, GrantOpening, GrantPacket};

const QUEUED: u32 = 1_000_000;

/// An ACK of a flow's receiver.
struct Ack {
    seq: u32,
    ack: u32,
    payload: u32,
    window: u16,
    scale: u8,
}

impl Ack {
    fn of(ack: u32) -> Ack {
        Ack {
            seq: 100,
            ack,
            payload: 0,
            window: 60_000,
            scale: SCALE,
        }
    }

    /// Bytes that its sender may have in flight.
    fn pass(&self, port: &mut Overload, flow: u32, queue_bytes: u32) -> u32 {
        let packet = GrantPacket {
            now_ns: port.now_ns,
            seq: self.seq,
            ack: self.ack,
            payload: self.payload,
            window: self.window,
            scale: self.scale,
            flags: flag::ACK,
            ..GrantPacket::default()
        };
        u32::from(port.grant.on_ack(flow, &packet, queue_bytes)) << self.scale
    }
}

fn data(port: &mut Overload, flow: u32, seq: u32, payload: u32) {
    send(port, flow, seq, payload, flag::ACK);
}

fn send(port: &mut Overload, flow: u32, seq: u32, payload: u32, flags: u8) {
    let packet = GrantPacket {
        now_ns: port.now_ns,
        seq,
        payload,
        mss: MSS as u16,
        flags,
        ..GrantPacket::default()
    };
    port.grant.on_data(flow, &packet);
}

fn state(grant: &Grant, flow: u32) -> i64 {
    View::new().flow(grant, flow, "state")
}

/// Of a window with large units, ACK by ACK, a waiting flow gets nothing by rounding.
#[test]
fn a_waiting_flow_sends_nothing_whatever_the_scale() {
    for scale in 0..=14 {
        let mut port = Overload::new(&[]);
        port.ask_at(0); // another holds credit
        let flow = open(&mut port.grant, scale, &GrantOpening::default());
        let request = Ack {
            payload: 100,
            scale,
            window: 65_535,
            ..Ack::of(0)
        };
        request.pass(&mut port, flow, QUEUED);
        data(&mut port, flow, 0, 20 * MSS); // on the way since before
        let (mut sent, mut acked) = (20 * MSS, 0);
        for _ in 0..1000 {
            let ack = Ack {
                scale,
                window: 65_535,
                ..Ack::of(acked)
            };
            let room = acked + ack.pass(&mut port, flow, QUEUED);
            while sent + MSS <= room {
                data(&mut port, flow, sent, MSS);
                sent += MSS;
            }
            acked = sent.min(acked + 2 * MSS);
            port.now_ns += 100_000;
        }
        assert_eq!(state(&port.grant, flow), WAITING);
        assert_eq!(sent, 20 * MSS, "at {scale}");
    }
}

/// No receiver takes what is beyond its window, so nothing is granted for it.
#[test]
fn data_beyond_all_windows_does_not_count() {
    let mut port = Overload::new(&[]);
    let flow = port.ask();
    let ack = Ack {
        window: 100,
        ..Ack::of(0)
    };
    ack.pass(&mut port, flow, QUEUED);
    data(&mut port, flow, 4_000_000, MSS);
    assert_eq!(ack.pass(&mut port, flow, QUEUED), 0);
    assert_eq!(View::new().flow(&port.grant, flow, "seen"), 0);
}

/// Only data that a grant had covered, before it was taken back, shows a queue elsewhere.
#[test]
fn data_that_was_never_granted_shows_no_queue() {
    let (view, mut port) = (View::new(), Overload::new(&[]));
    let flow = port.ask_at(0);
    let edge = view.flow(&port.grant, flow, "most") as u32;
    data(&mut port, flow, edge, 1000);
    assert_eq!(view.port(&port.grant, "queued_ns"), 0);
}

/// The sender of a keepalive has a window already.
#[test]
fn keepalives_get_no_grant() {
    let mut port = Overload::new(&[]);
    let flow = port.ask_at(0);
    send(&mut port, flow, 0, 500, flag::ACK | flag::PSH);
    Ack::of(500).pass(&mut port, flow, 0);
    for payload in [0, 1] {
        data(&mut port, flow, 499, payload);
        assert_eq!(state(&port.grant, flow), IDLE);
    }
}

/// A flow holds no more credit than its receiver has room for, and asks when that is used up.
#[test]
fn credit_is_bounded_by_the_receiver() {
    let (view, mut port) = (View::new(), Overload::new(&[]));
    let flow = open(&mut port.grant, 0, &GrantOpening::default());
    let request = Ack {
        payload: 100,
        window: 2 * MSS as u16,
        scale: 0,
        ..Ack::of(0)
    };
    assert_eq!(request.pass(&mut port, flow, 0), 2 * MSS);
    assert_eq!(view.port(&port.grant, "outstanding"), i64::from(2 * MSS));
    data(&mut port, flow, 0, 2 * MSS);
    assert_eq!(state(&port.grant, flow), WAITING);
}

/// A receiver without room is granted nothing that others could use.
#[test]
fn a_shut_receiver_gets_no_grant() {
    let mut port = Overload::new(&[]);
    let flow = open(&mut port.grant, SCALE, &GrantOpening::default());
    let request = Ack {
        payload: 100,
        window: 0,
        ..Ack::of(0)
    };
    assert_eq!(request.pass(&mut port, flow, 0), 0);
    assert_ne!(state(&port.grant, flow), ACTIVE);
    assert_eq!(View::new().port(&port.grant, "outstanding"), 0);
}

/// What a receiver reports while it reads a long answer, as HTTP/2's window updates, does not end the message.
#[test]
fn reports_of_the_receiver_end_no_message() {
    let (view, mut port) = (View::new(), Overload::new(&[]));
    let other = port.ask_at(0);
    let flow = port.ask_amid(64 * MSS);
    let report = Ack {
        payload: 13,
        ..Ack::of(64 * MSS)
    };
    let bytes_after = |port: &mut Overload, later_ns: u64| {
        port.now_ns += later_ns;
        report.pass(port, flow, QUEUED);
        view.flow(&port.grant, flow, "attained")
    };
    // It waits; then its sender has a grant, of which nothing can have come yet.
    assert_eq!(bytes_after(&mut port, 1_000_000), i64::from(64 * MSS));
    port.grant.close(other);
    port.next();
    assert_eq!(bytes_after(&mut port, 0), i64::from(64 * MSS));
    // It has had the time to use the grant: now the client asks for something else.
    assert_eq!(bytes_after(&mut port, 1_000_000), 0);
}

/// A last segment that lacks only what options may take ends a message, if a request follows at once:
/// or the next answer would go on in a level behind those of the same length.
#[test]
fn a_request_ends_what_may_have_ended() {
    let attained_after = |payload: u32, flags: u8| {
        let (view, mut port) = (View::new(), Overload::new(&[]));
        let flow = port.ask_at(0);
        data(&mut port, flow, 0, MSS);
        send(&mut port, flow, MSS, payload, flags);
        let request = Ack {
            payload: 100,
            ..Ack::of(MSS + payload)
        };
        let attained = view.flow(&port.grant, flow, "attained");
        request.pass(&mut port, flow, QUEUED);
        (attained, view.flow(&port.grant, flow, "attained"))
    };
    let (full, nearly) = (i64::from(2 * MSS), i64::from(2 * MSS - 18));
    let last = flag::ACK | flag::PSH;
    assert_eq!(attained_after(MSS - 18, last), (nearly, 0));
    assert_eq!(attained_after(MSS - 18, flag::ACK), (nearly, nearly));
    assert_eq!(attained_after(MSS, last), (full, full));
}

/// The next answer of such a flow, which waits as its credit is used up, is one that begins.
#[test]
fn the_next_answer_of_a_flow_that_waits_begins() {
    let (view, mut port) = (View::new(), Overload::new(&[]));
    let flow = port.ask_at(0);
    let end = view.flow(&port.grant, flow, "edge") as u32 - 200;
    data(&mut port, flow, 0, end - (MSS - 18));
    send(
        &mut port,
        flow,
        end - (MSS - 18),
        MSS - 18,
        flag::ACK | flag::PSH,
    );
    let waits_in = |port: &Overload| {
        assert_eq!(state(&port.grant, flow), WAITING);
        view.flow(&port.grant, flow, "level")
    };
    assert_eq!(waits_in(&port), 4);
    let request = Ack {
        payload: 100,
        ..Ack::of(end)
    };
    request.pass(&mut port, flow, QUEUED);
    assert_eq!(waits_in(&port), 0);
    assert_eq!(view.list(&port.grant, 0), [flow]);
}

/// A window that its sender has filled, to the byte, ends nowhere behind that: a message that ends
/// less than a unit of the scale further on was not cut.
#[test]
fn a_message_may_end_just_behind_a_window() {
    let (view, mut port) = (View::new(), Overload::new(&[]));
    let flow = port.ask_at(0);
    let shown = view.flow(&port.grant, flow, "most") as u32;
    let unit = 1 << SCALE;
    data(&mut port, flow, 0, shown);
    assert_eq!(state(&port.grant, flow), WAITING);
    assert_eq!(port.grant.next(0, port.now_ns).unwrap().flow, flow);
    send(&mut port, flow, shown, unit - 100, flag::ACK | flag::PSH);
    assert_eq!(state(&port.grant, flow), IDLE);
}

/// A server whose grant was taken back may have sent its answer before: that ends with its last segment, whatever
/// the window is now.
#[test]
fn an_answer_to_a_grant_that_was_taken_back_ends() {
    let (view, mut port) = (View::new(), Overload::new(&[]));
    let flow = port.ask_at(0);
    let bytes = view.flow(&port.grant, flow, "edge") as u32 - 3 * MSS;
    port.ask();
    while state(&port.grant, flow) == ACTIVE {
        port.now_ns += 1_000_000;
        port.grant.on_timer(0, port.now_ns);
    }
    assert_eq!(view.port(&port.grant, "messages"), 0);
    data(&mut port, flow, 0, bytes - 500);
    send(&mut port, flow, bytes - 500, 500, flag::ACK | flag::PSH);
    assert_eq!(state(&port.grant, flow), IDLE);
    assert_eq!(view.port(&port.grant, "messages"), 1);
}

/// A forged sequence number, far ahead of the receiver's, is in no grant once new data is acknowledged.
#[test]
fn a_forged_sequence_number_does_not_last() {
    let mut port = Overload::new(&[]);
    let other = port.ask_at(0);
    let flow = port.ask_amid(4 * MSS);
    let forged = Ack {
        seq: 5_000_000,
        ..Ack::of(2 * MSS)
    };
    forged.pass(&mut port, flow, QUEUED);
    Ack::of(4 * MSS).pass(&mut port, flow, QUEUED);
    port.grant.close(other);
    let grant = port.grant.next(0, port.now_ns).unwrap();
    assert_eq!((grant.flow, grant.seq), (flow, 100));
}
