// SPDX-License-Identifier: Apache-2.0
//! What the ends of a connection would ignore changes nothing that a port knows of it.

use std::collections::BTreeMap;

use libbpf_rs::{MapCore, MapFlags, Object, ProgramMut};
use penstockd::skel::port::types;

use super::craft::Flow;
use super::kernel::{Runner, make_runnable};
use super::random::Random;

/// The entries of all flows, by the map and the key.
type Entries = BTreeMap<(&'static str, Vec<u8>), Vec<u8>>;

fn entries(object: &Object) -> Entries {
    let mut all = Entries::new();
    for name in ["flows4", "flows6"] {
        let map = object.maps().find(|map| map.name() == name).unwrap();
        for key in map.keys() {
            if let Some(mut flow) = map.lookup(&key, MapFlags::ANY).unwrap() {
                // With the edge behind it; the rest is of transfers and sweeps.
                flow.truncate(size_of::<types::flow_entry>() + size_of::<types::tcp_edge>());
                all.insert((name, key), flow);
            }
        }
    }
    all
}

/// Forges packets of one side of all flows; returns how many entries could have changed.
pub fn forge(
    object: &Object,
    runner: &mut Runner,
    programs: &[ProgramMut<'_>; 2],
    flows: &mut [Flow],
    random: &mut Random,
) -> Result<u64, String> {
    let before = entries(object);
    // Of one side alone, as two that forge could prove a flow to one another.
    let side = random.below(2);
    for flow in flows {
        for _ in 0..4 {
            let mut packet = flow.forged(side, random);
            make_runnable(&mut packet);
            runner.run(&programs[usize::from(side == 0)], &packet, 0);
        }
    }
    let after = entries(object);
    let changed = before
        .iter()
        .find(|(key, flow)| after.get(key) != Some(flow));
    if let Some((key, flow)) = changed {
        let now = after.get(key);
        return Err(format!(
            "a forged packet changed the flow {key:x?} from {flow:x?} to {now:x?}"
        ));
    }
    match after.len() - before.len() {
        0 => Ok(before.len() as u64),
        more => Err(format!("forged packets made {more} flows")),
    }
}
