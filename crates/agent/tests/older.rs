// SPDX-License-Identifier: Apache-2.0
//! Connections that are older than a port's programs are controlled: those of this host's sockets, those
//! of containers behind a veth, and those that another version of penstockd followed. Needs root.

#![allow(clippy::unwrap_used)]

mod lab;

use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use lab::{Agent, LIMIT, PENSTOCKD, PORT, PortLab, SwitchLab, outcome, transfers};
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use penstock_core::flow::SCALE_NONE;
use penstock_linux::link;
use penstock_linux::testkit::{self, Process, join, until};
use penstockd::attach::clsact;
use penstockd::attach::tcx;
use penstockd::host::bpf::program_by_id;
use penstockd::port::pins::{ABI, SHARED};
use penstockd::port::plain::{bytes_of, of_bytes};
use penstockd::port::{PinsArg, Port, Side, counters};
use penstockd::skel::port::types::{flow_key6, flow_known, port_flow};

const CONNECTIONS: usize = 16;
const BYTES: u64 = 300_000;

fn unknown_scales(port: &Port) -> u64 {
    counters::named(&port.counters().unwrap())["passed_unknown_scale"]
}

/// The flows of all ports.
fn flows(port: &Port) -> Vec<port_flow> {
    let mut all = Vec::new();
    for name in ["flows4", "flows6"] {
        let map = port.map(name).unwrap();
        let values = map
            .keys()
            .filter_map(|key| map.lookup(&key, MapFlags::ANY).unwrap());
        all.extend(values.map(|value| of_bytes::<port_flow>(&value).unwrap()));
    }
    all
}

#[test]
fn sockets_of_this_host_are_controlled_from_an_attach_on() {
    sockets_are_controlled(|lab| {
        lab.ok(&[
            "attach", PORT, "--scheme", "fairq", "--buffer", "128 kB", "--stale", "60 s",
        ]);
        None
    });
}

/// With no more privileges than the service has.
#[test]
fn sockets_of_this_host_are_controlled_from_the_daemons_start_on() {
    sockets_are_controlled(|lab| {
        let port = "[port.eth1]\nscheme = \"fairq\"\nbuffer = \"128 kB\"\n";
        lab.configure_with("stale = \"60 s\"", port);
        let daemon = lab.start_daemon(None);
        let map = PinsArg::at(lab.pins()).shared().join("known");
        let known = || MapHandle::from_pinned_path(&map).map(|map| map.keys().count());
        until("the daemon reads the sockets", || {
            known().is_ok_and(|known| known > CONNECTIONS)
        });
        Some(daemon)
    });
}

fn sockets_are_controlled(attach: impl FnOnce(&PortLab) -> Option<Process>) {
    let lab = PortLab::new();
    lab.congest();
    for (netns, interface, address) in [
        (lab.near(), PORT, "fd00::1/64"),
        (lab.far(), "eth0", "fd00::2/64"),
    ] {
        let line = format!("ip address add {address} dev {interface} nodad");
        lab::run(netns, &line);
    }
    let listener = lab.far().run(|| TcpListener::bind("[::]:5001"));
    transfers::serve_on(listener.unwrap().unwrap());
    let connect = |to: &str| {
        let stream = lab.near().run(|| TcpStream::connect(to)).unwrap();
        transfers::patient(stream.unwrap()).unwrap()
    };
    // The third is IPv4 of a socket for IPv6.
    let to = ["10.0.0.2:5001", "[fd00::2]:5001", "[::ffff:10.0.0.2]:5001"];
    let mut streams: Vec<_> = (0..CONNECTIONS).map(|n| connect(to[n % 3])).collect();
    let scaling = |on: &str| {
        let set = || std::fs::write("/proc/sys/net/ipv4/tcp_window_scaling", on);
        lab.far().run(set).unwrap().unwrap();
    };
    scaling("0");
    streams.push(connect(to[0]));
    scaling("1");

    let daemon = attach(&lab);
    let port = lab.agent().port(PORT);
    let state = port.state().unwrap();
    assert_eq!((state.flows, state.tracked), (0, 0), "before their data");
    transfers::send_on_all(lab.near(), &mut streams, BYTES);

    let (counted, state) = (port.counters().unwrap(), port.state().unwrap());
    assert_eq!(unknown_scales(&port), 0);
    assert_eq!(state.tracked as usize, CONNECTIONS + 1);
    assert!(counted.flows_begun as usize > CONNECTIONS);
    // A receiver that reads late may offer less than its share.
    assert!(
        counted.acks_rewritten > counted.acks * 9 / 10,
        "{counted:?}"
    );
    let flows = flows(&port);
    let unscaled = flows
        .iter()
        .filter(|flow| flow.entry.scale == [SCALE_NONE; 2]);
    assert_eq!(unscaled.count(), 1);
    // As SYNs offer it: what Ethernet leaves behind IPv4 and IPv6, and TCP.
    let sizes: Vec<u16> = flows.iter().map(|flow| flow.entry.mss).collect();
    assert!(
        sizes.iter().all(|mss| [1460, 1440].contains(mss)),
        "{sizes:?}"
    );
    drop(daemon);
    lab.ok(&["detach", PORT]);
}

/// Between two containers, at the host's end of the veth of the one that receives. Sockets of another
/// namespace with the same addresses and ports, as `known` may have them, change nothing.
#[test]
fn sockets_of_containers_are_controlled_by_their_own_scales() {
    let lab = SwitchLab::new(50_000_000, 64_000);
    for (host, largest) in [("left", 4 << 20), ("right", 32 << 20)] {
        let value = format!("4096 131072 {largest}");
        let set = || std::fs::write("/proc/sys/net/ipv4/tcp_rmem", value);
        lab.netns(host).run(set).unwrap().unwrap();
    }
    join(lab.spawn("right", transfers::serve), LIMIT);
    let connect = |_| lab.netns("left").run(transfers::connect).unwrap().unwrap();
    let mut streams: Vec<_> = (0..CONNECTIONS).map(connect).collect();
    attach(&lab, "tcx");
    let port = lab.agent().port("right");
    let known = port.map("known").unwrap();
    for stream in &streams[..CONNECTIONS / 2] {
        let [source, destination] = [stream.local_addr(), stream.peer_addr()].map(Result::unwrap);
        let mapped = |address: SocketAddr| {
            let IpAddr::V4(address) = address.ip() else {
                panic!("{address}: expected IPv4")
            };
            [0, 0, 0xffff_u32.to_be(), u32::from(address).to_be()]
        };
        let key = flow_key6 {
            source: mapped(source),
            destination: mapped(destination),
            source_port: source.port().to_be(),
            destination_port: destination.port().to_be(),
            ..Default::default()
        };
        let of_another = flow_known {
            seen_ns: u64::MAX / 2,
            mss: 536,
            scale: [1, 2],
            ..Default::default()
        };
        known
            .update(bytes_of(&key), bytes_of(&of_another), MapFlags::ANY)
            .unwrap();
    }
    transfers::send_on_all(lab.netns("left"), &mut streams, BYTES);

    let counted = port.counters().unwrap();
    assert_eq!(unknown_scales(&port), 0);
    assert!(
        counted.acks_rewritten > counted.acks / 2,
        "few ACKs are rewritten: {counted:?}"
    );
    let flows = flows(&port);
    assert_eq!(flows.len(), CONNECTIONS);
    for flow in flows {
        // 4 MiB and 32 MiB, in units that 16 bits can count.
        assert_eq!((flow.entry.scale, flow.entry.mss), ([7, 10], 1460));
    }
    lab.agent().ok(&["detach", "right"]);
}

/// A transfer through the switch that goes on and on.
struct Steady {
    transfers: Arc<AtomicU64>,
    is_over: Arc<AtomicBool>,
    thread: std::thread::JoinHandle<()>,
}

impl Steady {
    fn start(lab: &SwitchLab) -> Steady {
        let (transfers, is_over) = (Arc::<AtomicU64>::default(), Arc::<AtomicBool>::default());
        let (count, over) = (transfers.clone(), is_over.clone());
        let work = move || {
            let mut stream = transfers::connect().unwrap();
            while !over.load(Ordering::Relaxed) {
                transfers::send(&mut stream, 99, 20_000).unwrap();
                count.fetch_add(1, Ordering::Relaxed);
            }
        };
        Steady {
            transfers,
            is_over,
            thread: lab.spawn("left", work),
        }
    }

    fn goes_on(&self) {
        let before = self.transfers.load(Ordering::Relaxed);
        until("the transfer goes on", || {
            self.transfers.load(Ordering::Relaxed) > before + 2
        });
    }

    fn stop(self) {
        self.is_over.store(true, Ordering::Relaxed);
        join(self.thread, LIMIT);
    }
}

/// Connections through a switch that FairQ serves, whose pins are made those of an older version.
struct Upgrade {
    lab: SwitchLab,
    hook: &'static str,
    streams: Vec<TcpStream>,
    steady: Steady,
    /// The folder of the older version.
    old: PathBuf,
}

impl Upgrade {
    fn begin(hook: &'static str) -> Upgrade {
        let lab = SwitchLab::new(50_000_000, 64_000);
        join(lab.spawn("right", transfers::serve), LIMIT);
        let upgrade = Upgrade {
            hook,
            streams: Vec::new(),
            steady: {
                attach(&lab, hook);
                Steady::start(&lab)
            },
            old: lab.pins().join(format!("v{}", ABI - 1)),
            lab,
        };
        upgrade.connect()
    }

    fn connect(mut self) -> Upgrade {
        self.steady.goes_on();
        for _ in 0..CONNECTIONS {
            let stream = self.lab.netns("left").run(transfers::connect);
            self.streams.push(stream.unwrap().unwrap());
        }
        transfers::send_on_all(self.lab.netns("left"), &mut self.streams, BYTES);
        let port = self.lab.agent().port("right");
        assert_eq!(port.state().unwrap().tracked as usize, CONNECTIONS + 1);
        assert_eq!(unknown_scales(&port), 0);
        let new = PinsArg::at(self.lab.pins()).ports();
        std::fs::rename(new, &self.old).unwrap();
        self
    }

    /// The programs on the hooks, each with the number of its link.
    fn programs(&self) -> Vec<(u32, u32)> {
        let all = || {
            let index = link::get("right").unwrap().index;
            let of_side = |side| match self.hook {
                "clsact" => clsact::query(index, side)
                    .map(|id| (id, 0))
                    .into_iter()
                    .collect(),
                _ => {
                    let all = tcx::query(index, side).unwrap();
                    all.iter().map(|all| (all.id, all.link)).collect::<Vec<_>>()
                }
            };
            Side::BOTH.into_iter().flat_map(of_side).collect()
        };
        self.lab.netns("switch").run(all).unwrap()
    }
}

/// With no more privileges than the service has.
fn attach(lab: &SwitchLab, hook: &str) -> String {
    let mut command = Command::new("setpriv");
    command
        .args(["--bounding-set=-all,+net_admin,+perfmon,+bpf", PENSTOCKD])
        .args(["attach", "right", "--scheme", "fairq", "--hook", hook])
        .args(["--stale", "60 s", "--pins"])
        .arg(lab.pins());
    let output = || testkit::output(&mut command, LIMIT);
    let (succeeded, printed) = outcome(&lab.netns("switch").run(output).unwrap());
    assert!(succeeded, "{printed}");
    printed
}

fn map_id(folder: &Path, name: &str) -> u32 {
    let map = MapHandle::from_pinned_path(folder.join(SHARED).join(name)).unwrap();
    map.info().unwrap().info.id
}

fn flows_of_another_version_stay_known(hook: &'static str) {
    let mut upgrade = Upgrade::begin(hook);
    let before = upgrade.programs();
    assert_eq!(before.len(), 2);
    let old_map = map_id(&upgrade.old, "flows4");
    let printed = attach(&upgrade.lab, hook);
    assert!(printed.contains("right: 17 flows are known"), "{printed}");
    upgrade.steady.goes_on();
    let port = upgrade.lab.agent().port("right");
    // Sockets would hide their lack.
    let known = port.map("known").unwrap();
    let handed_over = known.keys().filter_map(|key| {
        let value = known.lookup(&key, MapFlags::ANY).unwrap()?;
        let flow: flow_known = of_bytes(&value).unwrap();
        let is_whole = flow.mss == 1460 && flow.scale.iter().all(|scale| (1..=14).contains(scale));
        (of_bytes::<flow_key6>(&key).unwrap().port != 0 && is_whole).then_some(())
    });
    assert!(handed_over.count() >= CONNECTIONS);
    transfers::send_on_all(upgrade.lab.netns("left"), &mut upgrade.streams, BYTES);

    let counted = port.counters().unwrap();
    assert_eq!(unknown_scales(&port), 0);
    assert_eq!(port.state().unwrap().tracked as usize, CONNECTIONS + 1);
    assert!(counted.acks_rewritten > 100, "{counted:?}");
    assert!(flows(&port).iter().all(|flow| flow.entry.mss == 1460));

    // In place: the links are the same, with other programs.
    let after = upgrade.programs();
    assert_eq!(after.len(), 2);
    for ((old, old_link), (new, new_link)) in before.into_iter().zip(after) {
        assert_ne!(old, new);
        assert_eq!(old_link, new_link);
        until("the old programs are gone", || program_by_id(old).is_none());
    }
    assert!(!upgrade.old.exists());
    until("the old maps are gone", || {
        MapHandle::from_map_id(old_map).is_err()
    });
    upgrade.steady.stop();
    upgrade.lab.agent().ok(&["detach", "right"]);
    let qdiscs = lab::run(upgrade.lab.netns("switch"), "tc qdisc show dev right");
    assert!(!qdiscs.contains("clsact"), "{qdiscs}");
}

#[test]
fn flows_of_another_version_stay_known_on_tcx() {
    flows_of_another_version_stay_known("tcx");
}

#[test]
fn flows_of_another_version_stay_known_on_clsact() {
    flows_of_another_version_stay_known("clsact");
}

#[test]
fn an_upgrade_to_the_other_hook_leaves_the_old_one() {
    for (old, new) in [("tcx", "clsact"), ("clsact", "tcx")] {
        let upgrade = Upgrade::begin(old);
        attach(&upgrade.lab, new);
        assert_eq!(upgrade.programs(), [], "{old}");
        let port = upgrade.lab.agent().port("right");
        upgrade.steady.goes_on();
        assert_eq!(unknown_scales(&port), 0);
        assert!(!upgrade.old.exists());
        upgrade.steady.stop();
        upgrade.lab.agent().ok(&["detach", "right"]);
    }
}

#[test]
fn a_layout_that_cannot_be_read_drops_the_flows_in_one_line() {
    let mut upgrade = Upgrade::begin("tcx");
    std::fs::remove_file(upgrade.old.join(SHARED).join("layout")).unwrap();
    let printed = attach(&upgrade.lab, "tcx");
    let version = ABI - 1;
    let line = format!("right: flows that version {version} followed are no longer known: ");
    assert_eq!(printed.matches(&line).count(), 1, "{printed}");
    upgrade.steady.goes_on();
    transfers::send_on_all(upgrade.lab.netns("left"), &mut upgrade.streams, BYTES);
    // The sockets make up for it.
    assert_eq!(unknown_scales(&upgrade.lab.agent().port("right")), 0);
    assert!(!upgrade.old.exists());
    upgrade.steady.stop();
}

#[test]
fn a_pause_outlasts_another_version() {
    let lab = PortLab::new();
    let attach = || {
        lab.ok(&[
            "attach", PORT, "--scheme", "fairq", "--buffer", "128 kB", "--stale", "60 s",
        ]);
        lab.status()["paused"] == true
    };
    assert!(!attach());
    lab.ok(&["pause", PORT]);
    let versions = [ABI, ABI - 1].map(|version| lab.pins().join(format!("v{version}")));
    std::fs::rename(&versions[0], &versions[1]).unwrap();
    assert!(attach(), "{}", lab.status());
    lab.ok(&["resume", PORT]);
    std::fs::rename(&versions[0], &versions[1]).unwrap();
    assert!(!attach(), "{}", lab.status());
    lab.ok(&["detach", PORT]);
}

/// Without what the shim knew, the sender would read the windows in another scale than they are in.
#[test]
fn a_shim_of_another_version_hands_over_what_it_unified() {
    let lab = SwitchLab::new(50_000_000, 64_000);
    join(lab.spawn("right", transfers::serve), LIMIT);
    let agent = Agent {
        netns: lab.netns("right"),
        pins: lab.pins().join("right"),
    };
    let unified = "window.wscale_source=unified";
    let attach = [
        "attach", "eth0", "--scheme", "shim", "--set", unified, "--stale", "60 s",
    ];
    agent.ok(&attach);
    let stream = lab.netns("left").run(transfers::connect);
    let mut stream = stream.unwrap().unwrap();
    let is_changed = || agent.port("eth0").counters().unwrap().acks_rewritten > 10;
    transfers::send(&mut stream, 1, BYTES).unwrap();
    assert!(is_changed(), "the host's own scale is the network's");

    let versions = [ABI, ABI - 1].map(|version| agent.pins.join(format!("v{version}")));
    std::fs::rename(&versions[0], &versions[1]).unwrap();
    agent.ok(&attach);
    transfers::send(&mut stream, 2, BYTES).unwrap();
    assert!(is_changed(), "windows are misread");
}
