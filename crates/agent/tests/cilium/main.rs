// SPDX-License-Identifier: Apache-2.0
//! Next to Cilium's programs, for which stand-ins are attached (`bpf/tests/cilium.bpf.c`): who is first,
//! what is seen of packets that redirects take past hooks, and that neither disturbs the other. Needs root.

#![allow(clippy::unwrap_used)]

mod cilium;
mod cluster;
#[path = "../lab/mod.rs"]
mod lab;
#[allow(warnings)]
mod skel {
    include!(concat!(env!("OUT_DIR"), "/cilium.skel.rs"));
}

use cluster::{CONTAINER, Cluster, OVERLAY, Pair, Routing, UPLINK};
use lab::Agent;
use penstock_linux::testkit::{Process, Signal, until};
use serde_json::{Value, json};

const FAIRQ: [&str; 6] = ["attach", UPLINK, "--scheme", "fairq", "--stale", "600 s"];

/// The names of the programs on both sides of a port, egress first.
fn order(status: &Value) -> [Vec<String>; 2] {
    ["egress", "ingress"].map(|side| {
        let programs = status["hooks"][side]["programs"].as_array().unwrap();
        let name = |program: &Value| program["name"].as_str().unwrap().to_owned();
        programs.iter().map(name).collect()
    })
}

fn counter(status: &Value, name: &str) -> u64 {
    status["counters"][name].as_u64().unwrap()
}

const OURS_FIRST: [[&str; 2]; 2] = [
    ["fairq_egress", "cil_to_netdev"],
    ["fairq_ingress", "cil_from_netdev"],
];

/// How many packets a transfer without a scheme loses: on a busy machine not each overflows the card.
fn overflow(cluster: &Cluster) -> u64 {
    let mut lost = 0;
    until("packets are lost without a scheme", || {
        lost = cluster.transfer();
        lost > 20
    });
    lost
}

/// On the card, ours see what Cilium redirects between the card and a pod's namespace, and hold the
/// pod's windows.
fn holds_windows_of_pods(cluster: &Cluster) {
    let lost = overflow(cluster);
    cluster.agent(0).ok(&FAIRQ);
    let held = cluster.transfer();
    let status = cluster.status(0, UPLINK);
    assert_eq!(order(&status), OURS_FIRST);
    assert!(held < lost / 4, "{held} packets are lost, {lost} without");
    assert_eq!(counter(&status, "passed_unknown_scale"), 0, "{status}");
    assert_eq!(cluster.wrong_checksums(), 0);
    let [rewritten, acks] = ["acks_rewritten", "acks"].map(|name| counter(&status, name));
    println!("\n= {held} packets dropped, {lost} without; {rewritten} of {acks} windows lowered");
}

#[test]
fn on_the_card_ours_are_first_and_neither_removes_the_other() {
    let mut cluster = Cluster::new(Pair::Veth, Routing::Bpf);
    holds_windows_of_pods(&cluster);

    cluster.nodes[0].upgrade_cilium();
    assert_eq!(order(&cluster.status(0, UPLINK)), OURS_FIRST);
    cluster.nodes[0].restart_cilium();
    assert_eq!(order(&cluster.status(0, UPLINK)), OURS_FIRST);
    let hscc = FAIRQ.map(|word| if word == "fairq" { "hscc" } else { word });
    cluster.agent(0).ok(&hscc);
    let after = [
        ["hscc_egress", "cil_to_netdev"],
        ["hscc_ingress", "cil_from_netdev"],
    ];
    assert_eq!(order(&cluster.status(0, UPLINK)), after);
    let runs = cluster.nodes[0].cilium.runs();
    cluster.transfer();
    let now = cluster.nodes[0].cilium.runs();
    assert!(now.to_netdev > runs.to_netdev && now.from_netdev > runs.from_netdev);

    cluster.agent(0).ok(&["detach", UPLINK]);
    cluster.transfer();
    let last = cluster.nodes[0].cilium.runs();
    assert!(last.to_netdev > now.to_netdev && last.from_netdev > now.from_netdev);
}

/// Grant, whose agent works while packets pass: penstockd stays until it is dropped.
fn grant(agent: &Agent, interface: &str, options: &[&str]) -> Process {
    let words = ["attach", interface, "--stay", "--scheme", "grant"];
    let words = [&words[..], options].concat();
    agent.start_at(interface, &words, 4 * lab::LIMIT)
}

/// The status of a port that holds windows with Grant.
fn grants(agent: &Agent, interface: &str) -> Value {
    let text = agent.ok(&["status", interface, "--for", "100 ms", "--json"]);
    let status = serde_json::from_str::<Value>(&text).unwrap()[0].clone();
    assert!(counter(&status, "acks_rewritten") > 100, "{status}");
    assert_eq!(counter(&status, "passed_failed"), 0, "{status}");
    status
}

/// What a node is to run by the chart: Grant on the receiving card.
#[test]
fn grant_on_the_receiving_card_holds_windows_of_pods() {
    let cluster = Cluster::new(Pair::Veth, Routing::Bpf);
    let lost = overflow(&cluster);
    let agent = cluster.agent(1);
    let _grant = grant(&agent, UPLINK, &["--side", "receiver", "--rate", "18 Mb/s"]);
    let held = cluster.transfer();
    let first = order(&grants(&agent, UPLINK)).map(|names| names[0].clone());
    assert_eq!(first, ["grant_egress_be", "grant_ingress_b"]);
    assert!(held < lost / 4, "{held} packets are lost, {lost} without");
}

/// At the host's end of a pod's pair: data that Cilium redirects from the card to the pod passes by it.
#[test]
fn data_that_is_redirected_past_a_pods_interface_is_reported() {
    for routing in [Routing::Stack, Routing::Bpf] {
        let cluster = Cluster::new(Pair::Veth, routing);
        let words = [
            "--scheme", "observe", "--buffer", "1 MB", "--stale", "600 s",
        ];
        let attach = [&["attach", CONTAINER], &words[..]].concat();
        cluster.agent(1).ok(&attach);
        cluster.busy(|| match routing {
            Routing::Stack => {
                until("data is seen", || {
                    let status = cluster.status(1, CONTAINER);
                    status["rates"]["egress_packets"].as_f64() > Some(100.0)
                });
                assert_eq!(cluster.status(1, CONTAINER)["blind"], json!([]));
            }
            _ => {
                until("the missing data is reported", || {
                    cluster.status(1, CONTAINER)["blind"] == json!(["egress"])
                });
                let line = cluster
                    .agent(1)
                    .ok(&["status", CONTAINER, "--for", "300 ms"]);
                assert!(line.contains("attach to the uplink"), "{line}");
            }
        });
    }
}

/// As `penstock-cni` with `side = "limit"`: what is redirected into the pod meets the hooks of its own
/// interface.
#[test]
fn a_limit_within_the_pod_holds_what_is_redirected_into_it() {
    let cluster = Cluster::new(Pair::Veth, Routing::Bpf);
    let lost = overflow(&cluster);
    let agent = cluster.agent_in_pod(1);
    let limit = ["--side", "limit", "--rate", "10 Mb/s", "--buffer", "64 kB"];
    let _grant = grant(&agent, "eth0", &limit);
    let held = cluster.transfer();
    grants(&agent, "eth0");
    assert!(held < lost / 4, "{held} packets are lost, {lost} without");
}

/// In Cilium's tunnel, the two directions of a connection have different identifiers.
#[test]
fn connections_in_the_tunnel_are_known_without_its_identifier() {
    let cluster = Cluster::new(Pair::Veth, Routing::Vxlan);
    let lost = overflow(&cluster);
    let agent = cluster.agent(0);
    agent.ok(&FAIRQ);
    cluster.transfer();
    let status = cluster.status(0, UPLINK);
    assert_eq!(counter(&status, "flows_begun"), 0, "{status}");

    agent.ok(&[&FAIRQ[..], &["--ignore-vni"]].concat());
    let held = cluster.transfer();
    let status = cluster.status(0, UPLINK);
    assert_eq!(order(&status), OURS_FIRST);
    assert_eq!(counter(&status, "flows_begun"), cluster::FLOWS, "{status}");
    assert!(counter(&status, "acks_rewritten") > 100, "{status}");
    assert!(held < lost / 4, "{held} packets are lost, {lost} without");
    assert_eq!(cluster.wrong_checksums(), 0);
}

/// On the card, where its own ACKs need the identities of pods, and on the device of the tunnel, which has the
/// inner packets.
#[test]
fn grant_holds_windows_of_pods_in_the_tunnel() {
    let cluster = Cluster::new(Pair::Veth, Routing::Vxlan);
    let lost = overflow(&cluster);
    let agent = cluster.agent(1);
    let side = [
        "--side", "receiver", "--rate", "17 Mb/s", "--buffer", "64 kB",
    ];
    for (interface, option) in [(UPLINK, &["--ignore-vni"][..]), (OVERLAY, &[])] {
        let _grant = grant(&agent, interface, &[&side[..], option].concat());
        let held = cluster.transfer();
        grants(&agent, interface);
        assert!(
            held < lost / 4,
            "{interface}: {held} packets are lost, {lost} without"
        );
    }
    assert_eq!(cluster.wrong_checksums(), 0);
}

/// Cilium translates behind ours in both directions: what leaves has the pod's address, what comes in the
/// node's.
#[test]
fn connections_that_cilium_masquerades_are_not_counted() {
    let cluster = Cluster::with(Pair::Veth, Routing::Bpf, true);
    cluster.agent(0).ok(&FAIRQ);
    cluster.transfer_to_node();
    let status = cluster.status(0, UPLINK);
    assert_eq!(counter(&status, "flows_begun"), 0, "{status}");
    assert_eq!(cluster.wrong_checksums(), 0);
}

/// Before Linux 6.6: of filters with the same priority the one that came last is the first.
#[test]
fn the_daemon_keeps_its_filters_before_those_of_cilium() {
    let mut cluster = Cluster::new(Pair::Veth, Routing::Bpf);
    let agent = cluster.agent(0);
    agent.ok(&[&FAIRQ[..], &["--hook", "clsact"]].concat());
    let pins = agent.pins.clone();
    let node = &mut cluster.nodes[0];
    node.cilium.use_filters(&node.netns);
    let first = |cluster: &Cluster| order(&cluster.status(0, UPLINK)).map(|names| names[0].clone());
    assert_eq!(first(&cluster), ["cil_to_netdev", "cil_from_netdev"]);
    cluster.busy(|| {
        until("ours are reported as blind", || {
            cluster.status(0, UPLINK)["blind"] == json!(["egress", "ingress"])
        });
    });

    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("penstockd.toml");
    std::fs::write(&config, format!("[agent]\npins = \"{}\"\n", pins.display())).unwrap();
    let program = std::path::Path::new(lab::PENSTOCKD);
    let mut daemon = cluster.agent(0).daemon(program, &config, lab::LIMIT);
    until("ours are first again", || {
        first(&cluster) == ["fairq_egress", "fairq_ingress"]
    });
    let node = &mut cluster.nodes[0];
    node.upgrade_cilium();
    node.cilium.use_filters(&node.netns);
    let both = ["cil_to_netdev", "cil_from_netdev"].map(str::to_owned);
    let status = cluster.status(0, UPLINK);
    assert_eq!(order(&status).map(|names| names[1].clone()), both);
    cluster.transfer();
    assert!(counter(&cluster.status(0, UPLINK), "acks_rewritten") > 100);
    daemon.signal(Signal::TERM);
    assert!(daemon.wait().success());
    cluster.agent(0).ok(&["detach", UPLINK]);
    cluster.transfer();
    assert!(cluster.nodes[0].cilium.runs().to_netdev > 0);
}

/// The programs of a netkit pair run where its packets leave, before any hook of tcx.
#[test]
#[ignore = "needs CONFIG_NETKIT; make test-kernels runs it"]
fn pods_behind_netkit_are_held_on_the_card() {
    let cluster = Cluster::new(Pair::Netkit, Routing::Bpf);
    holds_windows_of_pods(&cluster);
}

/// What the kernel routes passes the hooks of the pair's end in the host, too.
#[test]
#[ignore = "needs CONFIG_NETKIT; make test-kernels runs it"]
fn a_netkit_pair_is_a_port_where_the_kernel_routes() {
    let cluster = Cluster::new(Pair::Netkit, Routing::Stack);
    let words = [
        "--scheme", "observe", "--buffer", "1 MB", "--stale", "600 s",
    ];
    cluster
        .agent(1)
        .ok(&[&["attach", CONTAINER], &words[..]].concat());
    cluster.transfer();
    let status = cluster.status(1, CONTAINER);
    assert!(counter(&status, "egress_packets") > 100, "{status}");
    assert!(counter(&status, "acks") > 100, "{status}");
    assert_eq!(status["blind"], json!([]));
    let [packets, acks] = ["egress_packets", "acks"].map(|name| counter(&status, name));
    println!("\n= {packets} packets and {acks} ACKs seen");
}
