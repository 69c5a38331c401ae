// SPDX-License-Identifier: Apache-2.0
//! Messages between controller and agents: lost, reordered, repeated, changed, of earlier sessions.

use penstock_sdn::message::{
    Agent, Ask, Body, FlowOptions, FlowReport, Key, MAX_FLOWS, MAX_NOTICES, Notice, OptionsReport,
    Order, Peer, QueueReport, Received, Refused, host_of,
};
use proptest::prelude::*;
use std::net::IpAddr;

const HOST: u16 = 7;

fn key() -> Key {
    Key::new(b"a secret of sixteen bytes or more")
}

fn notice(last: u8, order: Order) -> Notice {
    Notice {
        source: IpAddr::from([10, 0, 0, last]),
        destination: "2001:db8::1".parse().expect("an address"),
        order,
    }
}

fn notices() -> Vec<Notice> {
    vec![
        notice(1, Order::On(1460, Some(7))),
        notice(2, Order::On(8960, None)),
        notice(3, Order::Off),
    ]
}

fn orders() -> Body {
    Body::Notices(notices())
}

fn flow(source: [u8; 4], scales: Option<[u8; 2]>) -> FlowOptions {
    FlowOptions {
        source: (source, 40_000).into(),
        destination: "[2001:db8::1]:80".parse().expect("an address"),
        mss_bytes: 1460,
        scales,
    }
}

fn options(flows: Vec<FlowOptions>) -> OptionsReport {
    OptionsReport {
        datapath: 1 << 60,
        port: 7,
        flows,
    }
}

fn hello() -> Body {
    Body::Hello(vec![IpAddr::from([10, 0, 0, 1])])
}

/// Both ends, after the challenge.
fn ends() -> (Agent, Peer) {
    let (mut agent, mut peer) = (Agent::new(key(), HOST, 11), Peer::new(key(), HOST));
    let first = agent.seal(&hello());
    assert_eq!(host_of(&first), Some(HOST));
    let Ok(Received::Answer(answer)) = peer.unseal(&first, 99) else {
        panic!("a session that is not known is challenged");
    };
    assert_eq!(agent.unseal(&answer), Ok(Body::Notices(Vec::new())));
    let second = agent.seal(&hello());
    assert_eq!(peer.unseal(&second, 98), Ok(Received::Body(hello())));
    (agent, peer)
}

#[test]
fn both_ends_understand_each_other() {
    let (mut agent, mut peer) = ends();
    let sent = peer.seal(&orders()).expect("the agent has begun");
    assert_eq!(agent.unseal(&sent), Ok(orders()));
    let datapath = 1 << 60;
    for body in [
        Body::Flows(FlowReport {
            datapath,
            flows: vec![(1, 0), (2, u32::MAX)],
        }),
        Body::Options(options(vec![
            flow([10, 0, 0, 1], None),
            flow([10, 0, 0, 2], Some([0, 14])),
        ])),
    ] {
        let sent = peer.seal(&body).expect("the agent has begun");
        assert_eq!(agent.unseal(&sent).as_ref(), Ok(&body));
        let own = agent.seal(&body);
        assert_eq!(
            peer.unseal(&own, 1),
            Err(Refused::Malformed),
            "not of an agent"
        );
    }
    for body in [
        Body::Queues(QueueReport {
            datapath,
            queues: vec![(1, 0), (2, u32::MAX)],
        }),
        Body::Ask(Ask {
            datapath,
            ports: vec![(1, true), (2, false)],
        }),
    ] {
        let sent = agent.seal(&body);
        assert_eq!(peer.unseal(&sent, 1), Ok(Received::Body(body.clone())));
        let own = peer.seal(&body).expect("the agent has begun");
        assert_eq!(
            agent.unseal(&own),
            Err(Refused::Malformed),
            "of no controller"
        );
    }
}

#[test]
fn a_message_fits_the_smallest_path() {
    let (_, mut peer) = ends();
    let flow = flow([10, 0, 0, 1], Some([7, 9]));
    for most in [
        Body::Notices(vec![notice(1, Order::Off); MAX_NOTICES]),
        Body::Options(options(vec![flow; MAX_FLOWS])),
    ] {
        let bytes = peer.seal(&most).expect("the agent has begun").len();
        assert!((1190..=1232).contains(&bytes), "{bytes}");
    }
}

#[test]
fn an_agent_that_has_not_begun_is_sent_nothing() {
    assert_eq!(Peer::new(key(), HOST).seal(&orders()), None);
}

#[test]
fn a_message_is_taken_once_and_in_any_order() {
    let (mut agent, mut peer) = ends();
    let sent: Vec<_> = (0..3).filter_map(|_| peer.seal(&orders())).collect();
    for index in [2, 0, 1] {
        assert_eq!(agent.unseal(&sent[index]), Ok(orders()));
    }
    for message in &sent {
        assert_eq!(agent.unseal(message), Err(Refused::Repeated));
    }
}

#[test]
fn nothing_of_another_session_is_taken() {
    let (mut agent, mut peer) = ends();
    let old = peer.seal(&orders()).expect("the agent has begun");
    let (mut old_hello, report) = (agent.seal(&hello()), agent.seal(&hello()));

    // The agent was restarted.
    let mut agent = Agent::new(key(), HOST, 12);
    assert_eq!(agent.unseal(&old), Err(Refused::OtherSession));
    let first = agent.seal(&hello());
    let Ok(Received::Answer(answer)) = peer.unseal(&first, 55) else {
        panic!("a new session is challenged");
    };
    assert_eq!(agent.unseal(&answer), Ok(Body::Notices(Vec::new())));
    let second = agent.seal(&hello());
    assert_eq!(peer.unseal(&second, 1), Ok(Received::Body(hello())));
    // What the agent sent before is asked for its challenge, which none has received.
    for (message, random) in [(&report, 77), (&old_hello, 78)] {
        assert!(matches!(
            peer.unseal(message, random),
            Ok(Received::Answer(_))
        ));
    }
    let sent = peer.seal(&orders()).expect("the agent has begun");
    assert_eq!(agent.unseal(&sent), Ok(orders()), "the session goes on");

    // The controller was restarted: it asks again, and this session of the agent is over.
    let mut peer = Peer::new(key(), HOST);
    old_hello = agent.seal(&hello());
    let Ok(Received::Answer(answer)) = peer.unseal(&old_hello, 33) else {
        panic!("a session is not known after a restart");
    };
    assert_eq!(agent.unseal(&answer), Err(Refused::OtherSession));
    assert_eq!(agent.unseal(&old), Err(Refused::OtherSession));
}

#[test]
fn recorded_messages_keep_no_session_from_its_begin() {
    let mut peer = Peer::new(key(), HOST);
    let mut recorded: Vec<Vec<u8>> = (100..150)
        .map(|session| Agent::new(key(), HOST, session).seal(&hello()))
        .collect();
    for session in 1..5 {
        let mut agent = Agent::new(key(), HOST, session);
        let mut random = 1000 * session;
        let mut replay = |peer: &mut Peer| {
            for message in &recorded {
                random += 1;
                let answer = peer.unseal(message, random);
                assert!(!matches!(answer, Ok(Received::Body(_))), "{answer:?}");
            }
        };
        let first = agent.seal(&hello());
        replay(&mut peer);
        let Ok(Received::Answer(answer)) = peer.unseal(&first, 7 * session) else {
            panic!("a session that is not known is challenged");
        };
        replay(&mut peer);
        assert_eq!(agent.unseal(&answer), Ok(Body::Notices(Vec::new())));
        let second = agent.seal(&hello());
        assert_eq!(
            peer.unseal(&second, 9 * session),
            Ok(Received::Body(hello()))
        );
        assert_eq!(peer.unseal(&second, 1), Err(Refused::Repeated));
        // In the next session it is of no use, with its challenge.
        recorded.push(second);
    }
}

#[test]
fn the_own_messages_are_not_taken() {
    let (mut agent, mut peer) = ends();
    let own = agent.seal(&hello());
    assert_eq!(agent.unseal(&own), Err(Refused::Malformed));
    let own = peer.seal(&orders()).expect("the agent has begun");
    assert_eq!(peer.unseal(&own, 1), Err(Refused::Malformed));
}

#[test]
fn other_hosts_and_keys_are_refused() {
    let (mut agent, _) = ends();
    let sent = agent.seal(&hello());
    let mut other = Peer::new(key(), HOST + 1);
    assert_eq!(other.unseal(&sent, 1), Err(Refused::OtherHost));
    let mut other = Peer::new(Key::new(b"another secret of sixteen bytes"), HOST);
    assert_eq!(other.unseal(&sent, 1), Err(Refused::Forged));
}

proptest! {
    #[test]
    fn no_changed_message_is_taken(at in any::<proptest::sample::Index>(), bit in 0u8..8, cut in 0usize..200) {
        let (mut agent, mut peer) = ends();
        let sent = peer.seal(&orders()).expect("the agent has begun");
        let mut changed = sent.clone();
        changed[at.index(sent.len())] ^= 1 << bit;
        prop_assert!(agent.unseal(&changed).is_err());
        prop_assert!(agent.unseal(&sent[..cut.min(sent.len() - 1)]).is_err());
        prop_assert_eq!(agent.unseal(&sent), Ok(orders()));
    }

    #[test]
    fn any_bytes_are_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let (mut agent, mut peer) = ends();
        prop_assert!(agent.unseal(&bytes).is_err());
        prop_assert!(peer.unseal(&bytes, 1).is_err());
    }
}
