// SPDX-License-Identifier: Apache-2.0
//! Messages that are lost, repeated, late and in any order, a controller that starts again, and a clock that
//! jumps: a shim clamps no pair that has no flow, and none for longer than it may.

use penstock_controller::fabric::{FIND_NS, Place};
use penstock_controller::incast::{Incast, Limits};
use penstock_controller::lldp::Lldp;
use penstock_controller::network::Controller;
use penstock_controller::rules::Reason;
use penstock_controller::switch::Writes;
use penstock_core::tcp_rewrite::AckKind;
use penstock_core::{Params, SiccShim, definitions};
use penstock_sdn::message::{Agent, Body, Key, Order, QueueReport};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;
use std::path::{Path, PathBuf};

mod wire;

/// Nanoseconds of 36 years.
const YEARS: i64 = 1 << 60;
const SECRET: &[u8] = b"a secret of sixteen bytes or more";
const AGENT: u16 = 1;
const WATCHED: Place = Place {
    datapath: 1,
    port: 3,
};
const MS: u64 = 1_000_000;
const DURATION_NS: u64 = 10 * MS;

/// What becomes of a message.
#[derive(Clone, Copy, Debug)]
enum Fate {
    Arrives,
    Lost,
    Twice,
    /// After so many others.
    Late(usize),
}

#[derive(Clone, Debug)]
enum Event {
    /// Flows of a guest begin, more than fit.
    Incast(u8),
    /// A report of the queue, bytes.
    Report(u32),
    /// A sign of life of the agent, as each second.
    Hello,
    /// The controller is killed and starts again, and knows nothing.
    Restart,
    /// Time passes for both.
    Later(u64),
    /// The controller's clock jumps, forward or back.
    Jump(i64),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        4 => (1u8..3).prop_map(Event::Incast),
        6 => prop_oneof![Just(0u32), 0u32..200_000].prop_map(Event::Report),
        3 => Just(Event::Hello),
        1 => Just(Event::Restart),
        4 => (0u64..20 * MS).prop_map(Event::Later),
        1 => prop_oneof![any::<i32>().prop_map(i64::from), -YEARS..YEARS].prop_map(Event::Jump),
    ]
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        4 => Just(Fate::Arrives),
        2 => Just(Fate::Lost),
        1 => Just(Fate::Twice),
        2 => (1usize..6).prop_map(Fate::Late),
    ]
}

/// A way of messages, with those that are late.
#[derive(Default)]
struct Way {
    late: VecDeque<(usize, Vec<u8>)>,
}

impl Way {
    /// What arrives now that this is sent.
    fn send(&mut self, message: Vec<u8>, fate: Fate) -> Vec<Vec<u8>> {
        let mut arrives = match fate {
            Fate::Arrives => vec![message],
            Fate::Lost => Vec::new(),
            Fate::Twice => vec![message.clone(), message],
            Fate::Late(after) => {
                self.late.push_back((after, message));
                Vec::new()
            }
        };
        for (after, _) in &mut self.late {
            *after = after.saturating_sub(1);
        }
        let (due, left): (VecDeque<_>, _) = self.late.drain(..).partition(|(after, _)| *after == 0);
        self.late = left;
        arrives.extend(due.into_iter().map(|(_, message)| message));
        arrives
    }
}

fn params() -> Params {
    let mut params = Params::new(definitions::of("sicc"), 100_000);
    params.set_field("duration_ns", DURATION_NS);
    params
}

/// Controller, one switch, and an agent with the shims of both guests.
struct Bed {
    controller: Controller,
    controller_ns: u64,
    agent: Agent,
    now_ns: u64,
    session: u64,
    /// When something of the controller was understood last.
    received_ns: u64,
    to: Way,
    from: Way,
    pairs: BTreeMap<(IpAddr, IpAddr), SiccShim>,
    /// The last ON that each took.
    on_ns: BTreeMap<(IpAddr, IpAddr), u64>,
    port: u16,
}

impl Bed {
    fn new() -> Bed {
        let mut bed = Bed {
            controller: controller(),
            controller_ns: 1,
            agent: Agent::new(Key::new(SECRET), AGENT, 1),
            now_ns: 1,
            session: 1,
            received_ns: 1,
            to: Way::default(),
            from: Way::default(),
            pairs: BTreeMap::new(),
            on_ns: BTreeMap::new(),
            port: 1,
        };
        bed.restart();
        bed
    }

    fn restart(&mut self) {
        self.controller = controller();
        self.controller.connect(0, self.controller_ns);
        let greeting = wire::greeting(WATCHED.datapath);
        let now_ns = self.controller_ns;
        self.controller
            .on_bytes(0, &greeting, now_ns)
            .expect("it is right");
        self.controller_ns = now_ns.saturating_add(FIND_NS);
        self.controller.tick(self.controller_ns);
        for guest in 1..=2 {
            self.copy(&wire::segment(guest, 3, 9, 16), Reason::Miss, guest);
        }
        self.copy(&wire::segment(3, 1, 9, 16), Reason::Miss, 3);
    }

    fn copy(&mut self, frame: &[u8], reason: Reason, port: u8) {
        let copy = wire::copy(reason as u8, port.into(), frame);
        let now_ns = self.controller_ns;
        self.controller
            .on_bytes(0, &copy, now_ns)
            .expect("it is right");
    }

    /// An agent's message goes, and what the controller answers comes.
    fn exchange(&mut self, body: &Body, fates: &mut impl Iterator<Item = Fate>) {
        let sealed = self.agent.seal(body);
        let address = "127.0.0.1:1".parse().expect("an address");
        for message in self.to.send(sealed, fates.next().unwrap_or(Fate::Arrives)) {
            let now_ns = self.controller_ns;
            self.controller
                .on_datagram(address, &message, self.session + 77, now_ns);
        }
        self.deliver(fates);
    }

    /// What the controller has sent arrives, or not.
    fn deliver(&mut self, fates: &mut impl Iterator<Item = Fate>) {
        for (_, message) in self.controller.datagrams() {
            for message in self
                .from
                .send(message, fates.next().unwrap_or(Fate::Arrives))
            {
                let Ok(body) = self.agent.unseal(&message) else {
                    continue;
                };
                self.received_ns = self.now_ns;
                if let Body::Notices(notices) = body {
                    notices.iter().for_each(|notice| self.take(notice));
                }
            }
        }
    }

    fn take(&mut self, notice: &penstock_sdn::message::Notice) {
        let key = (notice.source, notice.destination);
        let pairs = self.pairs.entry(key);
        let pair = pairs.or_insert_with(|| SiccShim::new(&params()));
        match notice.order {
            Order::On(mss, scale) => {
                pair.on(mss, scale, self.now_ns);
                self.on_ns.insert(key, self.now_ns);
            }
            Order::Off => pair.off(),
        }
    }

    fn happen(&mut self, event: Event, fates: &mut impl Iterator<Item = Fate>) {
        match event {
            Event::Incast(guest) => {
                for _ in 0..8 {
                    self.port = self.port % 60_000 + 1;
                    let syn = wire::segment(guest, 3, self.port, 2);
                    self.copy(&syn, Reason::Segment, guest);
                }
                self.deliver(fates);
            }
            Event::Report(queue) => {
                let report = QueueReport {
                    datapath: WATCHED.datapath,
                    queues: vec![(WATCHED.port, queue)],
                };
                self.exchange(&Body::Queues(report), fates);
            }
            Event::Hello => {
                if self.now_ns - self.received_ns > 3000 * MS {
                    self.session += 1;
                    self.agent = Agent::new(Key::new(SECRET), AGENT, self.session);
                    self.received_ns = self.now_ns;
                }
                let guests = (1..=2).map(|last| IpAddr::from([10, 0, 0, last]));
                self.exchange(&Body::Hello(guests.collect()), fates);
            }
            Event::Restart => self.restart(),
            Event::Later(ns) => {
                self.now_ns += ns;
                self.controller_ns = self.controller_ns.saturating_add(ns);
                self.controller.tick(self.controller_ns);
            }
            Event::Jump(ns) => {
                self.controller_ns = self
                    .controller_ns
                    .saturating_add_signed(ns)
                    .clamp(1, 1 << 62);
                self.controller.tick(self.controller_ns);
            }
        }
    }

    fn clamped(&self) -> BTreeSet<(IpAddr, IpAddr)> {
        let pairs = self.pairs.iter();
        let lowers = |pair: &SiccShim| pair.on_ack(u16::MAX, Some(0), AckKind::Later, self.now_ns);
        let on = pairs.filter(|(_, pair)| lowers(pair).changed);
        on.map(|(key, _)| *key).collect()
    }
}

fn controller() -> Controller {
    let incast = Incast::new(&params(), Limits::default(), true);
    let keys = BTreeMap::from([(AGENT, (Key::new(SECRET), false))]);
    let watched = BTreeMap::from([(WATCHED, params())]);
    Controller::new(incast, watched, keys, Lldp::new(SECRET, 1), Writes::All)
}

/// The time of day jumps; all that controller and agents measure is by a clock that does not.
#[test]
fn nothing_reads_the_time_of_day() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut folders: Vec<PathBuf> = ["controller/src", "sdn/src", "agent/src/daemon"]
        .iter()
        .map(|folder| crates.join(folder))
        .collect();
    let mut files = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("it is there") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = std::fs::read_to_string(&path).expect("text");
            for word in ["SystemTime", "CLOCK_REALTIME", "UNIX_EPOCH"] {
                assert!(!text.contains(word), "{} has {word}", path.display());
            }
            files += 1;
        }
    }
    assert!(files > 30, "{files}");
}

proptest! {
    #[test]
    fn any_way_of_messages_leaves_no_wrong_clamp_and_none_that_stays(
        events in proptest::collection::vec(event(), 1..80),
        fates in proptest::collection::vec(fate(), 0..200),
    ) {
        let mut bed = Bed::new();
        let mut fates = fates.into_iter();
        let mut begun = BTreeSet::new();
        for event in events {
            if let Event::Incast(guest) = event {
                begun.insert((IpAddr::from([10, 0, 0, guest]), IpAddr::from([10, 0, 0, 3])));
            }
            bed.happen(event, &mut fates);
            let clamped = bed.clamped();
            prop_assert!(clamped.is_subset(&begun), "{:?} without a flow", clamped);
            for pair in &clamped {
                prop_assert!(bed.now_ns < bed.on_ns[pair] + DURATION_NS, "{:?}", pair);
            }
        }
        // Whatever it was, it is over after the longest clamp, without any further message.
        bed.now_ns += DURATION_NS;
        prop_assert_eq!(bed.clamped(), BTreeSet::new());

        // And when messages arrive again, incast is foreseen again: after the silence that begins another
        // session, and after what one before may have left in the way.
        bed.to.late.clear();
        bed.from.late.clear();
        for _ in 0..3 {
            bed.happen(Event::Later(3001 * MS), &mut fates);
            for _ in 0..3 {
                bed.happen(Event::Hello, &mut std::iter::empty());
            }
        }
        bed.happen(Event::Report(0), &mut std::iter::empty());
        bed.happen(Event::Later(DURATION_NS), &mut std::iter::empty());
        bed.happen(Event::Report(0), &mut std::iter::empty());
        bed.happen(Event::Incast(1), &mut std::iter::empty());
        bed.happen(Event::Report(0), &mut std::iter::empty());
        let pair = (IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 3]));
        prop_assert!(bed.clamped().contains(&pair), "incast is not foreseen any more");
    }
}
