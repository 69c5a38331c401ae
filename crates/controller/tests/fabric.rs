// SPDX-License-Identifier: Apache-2.0
//! Switches, links, hosts and routes.

use penstock_controller::fabric::{Distances, FIND_NS, FORGET_NS, Fabric, MAX_HOSTS, Mac, Place};
use std::collections::{BTreeMap, BTreeSet};

fn place(datapath: u64, port: u32) -> Place {
    Place { datapath, port }
}

fn mac(number: u16) -> Mac {
    let [high, low] = number.to_be_bytes();
    Mac([2, 0, 0, 0, high, low])
}

/// Leaves 1, 2, ... with hosts at ports 1, 2, ...; spine s at port 100 + s, its ports numbered by leaf.
fn leaf_spine(leaves: u64, spines: u64, hosts: u16) -> Fabric {
    let mut fabric = Fabric::default();
    for leaf in 1..=leaves {
        let up = (1..=spines).map(|spine| 100 + spine as u32);
        let ports = (1..=u32::from(hosts)).chain(up).collect();
        fabric.set_ports(leaf, ports, 0);
    }
    for spine in 1..=spines {
        let ports = (1..=leaves as u32).collect();
        fabric.set_ports(1000 + spine, ports, 0);
        for leaf in 1..=leaves {
            let ends = (
                place(leaf, 100 + spine as u32),
                place(1000 + spine, leaf as u32),
            );
            assert!(fabric.add_link(ends.0, ends.1));
            assert!(
                !fabric.add_link(ends.1, ends.0),
                "it is known from the other end"
            );
        }
    }
    assert!(
        !fabric.settle(FIND_NS),
        "all ports have been there for long enough"
    );
    for leaf in 1..=leaves {
        for host in 1..=hosts {
            let number = leaf as u16 * 100 + host;
            assert!(fabric.add_host(mac(number), place(leaf, host.into()), 0));
        }
    }
    fabric
}

#[test]
fn routes_are_the_same_forth_and_back() {
    let fabric = leaf_spine(4, 2, 4);
    let hosts: Vec<_> = fabric.hosts().collect();
    let ends: BTreeMap<_, _> = fabric.links().flat_map(|(a, b)| [(a, b), (b, a)]).collect();
    let (mut spines, mut distances) = (BTreeSet::new(), Distances::new());
    for (from, at) in &hosts {
        for (to, last) in &hosts {
            let path = fabric.path(*from, *to).expect("all are connected");
            let back = fabric.path(*to, *from).expect("all are connected");
            assert_eq!(path.last(), Some(last));
            let same = fabric.path_by(&mut distances, *from, *to);
            assert_eq!(same.as_ref(), Some(&path));
            assert_eq!(path.len(), if at.datapath == last.datapath { 1 } else { 3 });
            let links = |path: &[Place]| {
                let both = path.iter().filter_map(|out| Some((*out, *ends.get(out)?)));
                both.map(|(a, b)| (a.min(b), a.max(b)))
                    .collect::<BTreeSet<_>>()
            };
            assert_eq!(links(&path), links(&back), "{from} to {to}");
            spines.extend(
                path.iter()
                    .filter(|out| out.datapath > 1000)
                    .map(|out| out.datapath),
            );
        }
    }
    assert_eq!(spines.len(), 2, "both spines are used");
}

#[test]
fn a_broadcast_reaches_each_host_once() {
    let fabric = leaf_spine(4, 2, 4);
    let ends: BTreeMap<_, _> = fabric.links().flat_map(|(a, b)| [(a, b), (b, a)]).collect();
    let tree = fabric.tree();
    for (_, from) in fabric.hosts() {
        let mut reached: BTreeMap<Place, u32> = BTreeMap::new();
        let mut arrived = vec![from];
        while let Some(entry) = arrived.pop() {
            for port in &tree[&entry.datapath] {
                let out = place(entry.datapath, *port);
                if out == entry {
                    continue; // OpenFlow sends nothing back
                }
                match ends.get(&out) {
                    Some(next) => arrived.push(*next),
                    None => *reached.entry(out).or_default() += 1,
                }
            }
        }
        let hosts: BTreeMap<_, _> = fabric
            .hosts()
            .filter(|(_, at)| *at != from)
            .map(|(_, at)| (at, 1))
            .collect();
        assert_eq!(reached, hosts);
    }
}

#[test]
fn what_is_behind_a_port_that_goes_is_forgotten() {
    let mut fabric = leaf_spine(2, 2, 1);
    fabric.set_ports(1001, BTreeSet::new(), 0);
    let path = fabric.path(mac(101), mac(201)).expect("the other spine");
    assert_eq!(path, [place(1, 102), place(1002, 2), place(2, 1)]);
    fabric.set_ports(1002, BTreeSet::new(), 0);
    assert_eq!(fabric.path(mac(101), mac(201)), None);
    fabric.set_ports(1, BTreeSet::from([101]), 0);
    assert_eq!(fabric.hosts().count(), 1);
}

#[test]
fn nothing_is_flooded_over_a_port_before_it_is_known_where_it_leads() {
    let mut fabric = leaf_spine(2, 1, 2);
    let now_ns = 10 * FIND_NS;
    fabric.set_ports(1, BTreeSet::from([1, 2, 3, 101]), now_ns);
    assert!(fabric.settle(now_ns + FIND_NS - 1), "port 3 is new");
    assert!(!fabric.tree()[&1].contains(&3));
    assert!(!fabric.add_host(mac(103), place(1, 3), now_ns));
    assert!(fabric.tree()[&1].contains(&1), "the others are as before");
    assert!(!fabric.settle(now_ns + FIND_NS));
    assert!(fabric.tree()[&1].contains(&3));
    assert!(fabric.add_host(mac(103), place(1, 3), now_ns));
}

#[test]
fn no_host_is_learned_behind_a_switch_or_from_a_forged_address() {
    let mut fabric = leaf_spine(2, 1, 1);
    assert!(!fabric.add_host(mac(999), place(1, 101), 0));
    assert!(!fabric.add_host(mac(999), place(1, 77), 0), "no such port");
    assert!(!fabric.add_host(Mac([0xff; 6]), place(1, 1), 0));
}

#[test]
fn who_makes_up_addresses_leaves_room_for_others() {
    let mut fabric = leaf_spine(2, 1, 1);
    let known = fabric.hosts().count();
    for number in 1000..2000 {
        fabric.add_host(mac(number), place(1, 1), 0);
    }
    let all = fabric.hosts().count();
    assert!(
        (MAX_HOSTS / 2..MAX_HOSTS).contains(&all),
        "{known} to {all}"
    );
    assert!(fabric.add_host(mac(999), place(2, 1), 0), "at another port");
    for number in 2000..3000 {
        fabric.add_host(mac(number), place(2, 1), 0);
    }
    assert!(fabric.hosts().count() <= MAX_HOSTS);
}

#[test]
fn a_host_that_is_silent_makes_room_for_another() {
    let mut fabric = leaf_spine(2, 1, 1);
    for number in 1000..2000 {
        fabric.add_host(mac(number), place(1, 1), 1);
    }
    let all = fabric.hosts().count();
    assert!(!fabric.add_host(mac(999), place(1, 1), FORGET_NS - 1));
    assert!(fabric.add_host(mac(999), place(1, 1), FORGET_NS));
    assert_eq!(fabric.hosts().count(), all);
    assert_eq!(fabric.place(mac(201)), Some(place(2, 1)));
}

#[test]
fn who_claims_the_address_of_another_is_not_believed_while_that_sends() {
    let mut fabric = leaf_spine(2, 1, 2);
    let second = 1_000_000_000;
    assert!(!fabric.add_host(mac(101), place(1, 1), 10 * second));
    assert!(!fabric.add_host(mac(101), place(2, 2), 12 * second));
    assert_eq!(fabric.path(mac(102), mac(101)), Some(vec![place(1, 1)]));
    assert!(
        fabric.add_host(mac(101), place(2, 2), 15 * second),
        "it has moved"
    );
    // Its port goes down: it may be anywhere.
    fabric.set_ports(2, BTreeSet::from([1, 101]), 0);
    assert!(fabric.add_host(mac(101), place(1, 1), 16 * second));
}
