// SPDX-License-Identifier: Apache-2.0
//! Shortest paths with equal-cost multi-path: at each switch the hash of the connection picks one
//! of the links that lead nearer to the destination.

use super::Fabric;
use penstock_scenario::Ecmp;
use penstock_scenario::units::Time;
use std::collections::VecDeque;

/// Distances of all switches from each switch that has hosts, and the links out of every node.
pub struct Routes {
    hosts: usize,
    /// Links out of each node, in the order of their numbers.
    out: Vec<Vec<u32>>,
    to: Vec<u32>,
    /// How often each link is chosen among those that lead as near; empty: all equally often.
    weights: Vec<u32>,
    /// `distance[edge][switch]`: cables between a switch and the edge switch, `u8::MAX` unreachable.
    distance: Vec<Vec<u8>>,
}

impl Routes {
    /// Routes of a fabric in which each host has one cable.
    pub fn new(fabric: &Fabric) -> Routes {
        let mut out = vec![Vec::new(); fabric.nodes.len()];
        for (link, spec) in fabric.links.iter().enumerate() {
            out[spec.from as usize].push(link as u32);
        }
        let mut routes = Routes {
            hosts: fabric.hosts,
            out,
            to: fabric.links.iter().map(|spec| spec.to).collect(),
            weights: match fabric.ecmp {
                Ecmp::Weighted => fabric.links.iter().map(|spec| spec.weight).collect(),
                Ecmp::Flow | Ecmp::Packet => Vec::new(),
            },
            distance: vec![Vec::new(); fabric.nodes.len() - fabric.hosts],
        };
        for host in 0..fabric.hosts {
            let edge = routes.edge(host as u32);
            if routes.distance[edge].is_empty() {
                routes.distance[edge] = routes.distances_from(edge);
            }
        }
        routes
    }

    /// The switch of a host, counted among the switches.
    fn edge(&self, host: u32) -> usize {
        self.to[self.out[host as usize][0] as usize] as usize - self.hosts
    }

    fn distances_from(&self, edge: usize) -> Vec<u8> {
        let mut distance = vec![u8::MAX; self.distance.len()];
        let mut queue = VecDeque::from([edge]);
        distance[edge] = 0;
        while let Some(switch) = queue.pop_front() {
            for link in &self.out[self.hosts + switch] {
                let node = self.to[*link as usize] as usize;
                if node >= self.hosts && distance[node - self.hosts] == u8::MAX {
                    distance[node - self.hosts] = distance[switch] + 1;
                    queue.push_back(node - self.hosts);
                }
            }
        }
        distance
    }

    /// The links from `source` to `destination` for a connection that hashes to `hash`, written
    /// into `path`. Empty where there is no path or both are one host.
    pub fn path(&self, source: u32, destination: u32, hash: u64, path: &mut Vec<u32>) {
        self.variant(source, destination, hash, 0, path);
    }

    /// Path number `variant` of the connection, from 0: of so many as are returned, each is another.
    pub fn variant(
        &self,
        source: u32,
        destination: u32,
        hash: u64,
        mut variant: u64,
        path: &mut Vec<u32>,
    ) -> u64 {
        path.clear();
        let mut variants: u64 = 1;
        if source == destination {
            return 0;
        }
        let target = self.edge(destination);
        let distance = &self.distance[target];
        path.push(self.out[source as usize][0]);
        let mut switch = self.edge(source);
        while switch != target {
            let nearer = |link: &&u32| {
                let node = self.to[**link as usize] as usize;
                node >= self.hosts && distance[node - self.hosts] < distance[switch]
            };
            let links = &self.out[self.hosts + switch];
            let choices = links.iter().filter(nearer).count() as u64;
            if choices == 0 {
                path.clear();
                return 0;
            }
            // Each switch sees other bits of the hash, or a pod would use a part of its uplinks only.
            let mut rng = crate::rng::Rng::new(hash, switch as u64);
            let choice = match self.weights.is_empty() {
                true => (rng.below(choices) + variant % choices) % choices,
                false => self.weighted(links.iter().filter(nearer), &mut rng),
            };
            variant /= choices;
            variants = variants.saturating_mul(choices);
            let Some(link) = links.iter().filter(nearer).nth(choice as usize) else {
                path.clear();
                return 0;
            };
            path.push(*link);
            switch = self.to[*link as usize] as usize - self.hosts;
        }
        // The access cable's link 2n leaves the host, 2n + 1 leaves the switch, or the reverse.
        path.push(self.out[destination as usize][0] ^ 1);
        variants
    }

    /// The longest round trip between two hosts, by propagation over the same cables both ways.
    pub fn longest_round_trip(&self, fabric: &Fabric) -> Time {
        let both_ways = |link: u32| {
            let [there, back] = [link, link ^ 1].map(|link| fabric.links[link as usize].delay);
            there.saturating_add(back)
        };
        // Of each switch the two longest cables to hosts.
        let mut cables = vec![[Time::ZERO; 2]; self.distance.len()];
        for host in 0..self.hosts as u32 {
            let own = both_ways(self.out[host as usize][0]);
            let [longest, second] = &mut cables[self.edge(host)];
            *second = own.min(*longest).max(*second);
            *longest = own.max(*longest);
        }
        let mut most = Time::ZERO;
        for (target, distance) in self.distance.iter().enumerate() {
            let mut switches: Vec<usize> = (0..distance.len()).collect();
            switches.sort_by_key(|switch| distance[*switch]);
            let mut far = vec![Time::ZERO; distance.len()];
            for switch in switches {
                for link in &self.out[self.hosts + switch] {
                    let next = (self.to[*link as usize] as usize).checked_sub(self.hosts);
                    if let Some(next) = next.filter(|next| distance[*next] < distance[switch]) {
                        let whole = both_ways(*link).saturating_add(far[next]);
                        far[switch] = far[switch].max(whole);
                    }
                }
                if !self.distance[switch].is_empty() {
                    let [longest, second] = cables[switch];
                    let last = if switch == target { second } else { longest };
                    let whole = cables[target][0].saturating_add(far[switch]);
                    most = most.max(whole.saturating_add(last));
                }
            }
        }
        most
    }

    /// One of the links, drawn by weight.
    fn weighted<'a>(
        &self,
        links: impl Iterator<Item = &'a u32> + Clone,
        rng: &mut crate::rng::Rng,
    ) -> u64 {
        let weight = |link: &u32| u64::from(self.weights[*link as usize]);
        let mut place = rng.below(links.clone().map(weight).sum());
        for (choice, link) in (0..).zip(links) {
            match place.checked_sub(weight(link)) {
                None => return choice,
                Some(rest) => place = rest,
            }
        }
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fabric::Cable;
    use penstock_scenario::units::Buffer;
    use penstock_scenario::units::Rate;
    use std::collections::HashSet;

    const BUFFER: Buffer = Buffer::Packets(10);
    const PORT: (Cable, Buffer) = (
        Cable {
            rate: Rate(1_000_000_000),
            delay: Time(1),
            jitter: Time::ZERO,
            mtu: crate::fabric::NO_MTU,
        },
        BUFFER,
    );

    fn check(fabric: &Fabric, source: u32, destination: u32, hash: u64) -> Vec<u32> {
        let routes = Routes::new(fabric);
        let mut path = Vec::new();
        routes.path(source, destination, hash, &mut path);
        assert_eq!(fabric.links[path[0] as usize].from, source);
        assert_eq!(fabric.links[path[path.len() - 1] as usize].to, destination);
        for pair in path.windows(2) {
            assert_eq!(
                fabric.links[pair[0] as usize].to,
                fabric.links[pair[1] as usize].from
            );
        }
        path
    }

    #[test]
    fn fat_tree_uses_all_core_switches_and_the_right_lengths() {
        let fabric = Fabric::fat_tree(4, BUFFER, PORT, PORT);
        assert_eq!(
            (fabric.hosts, fabric.nodes.len(), fabric.links.len()),
            (16, 16 + 20, 2 * 48)
        );
        assert_eq!(check(&fabric, 0, 1, 1).len(), 2);
        assert_eq!(check(&fabric, 0, 2, 1).len(), 4);
        let cores: HashSet<u32> = (0..100)
            .map(|hash| {
                let path = check(&fabric, 0, 15, hash);
                assert_eq!(path.len(), 6);
                fabric.links[path[2] as usize].to
            })
            .collect();
        assert_eq!(cores.len(), 4);
    }

    #[test]
    fn every_shape_connects_all_hosts() {
        let shapes = [
            Fabric::dumbbell([3, 2, 0], BUFFER, [PORT; 3]),
            Fabric::dumbbell([6, 2, 3], BUFFER, [PORT; 3]),
            Fabric::tree([1, 2, 3, 4], BUFFER, [PORT; 3]),
            Fabric::leaf_spine([3, 2, 4], BUFFER, [PORT; 2]),
            Fabric::fat_tree(6, BUFFER, PORT, PORT),
        ];
        for fabric in shapes {
            for destination in 1..fabric.hosts as u32 {
                assert!(check(&fabric, 0, destination, 7).len() <= fabric.longest_path());
            }
        }
    }
}
