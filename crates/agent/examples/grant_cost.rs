// SPDX-License-Identifier: Apache-2.0
//! What Grant's programs cost a packet, its own ACKs included: the programs of a real interface process the
//! packets of clients that ask for 11.5 kB in turn while others wait, and a program that does nothing processes
//! the same packets. Needs root.
//!
//! `cargo run --release --example grant_cost -- [--packets N]` (make bench-datapath)

#![allow(
    clippy::unwrap_used,
    reason = "a measurement stops where it cannot go on"
)]
#![allow(missing_docs)]

#[path = "../tests/common/mod.rs"]
mod common;
#[allow(warnings)]
mod skel {
    include!(concat!(env!("OUT_DIR"), "/packet_cost.skel.rs"));
}

use std::mem::MaybeUninit;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, OwnedFd};

use common::packet::{ACK, PSH, SYN, Segment};
use common::run::run;
use libbpf_rs::Program;
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use penstock_linux::link;
use penstock_linux::testkit::{Bpffs, Pair};
use penstock_scenario::deployment;
use penstock_scenario::units::Time;
use penstockd::attach::{Options, attach, grant};
use penstockd::port::Side;
use penstockd::port::pins::{PinsArg, program_pin};

const PORT: &str = "eth1";
const SEGMENTS: u32 = 8;
const MSS: u32 = 1448;
const REQUEST: u32 = 100;
/// Clients that have asked before the first gets its answer: more than the port grants at a time.
const AHEAD: u32 = 8;

/// One run of a program with a packet, in nanoseconds.
fn time(program: &OwnedFd, index: u32, packet: &[u8]) -> f64 {
    f64::from(run(program, index, packet).unwrap().nanoseconds)
}

/// A client on the host of the interface, and where its connection is.
struct Client {
    acks: Segment,
    clock: u32,
}

impl Client {
    fn new(number: u32) -> Client {
        let server = Ipv4Addr::from(0x0a00_0102 + number / 20_000);
        let acks = Segment::new("10.0.0.1", &server.to_string()).with(|s| {
            s.source_port = 20_000 + (number % 20_000) as u16;
            s.window = 500;
        });
        Client { acks, clock: 1000 }
    }

    /// Timestamps are those of nearly all connections.
    fn stamped(&mut self, segment: &Segment) -> Vec<u8> {
        self.clock += 1;
        let mut options = vec![1, 1, 8, 10];
        options.extend(self.clock.to_be_bytes());
        options.extend(self.clock.to_be_bytes());
        segment.with(|s| s.options = options).frame()
    }

    fn handshake(&self) -> [(bool, Vec<u8>); 3] {
        let options = Segment::syn_options(1460, 10);
        let syn = self.acks.with(|s| {
            (s.flags, s.options) = (SYN, options.clone());
            s.seq -= 1;
        });
        let answer = self.acks.reversed().with(|s| {
            (s.flags, s.options) = (SYN | ACK, options);
            (s.seq, s.ack) = (self.acks.ack - 1, self.acks.seq);
        });
        [
            (true, syn.frame()),
            (false, answer.frame()),
            (true, self.acks.frame()),
        ]
    }

    fn request(&mut self) -> Vec<u8> {
        let request = self.acks.with(|s| {
            s.payload = REQUEST as usize;
            s.flags = ACK | PSH;
        });
        self.acks.seq += REQUEST;
        self.stamped(&request)
    }

    fn data(&mut self, is_last: bool) -> Vec<u8> {
        let payload = if is_last { MSS - 84 } else { MSS };
        let data = self.acks.reversed().with(|s| {
            (s.seq, s.ack) = (self.acks.ack, self.acks.seq);
            s.payload = payload as usize;
            s.flags = if is_last { ACK | PSH } else { ACK };
        });
        self.acks.ack += payload;
        self.stamped(&data)
    }

    fn ack(&mut self) -> Vec<u8> {
        self.stamped(&self.acks.clone())
    }
}

/// The programs, and what they cost each kind of packet.
struct Bench {
    empty: OwnedFd,
    /// Egress, where ACKs leave, and ingress.
    programs: [OwnedFd; 2],
    index: u32,
    /// Net of the empty program: data, ACKs.
    net: [Vec<f64>; 2],
}

impl Bench {
    fn pass(&mut self, is_ack: bool, packet: &[u8]) {
        let base = time(&self.empty, self.index, packet);
        let full = time(&self.programs[usize::from(!is_ack)], self.index, packet);
        self.net[usize::from(is_ack)].push(full - base);
    }

    /// All clients ask and are answered, in turn.
    fn round(&mut self, clients: &mut [Client]) {
        let count = clients.len() as u32;
        for turn in 0..count + AHEAD {
            if turn < count {
                let request = clients[turn as usize].request();
                self.pass(true, &request);
            }
            let Some(answered) = turn.checked_sub(AHEAD) else {
                continue;
            };
            let client = &mut clients[answered as usize];
            for segment in 1..=SEGMENTS {
                let data = client.data(segment == SEGMENTS);
                self.pass(false, &data);
                if segment % 2 == 0 {
                    let ack = client.ack();
                    self.pass(true, &ack);
                }
            }
        }
    }
}

/// Median, and mean without the hundredth that interrupts made slowest.
fn summary(values: &mut [f64]) -> (f64, f64) {
    values.sort_by(f64::total_cmp);
    let most = &values[..values.len() - values.len() / 100];
    (
        values[values.len() / 2],
        most.iter().sum::<f64>() / most.len() as f64,
    )
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let at = arguments.iter().position(|a| a == "--packets");
    let packets = at.map_or(400_000, |at| arguments[at + 1].parse().unwrap());
    let hosts = Pair::new((PORT, "10.0.0.1/16"), ("eth0", "10.0.9.9/16"));
    let bpffs = Bpffs::mount();
    hosts.near.run(|| measure(&bpffs, packets)).unwrap();
}

fn measure(bpffs: &Bpffs, packets: usize) {
    let mut memory = MaybeUninit::uninit();
    let object = skel::PacketCostSkelBuilder::default()
        .open(&mut memory)
        .unwrap();
    let object = object
        .load()
        .expect("loading needs root and a kernel of 6.1 or later");
    let index = link::get(PORT).unwrap().index;
    println!(
        "{:>6}  {:<8} {:<6} {:>9} {:>8} {:>17}",
        "flows", "side", "packet", "median ns", "mean ns", "packets per grant"
    );
    for side in ["port", "receiver"] {
        for flows in [10, 10_000] {
            let pins = PinsArg {
                dir: bpffs.path().join("penstock"),
                locks: bpffs.path().with_extension("locks"),
            };
            let pairs = [
                ("scheme", "grant"),
                ("window.side", side),
                ("rate", "1 Gb/s"),
                ("buffer", "128 kB"),
            ];
            let pairs = pairs.map(|(key, value)| (key.to_owned(), value.to_owned()));
            let options = Options {
                stale: Time::from_secs(3600),
                ..Options::default()
            };
            let attached = attach(&pins, PORT, &deployment(&pairs).unwrap(), &options).unwrap();
            let _keeper = attached.keep_alive().unwrap();
            let folder = attached.port().folder.clone();
            let program = |side| Program::fd_from_pinned_path(program_pin(&folder, side)).unwrap();
            let mut programs = [program(Side::Egress), program(Side::Ingress)];
            if side == "port" {
                programs.reverse(); // data leaves, ACKs come in
            }
            let mut bench = Bench {
                empty: object.progs.empty.as_fd().try_clone_to_owned().unwrap(),
                programs,
                index,
                net: [Vec::new(), Vec::new()],
            };
            let mut clients: Vec<Client> = (0..flows).map(Client::new).collect();
            for client in &clients {
                for (is_ack, packet) in client.handshake() {
                    time(&bench.programs[usize::from(!is_ack)], index, &packet);
                }
            }
            bench.round(&mut clients); // entries are made
            bench.net = [Vec::new(), Vec::new()];
            let grants = || grant::status(&folder).unwrap().unwrap().counters["grants"];
            let before = grants();
            while bench.net[0].len() < packets {
                bench.round(&mut clients);
            }
            let passed = (bench.net[0].len() + bench.net[1].len()) as f64;
            let each = passed / (grants() - before) as f64;
            for (name, net) in ["data", "ACK"].iter().zip(&mut bench.net) {
                let (median, mean) = summary(net);
                println!("{flows:>6}  {side:<8} {name:<6} {median:>9.0} {mean:>8.0} {each:>17.1}");
            }
            attached.detach().unwrap();
        }
    }
}
