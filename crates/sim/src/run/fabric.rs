// SPDX-License-Identifier: Apache-2.0
//! The scenario's fabric as nodes and links.

use crate::fabric::{Cable, Fabric};
use crate::scenario;

fn cable(link: &scenario::Link) -> Cable {
    Cable {
        rate: link.rate,
        delay: link.delay,
    }
}

/// Nodes and links of a scenario's fabric.
pub fn build(spec: &scenario::Fabric) -> Fabric {
    let port = |link: &scenario::Link| (cable(link), spec.buffer_of(link));
    let hosts = spec.host_buffer();
    match spec {
        scenario::Fabric::Dumbbell(f) => Fabric::dumbbell(
            f.senders as usize,
            f.receivers as usize,
            hosts,
            port(&f.access),
            port(&f.bottleneck),
        ),
        scenario::Fabric::Tree(f) => Fabric::tree(
            [
                f.cores as usize,
                f.aggregations as usize,
                f.racks as usize,
                f.hosts_per_rack as usize,
            ],
            hosts,
            [port(&f.host_link), port(&f.rack_link), port(&f.core_link)],
        ),
        scenario::Fabric::LeafSpine(f) => Fabric::leaf_spine(
            [
                f.leaves as usize,
                f.spines as usize,
                f.hosts_per_leaf as usize,
            ],
            hosts,
            [port(&f.host_link), port(&f.spine_link)],
        ),
        scenario::Fabric::FatTree(f) => Fabric::fat_tree(
            f.k as usize,
            hosts,
            port(&f.host_link),
            port(f.switch_link()),
        ),
    }
}
