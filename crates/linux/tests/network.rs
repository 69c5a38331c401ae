// SPDX-License-Identifier: Apache-2.0
//! Links, qdiscs and namespaces of the running kernel, on the test kit's networks. Needs root.

#![allow(clippy::unwrap_used)]

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::process::Command;
use std::time::{Duration, Instant};

use penstock_linux::link::{self, Change};
use penstock_linux::monitor::LinkMonitor;
use penstock_linux::netns::NetNs;
use penstock_linux::qdisc::{self, Limit, RootCounters, Tbf};
use penstock_linux::testkit::{self, Bpffs, Dumbbell, PATIENCE, Pair, Process};
use penstock_linux::{Error, ethtool, filter};

const SLOW: Tbf = Tbf {
    rate_bps: 8,
    burst_bytes: 2000,
    limit_bytes: 10_000,
};

/// Runs tc in a namespace; an underscore stands for a space within an argument.
fn tc(netns: &NetNs, arguments: &str) -> String {
    let mut command = Command::new("tc");
    command.args(arguments.split(' ').map(|word| word.replace('_', " ")));
    let output = netns
        .run(|| testkit::output(&mut command, PATIENCE))
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "tc {arguments}: {errors}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn an_interface_is_found_by_its_name_as_it_is() {
    let netns = testkit::namespace();
    let _entered = netns.enter().unwrap();
    link::create_veth("near", "far", &netns, 1).unwrap();
    let made = link::get("near").unwrap();
    assert!(made.has_ethernet_header && !made.is_up);
    link::change("near", &[Change::Up, Change::TxQueueLen(77)]).unwrap();
    link::change("far", &[Change::Name("renamed")]).unwrap();
    let changed = link::get("near").unwrap();
    assert_eq!((changed.index, changed.tx_queue_len), (made.index, 77));
    assert!(changed.is_up);
    let names: Vec<String> = link::all().unwrap().into_iter().map(|l| l.name).collect();
    assert_eq!(names, ["lo", "renamed", "near"]);
    assert_eq!(link::index("lo").unwrap(), Some(1));
    link::delete("near").unwrap();
    assert_eq!(
        link::index("renamed").unwrap(),
        None,
        "the other end is gone too"
    );
}

#[test]
fn changes_of_interfaces_are_reported_in_their_namespace_alone() {
    let (here, there) = (testkit::namespace(), testkit::namespace());
    let _entered = here.enter().unwrap();
    let monitor = LinkMonitor::open().unwrap();
    let elsewhere = there.run(|| link::create_bridge("far")).unwrap();
    elsewhere.unwrap();
    assert!(!monitor.take(), "nothing changed here");
    link::create_bridge("near").unwrap();
    testkit::until("the new interface is reported", || monitor.take());
    link::change("near", &[Change::Name("other")]).unwrap();
    testkit::until("its new name is reported", || monitor.take());
    link::delete("other").unwrap();
    testkit::until("its end is reported", || monitor.take());
}

#[test]
fn an_interface_can_move_to_another_namespace() {
    let (from, to) = (testkit::namespace(), testkit::namespace());
    testkit::cable((&from, "a"), (&from, "b"), 1);
    from.run(|| link::change("b", &[Change::NetNs(&to)]))
        .unwrap()
        .unwrap();
    assert_eq!(from.run(|| link::index("b")).unwrap().unwrap(), None);
    let moved = to.run(|| link::get("b")).unwrap().unwrap();
    assert!(!moved.is_up, "a move takes an interface down");
}

#[test]
fn an_absent_interface_is_an_error_that_names_those_present() {
    let netns = testkit::namespace();
    let _entered = netns.enter().unwrap();
    for name in ["absent", "", "a-name-longer-than-the-kernel-has"] {
        assert_eq!(link::find(name).unwrap(), None, "{name}");
    }
    let line = "no interface absent in this network namespace; it has lo";
    let refusals = [
        link::get("absent").map(drop),
        link::delete("absent"),
        link::change("absent", &[Change::Up]),
        RootCounters::open("absent").map(drop),
    ];
    for refusal in refusals {
        assert_eq!(refusal.unwrap_err().to_string(), line);
    }
    let refusal = qdisc::replace_root(4711, "pfifo").unwrap_err();
    assert_eq!(refusal.errno(), Some(libc::ENODEV), "{refusal}");
    assert!(matches!(qdisc::root(4711), Err(Error::NoQueue { .. })));
}

#[test]
fn what_the_kernel_refuses_is_named_with_a_remedy() {
    let netns = testkit::namespace();
    let _entered = netns.enter().unwrap();
    link::create_bridge("taken").unwrap();
    let refusal = link::create_bridge("taken").unwrap_err().to_string();
    assert!(
        refusal.starts_with("cannot create interface taken: "),
        "{refusal}"
    );
    assert!(
        refusal.ends_with("; delete the existing one first"),
        "{refusal}"
    );
    let refusal = qdisc::replace_root(1, "no-such-kind")
        .unwrap_err()
        .to_string();
    let start = "cannot make no-such-kind the root qdisc of lo: ";
    assert!(refusal.starts_with(start), "{refusal}");
    assert!(
        refusal.contains("(Specified qdisc kind is unknown"),
        "{refusal}"
    );
    assert!(!refusal.contains('\n'));
}

#[test]
fn hosts_reach_each_other_over_the_switchs_port() {
    let port = Tbf {
        rate_bps: 50_000_000,
        burst_bytes: 16_384,
        limit_bytes: 100_000,
    };
    let network = Dumbbell::new(&["10.98.0.1/24"], &["10.98.0.2/24"], port);
    let listener = network
        .right
        .run(|| TcpListener::bind("10.98.0.2:5001"))
        .unwrap()
        .unwrap();
    let receiver = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        bytes.len()
    });
    let start = Instant::now();
    let mut stream = network
        .left
        .run(|| TcpStream::connect("10.98.0.2:5001"))
        .unwrap()
        .unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(&[1; 1_000_000]).unwrap();
    drop(stream);
    assert_eq!(testkit::join(receiver, PATIENCE), 1_000_000);
    let expected = Duration::from_millis(150);
    assert!(start.elapsed() > expected, "1 MB at 50 Mb/s takes 160 ms");
    assert_eq!(testkit::tcp_counter(&network.left, "ActiveOpens"), 1);

    let shown = tc(&network.switch, "qdisc show dev right root");
    assert!(shown.contains("rate 50Mbit burst 16Kb"), "{shown}");
    let _entered = network.switch.enter().unwrap();
    let root = qdisc::root(link::get("right").unwrap().index).unwrap();
    assert_eq!(
        (root.kind.as_str(), root.rate_bps),
        ("tbf", Some(50_000_000))
    );
    assert_eq!(root.limit, Some(Limit::Bytes(100_000)));
    assert!(root.counters.sent_bytes > 1_000_000);
    let counters = RootCounters::open("right").unwrap().read().unwrap();
    assert!(counters.sent_packets > 15 && counters.sent_bytes > 1_000_000);
    let counts_nothing = RootCounters::open("left").unwrap().read();
    assert!(matches!(counts_nothing, Err(Error::NoQueue { .. })));
}

#[test]
fn a_qdisc_reports_what_waits_and_what_was_dropped_as_tc_does() {
    let netns = testkit::namespace();
    let _entered = netns.enter().unwrap();
    // The neighbour discovery of IPv6 sends packets of its own for seconds after a link comes up.
    std::fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1").unwrap();
    testkit::cable((&netns, "port"), (&netns, "far"), 1);
    testkit::address(&netns, "port", "10.99.0.1/24");
    let far = IpAddr::V4(Ipv4Addr::new(10, 99, 0, 2));
    testkit::add_neighbour("port", far, [2, 0, 0, 0, 0, 2]).unwrap();
    let index = link::get("port").unwrap().index;
    SLOW.put_on(index).unwrap();
    let socket = UdpSocket::bind("10.99.0.1:0").unwrap();
    for _ in 0..20 {
        let _ = socket.send_to(&[0; 1000], "10.99.0.2:9");
    }
    let mut counters = RootCounters::open("port").unwrap();
    let read = counters.read().unwrap();
    // A packet has 1042 bytes: one passed with the burst, nine wait.
    assert_eq!((read.backlog_packets, read.backlog_bytes), (9, 9 * 1042));
    assert_eq!((read.sent_packets, read.drops), (1, 10));
    assert_eq!(qdisc::root(index).unwrap().counters, read);
    let shown = tc(&netns, "-s qdisc show dev port root");
    for part in ["rate 8bit ", "dropped 10,", "backlog 9378b 9p"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    qdisc::delete_root(index).unwrap();
    assert!(qdisc::root(index).unwrap().kind != "tbf");
    qdisc::replace_root(index, "pfifo").unwrap();
    let root = qdisc::root(index).unwrap();
    assert_eq!(
        (root.kind.as_str(), root.limit),
        ("pfifo", Some(Limit::Packets(1000)))
    );
    qdisc::delete_root(index).unwrap();
    assert!(
        qdisc::delete_root(index).is_err(),
        "only the kernel's own is left"
    );
}

#[test]
fn a_rate_beyond_32_bits_of_bytes_is_kept() {
    let netns = testkit::namespace();
    let _entered = netns.enter().unwrap();
    link::create_bridge("fast").unwrap();
    let index = link::get("fast").unwrap().index;
    let port = Tbf {
        rate_bps: 400_000_000_000,
        burst_bytes: 1_000_000,
        limit_bytes: 64_000_000,
    };
    port.put_on(index).unwrap();
    assert_eq!(qdisc::root(index).unwrap().rate_bps, Some(port.rate_bps));
    assert!(tc(&netns, "qdisc show dev fast").contains("rate 400Gbit"));
}

#[test]
fn qdiscs_below_a_class_are_listed_with_their_parent() {
    let netns = testkit::namespace();
    let _entered = netns.enter().unwrap();
    link::create_bridge("port").unwrap();
    tc(
        &netns,
        "qdisc add dev port root handle 1: tbf rate 1mbit burst 2kb limit 9000",
    );
    tc(&netns, "qdisc add dev port parent 1:1 bfifo limit 3000");
    let all = qdisc::all(link::get("port").unwrap().index).unwrap();
    let (root, child) = (&all[0], &all[1]);
    assert!(root.is_root() && child.is_below(root) && !root.is_below(child));
    assert_eq!(
        (child.kind.as_str(), child.limit),
        ("bfifo", Some(Limit::Bytes(3000)))
    );
    let of_loopback = qdisc::all(1).unwrap();
    assert!(of_loopback.iter().all(|qdisc| qdisc.interface == 1));
}

#[test]
fn filters_are_seen_at_either_hook() {
    let netns = testkit::namespace();
    let _entered = netns.enter().unwrap();
    link::create_bridge("port").unwrap();
    let index = link::get("port").unwrap().index;
    assert!(!filter::has_any(index).unwrap(), "no clsact");
    tc(&netns, "qdisc add dev port clsact");
    assert!(!filter::has_any(index).unwrap(), "no filter");
    for hook in ["ingress", "egress"] {
        // A classic BPF program of one instruction: no match.
        tc(
            &netns,
            &format!("filter add dev port {hook} bpf bytecode 1,6_0_0_0"),
        );
        assert!(filter::has_any(index).unwrap(), "{hook}");
        tc(&netns, &format!("filter del dev port {hook}"));
        assert!(!filter::has_any(index).unwrap(), "{hook}");
    }
    for handle in [1, 2] {
        let bpf = format!("handle {handle} bpf bytecode 1,6_0_0_0");
        tc(&netns, &format!("filter add dev port ingress pref 1 {bpf}"));
    }
    let filters = filter::all(index, filter::Hook::Ingress).unwrap();
    let handles: Vec<u32> = filters.iter().map(|filter| filter.handle).collect();
    assert_eq!(
        handles,
        [2, 1],
        "of one priority, the last that came is first"
    );
}

#[test]
fn a_veth_reports_its_speed_and_computes_checksums_on_demand() {
    let pair = Pair::new(("eth1", "10.0.0.1/24"), ("eth0", "10.0.0.2/24"));
    let _entered = pair.near.enter().unwrap();
    assert_eq!(ethtool::speed_bps("eth1").unwrap(), Some(10_000_000_000));
    testkit::disable_tx_checksum_offload("eth1").unwrap();
}

#[test]
fn a_thread_enters_a_namespace_and_comes_back() {
    let before = NetNs::current().unwrap();
    let netns = testkit::namespace();
    let same = NetNs::open(&netns.path()).unwrap();
    assert_eq!(same.inode(), netns.inode());
    assert_ne!(before.inode(), netns.inode());
    let here = || NetNs::current().unwrap().inode();
    assert_eq!(netns.run(here).unwrap(), netns.inode());
    assert_eq!(here(), before.inode());
    let elsewhere = netns.spawn(here).unwrap();
    assert_eq!(testkit::join(elsewhere, PATIENCE), netns.inode());
    assert!(
        NetNs::open("/proc/self/status".as_ref())
            .unwrap()
            .join()
            .is_err()
    );
    let refusal = NetNs::open("/run/netns/no-such".as_ref()).unwrap_err();
    assert!(
        refusal.to_string().contains("/run/netns/no-such: "),
        "{refusal}"
    );
}

#[test]
fn a_process_ends_at_its_limit_and_with_its_value() {
    let start = Instant::now();
    let mut process = Process::spawn(Command::new("sleep").arg("60"), Duration::from_millis(100));
    assert!(std::panic::catch_unwind(move || process.wait()).is_err());
    let process = Process::spawn(Command::new("sleep").arg("60"), PATIENCE);
    let folder = format!("/proc/{}", process.id());
    drop(process);
    assert!(!std::fs::exists(folder).unwrap());
    let echo = testkit::output(
        Command::new("sh").args(["-c", "echo a; echo b >&2"]),
        PATIENCE,
    );
    assert_eq!((&*echo.stdout, &*echo.stderr), (&b"a\n"[..], &b"b\n"[..]));
    assert!(start.elapsed() < PATIENCE);
}

#[test]
fn a_bpffs_is_gone_with_its_value() {
    let bpffs = Bpffs::mount();
    let path = bpffs.path().to_owned();
    let is_mounted = || {
        let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
        mounts.contains(&*path.to_string_lossy())
    };
    assert!(is_mounted());
    std::fs::create_dir(path.join("pins")).unwrap();
    drop(bpffs);
    assert!(!is_mounted() && !path.exists());
}
