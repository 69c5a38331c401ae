// SPDX-License-Identifier: Apache-2.0
//! The scenario's fabric as nodes and links.

use crate::fabric::{Cable, Fabric, NO_MTU};
use penstock_scenario::params::{FULL_PACKET, saturated};
use penstock_scenario::units::{Buffer, Time};
use penstock_scenario::{Bytes, Graph};

fn cable(link: &penstock_scenario::Link) -> Cable {
    Cable {
        rate: link.rate,
        delay: link.delay,
        jitter: link.jitter.unwrap_or(Time::ZERO),
        mtu: mtu(link.mtu),
    }
}

fn mtu(mtu: Option<Bytes>) -> u32 {
    mtu.map_or(NO_MTU, |mtu| saturated(mtu.0))
}

/// Nodes and links of a scenario's fabric.
pub fn build(spec: &penstock_scenario::Fabric) -> Fabric {
    let mut fabric = shape(spec);
    fabric.is_symmetric = spec.has_symmetric_paths();
    fabric.ecmp = spec.ecmp();
    let of_switch: Vec<Option<Buffer>> = fabric.nodes[fabric.hosts..]
        .iter()
        .map(|switch| match spec.shared_buffer(switch) {
            Some(shared) => Some(shared.alone(FULL_PACKET)),
            None => spec.buffer_at(switch),
        })
        .collect();
    for link in &mut fabric.links {
        let switch = (link.from as usize).checked_sub(fabric.hosts);
        link.buffer = switch
            .and_then(|switch| of_switch[switch])
            .unwrap_or(link.buffer);
    }
    if !spec.port_at().is_empty() {
        for number in 0..fabric.links.len() {
            let Some(change) = spec.port_change(&fabric.port_name(number as u32)) else {
                continue;
            };
            let link = &mut fabric.links[number];
            if let Some(rate) = change.rate {
                link.rate = rate;
                link.weight = (rate.0 / 1_000_000).clamp(1, u32::MAX.into()) as u32;
            }
            link.weight = change.weight.unwrap_or(link.weight);
            if change.mtu.is_some() {
                link.mtu = mtu(change.mtu);
            }
            link.delay = change.delay.unwrap_or(link.delay);
            link.buffer = change.buffer.unwrap_or(link.buffer);
        }
    }
    fabric
}

fn shape(spec: &penstock_scenario::Fabric) -> Fabric {
    let port = |link: &penstock_scenario::Link| (cable(link), spec.buffer_of(link));
    let hosts = spec.host_buffer();
    match spec {
        penstock_scenario::Fabric::Dumbbell(f) => Fabric::dumbbell(
            [f.senders, f.receivers, f.racks].map(|count| count as usize),
            hosts,
            [port(&f.access), port(f.rack_link()), port(&f.bottleneck)],
        ),
        penstock_scenario::Fabric::Tree(f) => Fabric::tree(
            [
                f.cores as usize,
                f.aggregations as usize,
                f.racks as usize,
                f.hosts_per_rack as usize,
            ],
            hosts,
            [port(&f.host_link), port(&f.rack_link), port(&f.core_link)],
        ),
        penstock_scenario::Fabric::LeafSpine(f) => Fabric::leaf_spine(
            [
                f.leaves as usize,
                f.spines as usize,
                f.hosts_per_leaf as usize,
            ],
            hosts,
            [port(&f.host_link), port(&f.spine_link)],
        ),
        penstock_scenario::Fabric::FatTree(f) => Fabric::fat_tree(
            f.k as usize,
            hosts,
            port(&f.host_link),
            port(f.switch_link()),
        ),
        penstock_scenario::Fabric::Graph(f) => graph(f, hosts, port),
    }
}

/// The cables of a list.
fn graph(
    spec: &Graph,
    hosts: Buffer,
    port: impl Fn(&penstock_scenario::Link) -> (Cable, Buffer),
) -> Fabric {
    let cable = |link: &penstock_scenario::Link, edge: Option<usize>| {
        let (mut cable, buffer) = port(link);
        if let Some(edge) = edge.map(|edge| &spec.edges[edge]) {
            cable.rate = edge.rate.unwrap_or(cable.rate);
            cable.delay = edge.delay.unwrap_or(cable.delay);
        }
        (cable, buffer)
    };
    let net = &spec.net;
    let first_switch = net.hosts.len();
    let node = |switch: usize| (first_switch + switch) as u32;
    let between = net.cables.iter().map(|(a, b, edge)| {
        let cable = cable(spec.switch_link(), Some(*edge));
        (node(*a), node(*b), cable)
    });
    let to_hosts = net.places.iter().enumerate().map(|(host, (switch, edge))| {
        let cable = cable(&spec.host_link, *edge);
        (host as u32, node(*switch), cable)
    });
    let cables = between.chain(to_hosts).collect();
    Fabric::graph(&net.hosts, &net.switches, net.hops + 2, hosts, cables)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fabric::Routes;
    use std::collections::{BTreeSet, HashSet};
    use std::path::Path;

    fn scenario(fabric: &str) -> penstock_scenario::Scenario {
        let text = format!(
            "title = \"names\"\nduration = \"1 s\"\nschemes = [\"drop-tail\"]\n[fabric]\n{fabric}\n\
             [traffic.t]\nkind = \"bulk\"\nfrom = \"all\"\nto = \"all\"\npairs = \"all\"\n"
        );
        penstock_scenario::Scenario::parse(&text, Path::new("names.toml"), &[]).expect("valid")
    }

    const FABRICS: [&str; 6] = [
        "kind = \"dumbbell\"\nsenders = 3\nreceivers = 2\n\
         access = { rate = \"1 Gb/s\", delay = \"1 us\" }\n\
         bottleneck = { rate = \"2 Gb/s\", delay = \"3 us\", buffer = \"9 packets\" }",
        "kind = \"dumbbell\"\nsenders = 6\nreceivers = 2\nracks = 3\n\
         access = { rate = \"1 Gb/s\", delay = \"1 us\" }\n\
         rack_link = { rate = \"3 Gb/s\", delay = \"2 us\", buffer = \"7 packets\" }\n\
         bottleneck = { rate = \"2 Gb/s\", delay = \"3 us\", buffer = \"9 packets\" }",
        "kind = \"tree\"\ncores = 2\naggregations = 3\nracks = 4\nhosts_per_rack = 2\n\
         host_link = { rate = \"1 Gb/s\", delay = \"1 us\" }\n\
         rack_link = { rate = \"2 Gb/s\", delay = \"2 us\" }\n\
         core_link = { rate = \"3 Gb/s\", delay = \"3 us\" }",
        "kind = \"leaf-spine\"\nleaves = 3\nspines = 4\nhosts_per_leaf = 2\n\
         host_link = { rate = \"1 Gb/s\", delay = \"1 us\" }\n\
         spine_link = { rate = \"4 Gb/s\", delay = \"2 us\" }",
        "kind = \"fat-tree\"\nk = 4\nhost_link = { rate = \"1 Gb/s\", delay = \"1 us\" }",
        "kind = \"fat-tree\"\nk = 6\nhost_link = { rate = \"1 Gb/s\", delay = \"1 us\" }\n\
         switch_link = { rate = \"2 Gb/s\", delay = \"2 us\" }",
    ];

    #[test]
    fn ports_and_hosts_are_called_as_scenarios_call_them() {
        for text in FABRICS {
            let spec = scenario(text).fabric;
            let fabric = build(&spec);
            let links = 0..fabric.links.len() as u32;
            let built: BTreeSet<String> = links.map(|link| fabric.port_name(link)).collect();
            let named = spec.ports();
            assert_eq!(named.len(), fabric.links.len());
            assert_eq!(built, named.into_iter().collect());
            assert_eq!(fabric.nodes[..fabric.hosts], spec.hosts());
        }
    }

    #[test]
    fn a_cable_is_the_same_in_both_directions() {
        for text in FABRICS {
            let fabric = build(&scenario(text).fabric);
            for cable in fabric.links.chunks(2) {
                let (there, back) = (&cable[0], &cable[1]);
                assert_eq!((there.from, there.to), (back.to, back.from));
                assert_eq!((there.rate, there.delay), (back.rate, back.delay));
                // Only switch ports have the scenario's buffer.
                let between_switches = !fabric.is_host(there.from) && !fabric.is_host(there.to);
                assert_eq!(between_switches, there.buffer == back.buffer);
            }
        }
    }

    #[test]
    fn every_equal_path_is_a_shortest_one_and_all_are_used() {
        // Paths between the first host and the last, and their length.
        let expected = [(1, 3), (1, 4), (3, 4), (4, 4), (4, 6), (9, 6)];
        for (text, (paths, length)) in FABRICS.into_iter().zip(expected) {
            let fabric = build(&scenario(text).fabric);
            let routes = Routes::new(&fabric);
            let last = fabric.hosts as u32 - 1;
            let mut used = HashSet::new();
            let mut path = Vec::new();
            for (source, destination, hash) in (0..fabric.hosts as u32)
                .flat_map(|from| (0..=last).map(move |to| (from, to, 1)))
                .chain((0..200).map(|hash| (0, last, hash)))
                .filter(|(from, to, _)| from != to)
            {
                routes.path(source, destination, hash, &mut path);
                let nodes: Vec<u32> = path
                    .iter()
                    .map(|link| fabric.links[*link as usize].from)
                    .chain([destination])
                    .collect();
                let ends = path.iter().map(|link| fabric.links[*link as usize].to);
                assert!(ends.eq(nodes[1..].iter().copied()) && nodes[0] == source);
                let visited: HashSet<&u32> = nodes.iter().collect();
                assert_eq!(visited.len(), nodes.len(), "a loop");
                assert!(path.len() <= fabric.longest_path());
                if (source, destination) == (0, last) {
                    assert_eq!(path.len(), length);
                    used.insert(path.clone());
                }
            }
            assert_eq!(used.len(), paths, "{text}");
        }
    }
}
