// SPDX-License-Identifier: Apache-2.0
//! Hosts, switches and ports, and the selectors that name them.

use std::collections::HashSet;

use penstock_scenario::{Fabric, Pairs, Scenario, Selector};

use super::parse_with;

fn fabric(text: &str) -> Fabric {
    let link = "{ rate = \"1 Gb/s\", delay = \"5 us\" }";
    let value = format!("{{ {} }}", text.replace("LINK", link));
    let overrides = [
        ("fabric", value.as_str()),
        (
            "traffic",
            "{ x = { kind = \"bulk\", from = \"all\", to = \"all\", pairs = \"all\" } }",
        ),
        ("measure", "{}"),
    ]
    .map(|(key, value)| (key.to_owned(), value.to_owned()));
    Scenario::parse(super::SAMPLE, "x.toml".as_ref(), &overrides)
        .unwrap_or_else(|error| panic!("{error}"))
        .fabric
}

fn fabrics() -> Vec<Fabric> {
    vec![
        fabric(
            r#"kind = "dumbbell", senders = 3, receivers = 2, access = LINK, bottleneck = LINK"#,
        ),
        fabric(
            r#"kind = "tree", cores = 2, aggregations = 2, racks = 3, hosts_per_rack = 4, host_link = LINK, rack_link = LINK, core_link = LINK"#,
        ),
        fabric(
            r#"kind = "leaf-spine", leaves = 3, spines = 2, hosts_per_leaf = 4, host_link = LINK, spine_link = LINK"#,
        ),
        fabric(r#"kind = "fat-tree", k = 4, host_link = LINK"#),
        fabric(
            r#"kind = "dumbbell", senders = 6, receivers = 2, racks = 3, access = LINK, bottleneck = LINK"#,
        ),
    ]
}

fn resolve(fabric: &Fabric, terms: &[&str]) -> Result<Vec<usize>, String> {
    let terms = terms.iter().map(|term| (*term).to_owned()).collect();
    Selector { terms }.resolve(fabric)
}

#[test]
fn names_are_distinct_and_ports_join_what_exists() {
    for fabric in fabrics() {
        let (hosts, switches) = (fabric.hosts(), fabric.switches());
        assert_eq!(hosts.len() as u64, fabric.host_count());
        let names: HashSet<_> = hosts.iter().chain(&switches).collect();
        assert_eq!(names.len(), hosts.len() + switches.len());
        let links = fabric.switch_links();
        assert_eq!(links.len() as u64, fabric.switch_link_count());
        assert_eq!(links.iter().collect::<HashSet<_>>().len(), links.len());
        for (lower, upper) in &links {
            assert!(
                switches.contains(lower) && switches.contains(upper),
                "{lower} {upper}"
            );
        }
        for host in 0..hosts.len() {
            assert!(switches.contains(&fabric.switch_of(host)));
        }
        let ports: HashSet<_> = fabric.ports().into_iter().collect();
        assert_eq!(ports.len(), 2 * (links.len() + hosts.len()));
    }
}

#[test]
fn a_fat_tree_has_k_ports_per_switch() {
    let fabric = &fabrics()[3];
    let mut degree = std::collections::HashMap::<String, usize>::new();
    let hosts = (0..16).map(|host| (fabric.host_name(host), fabric.switch_of(host)));
    for (lower, upper) in fabric.switch_links().into_iter().chain(hosts) {
        *degree.entry(lower).or_default() += 1;
        *degree.entry(upper).or_default() += 1;
    }
    for switch in fabric.switches() {
        assert_eq!(degree[&switch], 4, "{switch}");
    }
}

#[test]
fn groups_hold_the_hosts_of_their_switch() {
    for fabric in fabrics() {
        for (name, hosts) in fabric.groups() {
            for host in hosts.filter(|_| fabric.switches().contains(&name)) {
                assert_eq!(fabric.switch_of(host), name);
            }
        }
    }
}

#[test]
fn selectors() {
    let all = fabrics();
    let (dumbbell, tree, fat_tree) = (&all[0], &all[1], &all[3]);
    assert_eq!(resolve(dumbbell, &["all"]), Ok(vec![0, 1, 2, 3, 4]));
    assert_eq!(resolve(dumbbell, &["senders"]), Ok(vec![0, 1, 2]));
    assert_eq!(resolve(dumbbell, &["senders[1..]"]), Ok(vec![1, 2]));
    assert_eq!(
        resolve(dumbbell, &["senders[..1]", "receivers[1]"]),
        Ok(vec![0, 4])
    );
    assert_eq!(resolve(dumbbell, &["receiver2", "sender1"]), Ok(vec![4, 0]));
    assert_eq!(resolve(&all[4], &["rack2", "receiver1"]), Ok(vec![2, 3, 6]));
    assert_eq!(all[4].switch_of(3), "rack2");
    assert_eq!(resolve(tree, &["rack2"]), Ok(vec![4, 5, 6, 7]));
    assert_eq!(resolve(tree, &["rack3[0..2]", "host1"]), Ok(vec![8, 9, 0]));
    assert_eq!(resolve(fat_tree, &["pod2"]), Ok(vec![4, 5, 6, 7]));
    assert_eq!(resolve(fat_tree, &["pod2-edge2"]), Ok(vec![6, 7]));
    for term in [
        "senders[0..4]",
        "senders[2..1]",
        "senders[9]",
        "senders[x]",
        "senders[1",
        "sender0",
        "sender4",
        "rack1",
        "",
        "sender1[0]",
    ] {
        assert!(resolve(dumbbell, &[term]).is_err(), "{term}");
    }
    assert!(resolve(dumbbell, &[]).is_err());
}

#[test]
fn pairs() {
    let draw = |_| 0;
    assert_eq!(
        Pairs::Cyclic.choose(&[0, 1], &[2, 3, 4], Some(3), draw),
        [(0, 2), (1, 3), (0, 4)]
    );
    assert_eq!(
        Pairs::Cyclic.choose(&[0, 1, 2], &[3], None, draw),
        [(0, 3), (1, 3), (2, 3)]
    );
    assert_eq!(
        Pairs::All.choose(&[0, 1], &[0, 1], None, draw),
        [(0, 1), (1, 0)]
    );
    assert_eq!(
        Pairs::All.choose(&[0], &[1, 2], Some(3), draw),
        [(0, 1), (0, 2), (0, 1)]
    );
    let pairs = Pairs::between_machines(&[0, 1, 2, 3], &[8, 9], 2);
    assert_eq!(pairs.collect::<Vec<_>>(), [(0, 9), (1, 8), (2, 9), (3, 8)]);
    assert_eq!(Pairs::between_machines(&[0, 1], &[8, 9], 1).next(), None);
    let mut state = 7;
    let draw = |below| {
        state = (state * 5 + 3) % 1024;
        state / 4 % below
    };
    let random = Pairs::Random.choose(&[0, 1, 2], &[1, 2], Some(100), draw);
    assert!(
        random
            .iter()
            .all(|(source, destination)| source != destination)
    );
    assert_eq!(random.iter().collect::<HashSet<_>>().len(), 4);
}

#[test]
fn ports_are_selected_by_pattern() {
    let ports = "[\"right->receiver*\", \"bottleneck\"]";
    let scenario = parse_with("measure.ports", ports).unwrap();
    let selects = |name| scenario.measure.selects(&scenario.fabric, name);
    assert_eq!(selects("right->receiver7"), Some(true));
    assert_eq!(selects("left->right"), Some(true));
    assert_eq!(selects("right->left"), Some(false));
    let scenario = parse_with("measure.ports", "[]").unwrap();
    assert_eq!(
        scenario.measure.selects(&scenario.fabric, "left->right"),
        Some(true)
    );
    assert_eq!(
        scenario.measure.selects(&scenario.fabric, "right->left"),
        Some(false)
    );
}
