// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//! Flows whose senders open their connections, and begin with a request or with much.

use super::overload::Overload;
use super::{ACTIVE, IDLE, MSS, SCALE, View, WAITING, open};
use penstock_core::flow::flag;
use penstock_core::{GrantOpening, GrantPacket};

const ALLOWANCE: u32 = 2 * MSS;

/// A connection at a full queue, opened by the sender of the data, and the window that its SYN-ACK shows.
fn connect(port: &mut Overload) -> (u32, u32) {
    let window = accept(port);
    (end_handshake(port, window), window)
}

/// The window of a SYN-ACK.
fn accept(port: &Overload) -> u32 {
    port.grant.syn_window(MSS, 0, 1_000_000, port.now_ns)
}

/// The sender, which has been shown this window, ends its handshake.
fn end_handshake(port: &mut Overload, window: u32) -> u32 {
    let opening = GrantOpening {
        seq: 0,
        window: 60_000,
        shown: window as u16,
        by_sender: 1,
    };
    let flow = open(&mut port.grant, SCALE, &opening);
    port.next_seq.insert(flow, 0);
    message(port, flow, 0, false);
    flow
}

/// What the other end sends: the window field of such a packet.
fn acked(port: &mut Overload, flow: u32, payload: u32, flags: u8) -> u32 {
    let packet = GrantPacket {
        now_ns: port.now_ns,
        ack: port.next_seq[&flow],
        payload,
        window: 60_000,
        scale: SCALE,
        flags,
        ..GrantPacket::default()
    };
    port.grant.on_ack(flow, &packet, 1_000_000).into()
}

/// It begins with so many bytes, as the windows of its grants let it.
fn begin(port: &mut Overload, flow: u32, bytes: u32) {
    let first = bytes.min(ALLOWANCE);
    let is_short = bytes < ALLOWANCE;
    message(port, flow, first, is_short);
    if !is_short {
        message(port, flow, bytes - first, true);
    }
}

fn message(port: &mut Overload, flow: u32, bytes: u32, is_end: bool) {
    let seq = port.next_seq[&flow];
    let packet = GrantPacket {
        now_ns: port.now_ns,
        seq,
        payload: bytes,
        mss: MSS as u16,
        flags: flag::ACK | if is_end { flag::PSH } else { 0 },
        ..GrantPacket::default()
    };
    port.grant.on_data(flow, &packet);
    port.next_seq.insert(flow, seq + bytes);
}

/// A port that has seen many requests of new connections.
fn brief() -> (Overload, View) {
    let mut port = Overload::new(&[]);
    learn(&mut port);
    (port, View::new())
}

fn learn(port: &mut Overload) {
    for _ in 0..40 {
        let (flow, _) = connect(port);
        port.grant.next(0, port.now_ns);
        begin(port, flow, 300);
        port.grant.close(flow);
        port.now_ns += 1_000_000;
    }
}

/// Those who open connections wait for a grant at first; where they begin with requests they have what idle flows have,
/// however long the queue.
#[test]
fn requests_of_new_connections_do_not_wait() {
    let mut unknown = Overload::new(&[]);
    let (flow, window) = connect(&mut unknown);
    assert_eq!(window, 0);
    assert_eq!(View::new().flow(&unknown.grant, flow, "state"), WAITING);

    let (mut port, view) = brief();
    port.ask();
    let (flow, window) = connect(&mut port);
    assert_eq!(window, ALLOWANCE);
    assert_eq!(view.flow(&port.grant, flow, "state"), IDLE);
}

/// At a free port the SYN-ACK itself grants, if all whose handshake is under way could have as much; what it has granted
/// counts when the handshake ends.
#[test]
fn a_free_port_grants_with_the_syn_ack() {
    let mut port = Overload::new(&[]);
    let offered = |others: u32| port.grant.syn_window(MSS, others, 0, 0);
    let grant = offered(0);
    assert!(grant > 5 * MSS, "{grant}");
    assert_eq!(
        [offered(1), offered(7), offered(1000)],
        [grant, ALLOWANCE, 0]
    );
    let flow = end_handshake(&mut port, grant);
    let view = View::new();
    assert_eq!(view.flow(&port.grant, flow, "state"), ACTIVE);
    assert_eq!(view.port(&port.grant, "outstanding"), i64::from(grant));
    message(&mut port, flow, grant, false);
    assert_eq!(view.flow(&port.grant, flow, "state"), WAITING);
}

/// The answer to a request is no request: the one who asked keeps what an idle flow may send.
#[test]
fn answers_ask_for_nothing() {
    let (mut port, view) = brief();
    let (flow, _) = connect(&mut port);
    // Nor does an end that speaks first ask for anything.
    for bytes in [0, 300, 500] {
        if bytes > 0 {
            begin(&mut port, flow, bytes);
        }
        let window = acked(&mut port, flow, 1000, flag::ACK) << SCALE;
        assert!((ALLOWANCE..ALLOWANCE + (1 << SCALE)).contains(&window));
        assert_eq!(view.flow(&port.grant, flow, "state"), IDLE);
    }
    // One who made use of a grant may send much again.
    message(&mut port, flow, ALLOWANCE, false);
    assert_eq!(port.next(), flow);
    message(&mut port, flow, 1500, true);
    assert_eq!(acked(&mut port, flow, 1000, flag::ACK), 0);
    assert_eq!(view.flow(&port.grant, flow, "state"), WAITING);
}

/// A sender that was shown a window of 0 waits for a grant, whatever the port has learned since.
#[test]
fn one_that_was_shown_no_window_asks() {
    let mut port = Overload::new(&[]);
    let window = accept(&port);
    assert_eq!(window, 0);
    learn(&mut port);
    let flow = end_handshake(&mut port, window);
    assert_eq!(View::new().flow(&port.grant, flow, "state"), WAITING);
}

/// One who may send its allowance keeps it while it is silent, also if others begin with much meanwhile.
#[test]
fn what_was_shown_is_kept() {
    let (mut port, view) = brief();
    let (flow, window) = connect(&mut port);
    assert_eq!(window, ALLOWANCE);
    for _ in 0..4 {
        let (other, _) = connect(&mut port);
        begin(&mut port, other, 20_000);
    }
    message(&mut port, flow, 0, false);
    assert_eq!(view.flow(&port.grant, flow, "state"), IDLE);
}

/// Two whole segments fit the allowance, but do not show that no more follow.
#[test]
fn a_full_allowance_is_not_short() {
    let (mut port, view) = brief();
    let before = view.port(&port.grant, "brief");
    let (flow, _) = connect(&mut port);
    message(&mut port, flow, ALLOWANCE, true);
    assert!(view.port(&port.grant, "brief") < before);
}

/// A few that begin with much are enough for the next to wait.
#[test]
fn those_who_push_wait() {
    let (mut port, view) = brief();
    for _ in 0..2 {
        let (flow, window) = connect(&mut port);
        assert_eq!(window, ALLOWANCE);
        begin(&mut port, flow, 20_000);
    }
    let (flow, window) = connect(&mut port);
    assert_eq!(window, 0);
    assert_eq!(view.flow(&port.grant, flow, "state"), WAITING);
}
