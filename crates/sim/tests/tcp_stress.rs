// SPDX-License-Identifier: Apache-2.0
//! Two end points over a bad link: every byte arrives once and in order, and both sides close,
//! whatever the profile, the congestion control and the seed.

mod tcp_net;

use penstock_scenario::units::Time;
use penstock_sim::rng::Rng;
use penstock_sim::tcp::{Algorithm, Config, InitialSequence, Nagle, Recovery, State};
use tcp_net::{Link, Net};

const SEEDS: u64 = 1000;

/// `PENSTOCK_STRESS_SEEDS=100000` searches longer.
fn seeds() -> u64 {
    let seeds = std::env::var("PENSTOCK_STRESS_SEEDS").ok();
    seeds.and_then(|n| n.parse().ok()).unwrap_or(SEEDS)
}

/// One connection with everything drawn from `seed`: link, volumes in both directions, settings.
/// Returns how often a closed window was probed.
fn exercise(name: &str, base: &Config, seed: u64) -> u32 {
    let mut draw = Rng::new(seed, 1);
    let link = Link {
        loss: [0, 5, 20, 100, 250][draw.below(5) as usize],
        duplicate: [0, 10, 100][draw.below(3) as usize],
        mark: [0, 20, 300][draw.below(3) as usize],
        squeeze: [0, 50, 500][draw.below(3) as usize],
        delay: Time::from_micros(50),
        jitter: Time::from_micros([0, 0, 20, 400][draw.below(4) as usize]),
    };
    let mut cfg = base.clone();
    cfg.syn_retries = u8::MAX;
    cfg.retries = u8::MAX;
    cfg.max_rto = Time::from_secs(4);
    // Long enough for every retransmission of the last FIN: else it meets a RST.
    cfg.time_wait = Time::from_secs(120);
    cfg.initial_sequence = match draw.below(3) {
        0 => InitialSequence::Fixed(u32::MAX - draw.below(100_000) as u32),
        1 => InitialSequence::Fixed(0),
        _ => InitialSequence::Seeded(seed),
    };
    cfg.nagle = [Nagle::Off, Nagle::On, Nagle::Minshall][draw.below(3) as usize];
    cfg.limited_transmit = draw.below(2) == 0;
    cfg.impatient = draw.below(2) == 0;
    let mut peer = cfg.clone();
    peer.ack_every = 1 + draw.below(2) as u8;
    peer.receive_buffer = [peer.receive_buffer, 4_000, 20_000][draw.below(3) as usize];
    peer.initial_receive_window = peer.initial_receive_window.min(peer.receive_buffer);
    cfg.receive_buffer = [cfg.receive_buffer, 4_000, 20_000][draw.below(3) as usize];
    cfg.initial_receive_window = cfg.initial_receive_window.min(cfg.receive_buffer);
    let mut net = Net::new([cfg, peer], link, seed);
    let volume = [draw.below(200_000), draw.below(50_000) * draw.below(2)];
    for (side, bytes) in volume.into_iter().enumerate() {
        let first = draw.below(bytes + 1);
        net.write(side, first);
        net.write(side, bytes - first);
    }
    net.close(0);
    net.close_when_peer_closes(1);
    let limit = Time::from_secs(3_000);
    while net.now < limit && net.packets < 1_000_000 && net.step() {}
    let packets = net.packets;
    let context = || {
        format!(
            "{name}, {packets} packets, seed {seed}, {link:?}, {volume:?}\n{:?} {:?}\n{:?}\n{:?}",
            net.ends[0].state(),
            net.ends[1].state(),
            net.ends[0].stats(),
            net.ends[1].stats()
        )
    };
    // Two ends that answer each other's ACKs forever would send millions.
    assert!(packets < 100_000, "{}", context());
    for side in 0..2 {
        assert_eq!(
            net.ends[side].delivered(),
            volume[1 - side],
            "side {side}: {}",
            context()
        );
        assert_eq!(
            net.ends[side].acked(),
            volume[side],
            "side {side}: {}",
            context()
        );
        assert_eq!(
            net.ends[side].state(),
            State::Closed,
            "side {side}: {}",
            context()
        );
    }
    net.ends.iter().map(|end| end.stats().persist_probes).sum()
}

fn sweep(name: &str, cfg: &Config) {
    let probes: u32 = (0..seeds()).map(|seed| exercise(name, cfg, seed)).sum();
    assert!(probes > 0, "{name}: no window was ever closed");
}

fn with(base: Config, congestion: Algorithm, recovery: Recovery) -> Config {
    Config {
        ecn: true,
        congestion,
        recovery,
        ..base
    }
}

#[test]
fn newreno_ns2() {
    sweep("newreno_ns2", &Config::newreno_ns2());
}

#[test]
fn reno() {
    let cfg = Config {
        recovery: Recovery::Reno,
        ..Config::newreno_ns2()
    };
    sweep("reno", &cfg);
}

#[test]
fn linux() {
    sweep("linux", &Config::linux());
}

#[test]
fn linux_newreno_without_sack() {
    let cfg = Config {
        sack: false,
        timestamps: false,
        ..Config::linux()
    };
    sweep(
        "no sack",
        &Config {
            congestion: Algorithm::NewReno,
            ..cfg
        },
    );
}

#[test]
fn rfc6675_newreno_ecn() {
    sweep(
        "rfc6675",
        &with(Config::linux(), Algorithm::NewReno, Recovery::Sack),
    );
}

#[test]
fn rack_dctcp() {
    sweep(
        "dctcp",
        &with(Config::linux(), Algorithm::Dctcp, Recovery::Rack),
    );
}

#[test]
fn rack_bbr() {
    sweep(
        "bbr",
        &with(Config::linux(), Algorithm::Bbr, Recovery::Rack),
    );
}

#[test]
fn sack_bbr() {
    sweep(
        "bbr, rfc6675",
        &with(Config::linux(), Algorithm::Bbr, Recovery::Sack),
    );
}

#[test]
fn newreno_dctcp() {
    sweep(
        "dctcp, no sack",
        &with(Config::newreno_ns2(), Algorithm::Dctcp, Recovery::NewReno),
    );
}

#[test]
fn cubic_without_prr() {
    let cfg = with(
        Config::linux(),
        Algorithm::Cubic { hystart: false },
        Recovery::Sack,
    );
    sweep(
        "cubic",
        &Config {
            prr: false,
            tlp: false,
            ..cfg
        },
    );
}

/// Runs `bytes` from the opener over a clean link; both sides close.
fn clean(cfg: Config, bytes: u64) -> Net {
    let mut net = Net::new([cfg.clone(), cfg], Link::CLEAN, 1);
    net.write(0, bytes);
    net.close(0);
    net.close_when_peer_closes(1);
    net.run(Time::from_secs(10_000));
    assert!(net.is_closed());
    assert_eq!(net.ends[1].delivered(), bytes);
    net
}

#[test]
fn a_clean_link_wastes_nothing() {
    for base in [Config::newreno_ns2(), Config::linux()] {
        // Grows without bound on a link without a queue: limited by the window.
        let net = clean(
            Config {
                max_send_window: 1 << 20,
                ..base
            },
            10_000_000,
        );
        let stats = net.ends[0].stats();
        assert_eq!(net.ends[0].bytes_sent(), 10_000_000);
        assert_eq!((stats.retransmits, stats.rtos, stats.tlp_probes), (0, 0, 0));
        assert_eq!(net.ends[1].stats().duplicates_received, 0);
    }
}

#[test]
fn sequence_numbers_wrap_in_long_flows() {
    let bytes = (1 << 33) + 12_345;
    for base in [Config::newreno_ns2(), Config::linux()] {
        let cfg = Config {
            mss: 60_000,
            max_send_window: 1 << 20,
            ..base
        };
        let net = clean(cfg, bytes);
        assert_eq!(net.ends[0].acked(), bytes);
        assert_eq!(net.ends[0].stats().retransmits, 0);
    }
}

/// A connection that has waited for the minimum RTO goes on at full speed afterwards.
#[test]
fn a_blackout_beyond_the_minimum_rto_is_survived() {
    for base in [Config::newreno_ns2(), Config::linux()] {
        let cfg = Config {
            max_send_window: 100_000,
            ..base
        };
        let mut net = Net::new([cfg.clone(), cfg], Link::CLEAN, 7);
        net.write(0, u64::MAX / 2);
        net.run(Time::from_millis(100));
        let before = net.ends[1].delivered();
        assert!(before > 10_000_000);
        net.link.loss = 1000;
        net.run(Time::from_millis(600));
        let during = net.ends[1].delivered();
        assert!(during - before < 200_000);
        assert!(net.ends[0].stats().rtos >= 1);
        net.link.loss = 0;
        net.run(Time::from_millis(1_500));
        let after = net.ends[1].delivered() - during;
        assert!(after > 10_000_000);
    }
}
