// SPDX-License-Identifier: Apache-2.0
//! Slots: the numbers of ports in the maps that all ports share.
//!
//! The folder of a port has a folder named after its number, `slot_XXXXXXXX`: the slot in the lower half
//! and above it how often the slot was given away. The port has the slot if the map `port` has the same
//! number, and the slot is free if its configuration has no interface. So a process that is killed in
//! between leaves a folder without a slot, or a slot that is free.

use std::path::Path;

use anyhow::{Context, Result, bail};
use libbpf_rs::{MapCore, MapFlags, MapHandle, MapType};

use super::PinsArg;
use super::maps::{create, element, open_map, put, write};
use crate::skel::port::types::{port_config, port_slots, port_state};

/// Slots of one map of counters.
pub const STATS_PORTS: u32 = port_slots::STATS_PORTS.0;

/// How many elements of the map `slots` an interface may have.
const PROBES: u32 = port_slots::PORT_PROBES.0;

/// The part of a port's number that is its slot.
const SLOT: u32 = port_slots::PORT_SLOT_MASK.0;

/// Added to a port's number when its slot is given away.
const NEXT_USER: u32 = SLOT + 1;

const MARK: &str = "slot_";

/// The slot of the port with the number `id`.
pub const fn slot_of(id: u32) -> u32 {
    id & SLOT
}

/// The number of the port whose pins are in `folder`; none if it is incomplete.
pub fn mark_of(folder: &Path) -> Option<u32> {
    let entries = std::fs::read_dir(folder).ok()?;
    entries.flatten().find_map(|entry| {
        let name = entry.file_name();
        u32::from_str_radix(name.to_str()?.strip_prefix(MARK)?, 16).ok()
    })
}

/// The pin of the counters of a slot, next to those of other maps.
pub fn stats_pin(slot: u32) -> String {
    format!("stats_{}", slot / STATS_PORTS)
}

/// The maps that give a port its slot. A process that changes them holds the lock of the pins.
pub struct Slots {
    pins: PinsArg,
    config: MapHandle,
    heartbeat: MapHandle,
    state: MapHandle,
    slots: MapHandle,
}

impl Slots {
    /// Opens the maps.
    ///
    /// # Errors
    /// They do not exist: nothing is attached.
    pub fn open(pins: &PinsArg) -> Result<Slots> {
        let map = |name: &str| open_map(&pins.shared().join(name));
        Ok(Slots {
            config: map("config")?,
            heartbeat: map("heartbeat")?,
            state: map("port")?,
            slots: map("slots")?,
            pins: pins.clone(),
        })
    }

    /// Gives a free slot to the port whose pins are in `folder`, on the interface with this index.
    ///
    /// # Errors
    /// All are in use.
    pub fn allocate(&self, folder: &Path, index: u32) -> Result<()> {
        let slot = match self.first_free()? {
            Some(free) => free,
            None => self.reclaim()?,
        };
        let before: port_state = element(&self.state, slot)?;
        let id = (before.id & !SLOT).wrapping_add(NEXT_USER) | slot;
        self.reset_stats(slot)?;
        let mark = folder.join(format!("{MARK}{id:08x}"));
        std::fs::create_dir(&mark).with_context(|| mark.display().to_string())?;
        let state = port_state {
            id,
            ..Default::default()
        };
        write(&self.state, slot, &state)?;
        write(&self.heartbeat, slot, &0u64)?;
        self.bind(slot, index)?;
        let config = port_config {
            ifindex: index,
            ..Default::default()
        };
        write(&self.config, slot, &config)?;
        self.set_used(slot + 1)
    }

    /// Frees the slot of the port whose pins are in `folder`, if it has one. Its flows are deleted by
    /// the next sweep.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn free(&self, folder: &Path) -> Result<()> {
        mark_of(folder).map_or(Ok(()), |id| self.free_slot(id))
    }

    /// Frees the slot of the port with this number, if it has it.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn free_slot(&self, id: u32) -> Result<()> {
        let slot = slot_of(id);
        let state: port_state = element(&self.state, slot)?;
        if state.id != id {
            return Ok(());
        }
        let config = port_config {
            ifindex: 0,
            ..element(&self.config, slot)?
        };
        write(&self.config, slot, &config)?;
        let next = port_state {
            id: id.wrapping_add(NEXT_USER),
            ..Default::default()
        };
        write(&self.state, slot, &next)?;
        for rings in ["samples", "events"] {
            open_map(&self.pins.shared().join(rings))?
                .delete(&slot.to_ne_bytes())
                .ok();
        }
        Ok(())
    }

    /// The number of the port on the interface with this index, which may be in another network
    /// namespace.
    ///
    /// # Errors
    /// The maps cannot be read.
    pub fn port_at(&self, index: u32) -> Result<Option<u32>> {
        for at in self.places(index) {
            let slot: u32 = element(&self.slots, at)?;
            if self.owner(slot)? == index {
                return Ok(Some(element::<port_state>(&self.state, slot)?.id));
            }
        }
        Ok(None)
    }

    /// The index of the interface that has a slot; 0 if it is free.
    fn owner(&self, slot: u32) -> Result<u32> {
        Ok(element::<port_config>(&self.config, slot)?.ifindex)
    }

    fn first_free(&self) -> Result<Option<u32>> {
        for slot in 0..self.config.max_entries() {
            if self.owner(slot)? == 0 {
                return Ok(Some(slot));
            }
        }
        Ok(None)
    }

    /// Frees a slot whose folder was removed by other means than penstockd.
    fn reclaim(&self) -> Result<u32> {
        let interfaces = self.pins.interfaces()?;
        let marks: Vec<u32> = interfaces
            .iter()
            .filter_map(|interface| mark_of(&self.pins.of(interface)))
            .collect();
        let all = self.config.max_entries();
        for slot in 0..all {
            if !marks.contains(&element::<port_state>(&self.state, slot)?.id) {
                return Ok(slot);
            }
        }
        bail!(
            "{all} ports are attached, as many as there is room for; set agent.ports, then do: penstockd detach --all, and attach again"
        )
    }

    /// Lets the programs find the slot by the index of its interface.
    fn bind(&self, slot: u32, index: u32) -> Result<()> {
        for at in self.places(index) {
            let other: u32 = element(&self.slots, at)?;
            let owner = self.owner(other)?;
            if owner == 0 || owner == index || self.place_of(owner, other)? != Some(at) {
                return write(&self.slots, at, &slot);
            }
        }
        bail!(
            "interface {index} has no place in the map of slots, as it is equal to {PROBES} others modulo {}",
            self.slots.max_entries()
        )
    }

    /// Where the slot of an interface is in the map `slots`.
    fn place_of(&self, index: u32, slot: u32) -> Result<Option<u32>> {
        for at in self.places(index) {
            if element::<u32>(&self.slots, at)? == slot {
                return Ok(Some(at));
            }
        }
        Ok(None)
    }

    /// Zeroes the counters of a slot, whose map is created if it is the first of that.
    fn reset_stats(&self, slot: u32) -> Result<()> {
        let pin = self.pins.shared().join(stats_pin(slot));
        let (part, at) = (slot / STATS_PORTS, slot % STATS_PORTS);
        if !pin.exists() {
            let first = open_map(&self.pins.shared().join(stats_pin(0)))?;
            let layout = (first.key_size(), first.value_size());
            let mut map = create(MapType::PercpuArray, "stats_more", layout, STATS_PORTS)?;
            let stats = open_map(&self.pins.shared().join("stats"))?;
            put(&stats, part, &map)?;
            map.pin(&pin)?;
            return Ok(());
        }
        let map = open_map(&pin)?;
        let cpus = libbpf_rs::num_possible_cpus()?;
        let zero = vec![vec![0; map.value_size() as usize]; cpus];
        map.update_percpu(&at.to_ne_bytes(), &zero, MapFlags::ANY)?;
        Ok(())
    }

    /// Sweeps visit the slots below `used`.
    fn set_used(&self, used: u32) -> Result<()> {
        let map = open_map(&self.pins.shared().join("slots_used"))?;
        let before: u32 = element(&map, 0)?;
        write(&map, 0, &used.max(before))
    }

    /// Where the slot of an interface may be in the map `slots`.
    fn places(&self, index: u32) -> impl Iterator<Item = u32> + use<> {
        let elements = self.slots.max_entries();
        (0..PROBES).map(move |probe| index.wrapping_add(probe) % elements)
    }
}
