// SPDX-License-Identifier: Apache-2.0
//! What every queue policy owes: no packet lost uncounted, none made, the order of each flow kept.

use super::{BOTTLENECK, HOSTS, dumbbell, random_traffic, transport};
use penstock_core::{Params, WindowScheme, definitions};
use penstock_scenario::units::{Buffer, Rate, Time};
use penstock_sim::network::Network;
use penstock_sim::packet::{Packet, flag};
use penstock_sim::queue::{Limit, codel, drr, hcf, pie, red, sfq, threshold};
use penstock_sim::rng::Rng;
use penstock_sim::window::{Policy, PortParams, Wscale};

const RATE: Rate = Rate(100_000_000);
const LIMIT: Limit = Limit::packets(20);

fn hcf(period: &str, swap: bool) -> Box<hcf::Hcf> {
    let definition = definitions::of("hcf");
    let mut params = Params::new(definition, 20);
    let word = |word: &definitions::Word| word.word == period;
    let words = &definition.param("period").unwrap().words;
    let fields = [
        ("bins", 4),
        ("credits", 2),
        ("period", words.iter().position(word).unwrap() as u64),
        ("swap", swap.into()),
    ];
    for (name, value) in fields {
        params.set_field(name, value);
    }
    let core = penstock_core::Hcf::new(&params, 7);
    let every = (period != "dynamic").then(|| Time::from_micros(300));
    Box::new(hcf::Hcf::new(core, every))
}

/// Puts a policy on the bottleneck.
type SetUp = Box<dyn Fn(&mut Network)>;

fn policies() -> Vec<(&'static str, SetUp)> {
    let red = |ecn| {
        let config = red::Config {
            ecn,
            weight: 0.1,
            min_threshold: 3.0,
            max_threshold: 9.0,
            ..red::Config::for_link(RATE, LIMIT)
        };
        move |n: &mut Network| n.set_admission(BOTTLENECK, Box::new(red::Red::new(config)))
    };
    let marking = threshold::Threshold::Packets(5);
    let codel = codel::Config {
        target: Time::from_micros(200),
        interval: Time::from_millis(1),
        ..codel::Config::new(LIMIT)
    };
    let pie = pie::Config {
        target: Time::from_micros(200),
        update_period: Time::from_micros(200),
        max_burst: Time::ZERO,
        alpha_per_s: 20.0,
        beta_per_s: 200.0,
        ecn: false,
        ..pie::Config::for_link(RATE)
    };
    vec![
        ("drop-tail", Box::new(|_: &mut Network| {})),
        ("red", Box::new(red(false))),
        ("red-ecn", Box::new(red(true))),
        (
            "threshold",
            Box::new(move |n: &mut Network| {
                n.set_admission(BOTTLENECK, Box::new(threshold::Marking::new(marking)));
            }),
        ),
        (
            "pie",
            Box::new(move |n: &mut Network| {
                n.set_admission(BOTTLENECK, Box::new(pie::Pie::new(pie)));
            }),
        ),
        (
            "codel",
            Box::new(move |n: &mut Network| {
                n.set_scheduler(BOTTLENECK, Box::new(codel::Codel::new(codel)));
            }),
        ),
        (
            "sfq",
            Box::new(|n: &mut Network| {
                let queue = sfq::Sfq::new(sfq::Config::new(LIMIT), Rng::new(4, 0));
                n.set_scheduler(BOTTLENECK, Box::new(queue));
            }),
        ),
        (
            "drr",
            Box::new(|n: &mut Network| {
                n.set_scheduler(BOTTLENECK, Box::new(drr::Drr::new(drr::Config::new(LIMIT))));
            }),
        ),
        (
            "hcf",
            Box::new(|n: &mut Network| {
                n.set_scheduler(BOTTLENECK, hcf("dynamic", true));
            }),
        ),
        (
            "hcf, ordered period",
            Box::new(|n: &mut Network| {
                n.set_scheduler(BOTTLENECK, hcf("ordered", true));
            }),
        ),
    ]
}

fn is_ordered(arrived: &[(Time, Packet)]) -> bool {
    (0..HOSTS).all(|host| {
        let seqs = arrived.iter().map(|(_, packet)| packet);
        let seqs = seqs.filter(|packet| packet.flow.0 == 2 * host);
        seqs.map(|packet| packet.seq).is_sorted_by(|a, b| a < b)
    })
}

/// What is sent and what arrives of random traffic at that load.
fn run(set_up: &SetUp, load: f64, seed: u64) -> (Network, usize, Vec<(Time, Packet)>) {
    let mut network = dumbbell(Buffer::Packets(21));
    set_up(&mut network);
    network.start();
    let packets = random_traffic(load, seed);
    let arrived = transport(&mut network, &packets);
    (network, packets.len(), arrived)
}

#[test]
fn every_packet_arrives_or_is_a_counted_loss_and_flows_keep_their_order() {
    for (name, set_up) in policies() {
        let mut lost = 0;
        for seed in 0..10 {
            for load in [0.5, 1.0, 3.0] {
                let (mut network, sent, arrived) = run(&set_up, load, seed);
                let counters = network.counters(BOTTLENECK, Time::from_secs(10));
                let drops = counters.drops.iter().sum::<u64>() as usize;
                assert_eq!(sent, arrived.len() + drops, "{name}");
                assert_eq!(network.take_losses().len(), drops, "{name}");
                let marked = arrived.iter().filter(|(_, p)| p.has(flag::CE)).count();
                assert!(counters.marks as usize >= marked, "{name}");
                assert!(is_ordered(&arrived), "{name}, seed {seed}");
                assert_eq!(network.backlog_bytes(Time::from_secs(1), BOTTLENECK), 0);
                assert_eq!(network.backlog_packets(Time::from_secs(1), BOTTLENECK), 0);
                lost += drops;
            }
        }
        assert!(lost > 0, "{name} lost nothing at three times the rate");
    }
}

/// HCF Theorem 1 needs the swap: at the end of a period low-priority packets are overtaken.
#[test]
fn hcf_without_the_swap_reorders() {
    let set_up: SetUp = Box::new(|network| {
        network.set_scheduler(BOTTLENECK, hcf("dynamic", false));
    });
    let disordered = (0..10).filter(|seed| !is_ordered(&run(&set_up, 1.5, *seed).2));
    assert!(disordered.count() > 0);
}

/// 21 packets.
const BUFFER: u32 = 31_500;

/// HSCC on the bottleneck, with sigma at half of the buffer.
fn hscc(cuts: bool) -> SetUp {
    Box::new(move |network| {
        let mut params = Params::new(definitions::of("hscc"), BUFFER);
        params.set("sigma", 0.5).unwrap();
        params.set_field("cuts", cuts.into());
        let port = PortParams {
            first_acks: 4,
            wscale: Wscale::default(),
            idle: Time::from_secs(1),
            never_shrink: false,
            counted_by_controller: false,
            sampled: None,
        };
        let policy = Policy::new(WindowScheme::new(&params), port);
        network.set_window(BOTTLENECK, Box::new(policy));
    })
}

/// HSCC §III-B: beyond sigma the ACK that a data packet carries goes on without its payload.
#[test]
fn a_cut_packet_goes_on_as_an_ack() {
    for cuts in [false, true] {
        let mut network = dumbbell(Buffer::Bytes(BUFFER.into()));
        hscc(cuts)(&mut network);
        network.start();
        let packets = random_traffic(3.0, 1);
        let (sent, arrived) = (packets.len(), transport(&mut network, &packets));
        let counters = network.counters(BOTTLENECK, Time::from_secs(10));
        let lost = counters.drops.iter().sum::<u64>() as usize;
        assert!(lost > 0);
        assert_eq!(network.take_losses().len(), lost);
        let acks = arrived.iter().filter(|(_, packet)| packet.payload == 0);
        assert_eq!(acks.count(), if cuts { lost } else { 0 });
        assert_eq!(arrived.len(), if cuts { sent } else { sent - lost });
        assert!(is_ordered(&arrived), "none overtakes another");
    }
}
