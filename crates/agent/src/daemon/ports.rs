// SPDX-License-Identifier: Apache-2.0
//! The ports of the daemon: those of its configuration and those attached by hand.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use penstock_linux::{
    link::{self, Link},
    note,
};
use penstock_scenario::{Buffer, Deployment};

use super::config::{Agent, Config};
use super::settled::{Settled, speed_bps};
use crate::attach::detach::detach_locked;
use crate::attach::hook::{HookChoice, Hooks, keep_first};
use crate::attach::location::Location;
use crate::attach::summary::{queue_warning, summary_line};
use crate::attach::versions::Other;
use crate::attach::{BY_OBSERVER, Options, attach_locked, location, versions};
use crate::host::{audit, systemd};
use crate::port::PinsArg;
use crate::port::heartbeat::{Errors, Keeper};
use crate::port::pins::PinsLock;
use crate::port::rings::Abandoned;
use crate::port::sockets;
use crate::port::timer::TIMER;

/// A folder among a port's pins, which marks it as attached by the daemon.
pub const MARK: &str = "by_daemon";

/// How often it waits again for the lock that it gave way with, before it leaves the rest of a round.
const RETRIES: u32 = 12;

/// Pause between looks at the hooks of all ports, which take a call of the kernel for each, and more
/// where it deletes interfaces at the same time.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// How often the scales of open connections are read while no port is attached, for those that began while
/// no port saw it, or of which a port forgot them.
const READ_SOCKETS: Duration = Duration::from_secs(60);

/// A tool that also wants to be first is not raced more often than this.
const MOVE_AGAIN: Duration = Duration::from_secs(10);

/// All ports whose heartbeats the daemon renews.
pub struct Ports {
    pins: PinsArg,
    keeper: Keeper,
    /// The ports that are kept alive, each with the numbers of its pins.
    kept: BTreeMap<String, Numbers>,
    errors: Errors,
    settled: Settled,
    /// When all hooks were last looked at, and how long that took.
    looked: Option<(Instant, Duration)>,
    /// When a port's programs were last put before another's, and before whose.
    moved: BTreeMap<String, (Instant, String)>,
    /// When the scales of open connections were read, and whether a port was attached since.
    sockets_read: Option<(Instant, bool)>,
}

/// Of the errors of all sockets: longer than any name of an interface.
const SOCKETS: &str = "sockets_of_this_host";

/// The numbers of a port's folder, and of its timer if it has one: a scheme that replaces another has
/// another timer.
type Numbers = (u64, Option<u64>);

/// The indexes of interfaces by their names, all read at the same time.
type Indexes = BTreeMap<String, u32>;

impl Ports {
    /// No port yet; `follow` takes over pinned ports.
    pub fn new(config: &Config) -> Ports {
        Ports {
            pins: config.agent.pins(),
            keeper: Keeper::start(interval(&config.agent)),
            kept: BTreeMap::new(),
            errors: Errors::default(),
            settled: Settled::default(),
            looked: None,
            moved: BTreeMap::new(),
            sockets_read: None,
        }
    }

    /// Detaches the ports of other versions of penstockd, whose heartbeats no one renews. Those that are
    /// configured have been attached again.
    pub fn remove_other_versions(&mut self, config: &Config) {
        let removed = self.try_remove_other_versions(config);
        self.errors.log_once("", removed);
    }

    fn try_remove_other_versions(&self, config: &Config) -> Result<()> {
        let mut others = versions::others(&self.pins)?;
        others.retain(|other| config.port_of(&other.interface).is_none());
        if others.is_empty() {
            return Ok(());
        }
        let lock = self.pins.lock()?;
        versions::remove(&self.pins, &lock, &others)?;
        for Other {
            interface, folder, ..
        } in others
        {
            audit::log("detach", &interface, &[]);
            note!(
                "{interface}: detached, as another version of penstockd attached it ({}); to attach it again: penstockd attach {interface}",
                folder.display()
            );
        }
        Ok(())
    }

    /// Attaches ports as configured, where their interfaces exist, and detaches others. Ports whose
    /// interfaces are the same are looked at about once a second, however often others come and go.
    pub fn follow(&mut self, config: &Config) {
        let begun = Instant::now();
        let is_due = |(ended, took): (Instant, Duration)| ended.elapsed() >= took.max(LOOK_AGAIN);
        let all = self.looked.is_none_or(is_due);
        self.adopt();
        let followed = self.try_follow(config, all);
        self.errors.log_once("", followed);
        self.adopt();
        self.remove_abandoned();
        if all {
            self.keep_first();
            self.looked = Some((Instant::now(), begun.elapsed()));
        }
        self.read_sockets();
    }

    /// Follows a changed configuration. What is not in force is tried again, as at a start.
    ///
    /// # Errors
    /// Why ports are not as configured, in one line.
    pub fn change(&mut self, old: &Config, new: &Config) -> Result<()> {
        self.settled.retain(|interface| {
            old.agent == new.agent
                && old.port_of(interface).map(|(_, port)| port)
                    == new.port_of(interface).map(|(_, port)| port)
        });
        self.keeper.set_interval(interval(&new.agent));
        self.errors.clear();
        self.looked = None;
        self.follow(new);
        let refusals = self.errors.lines(|name| name != SOCKETS);
        ensure!(refusals.is_empty(), "{}", refusals.join("; "));
        Ok(())
    }

    /// The daemon's state in one line, for systemd.
    pub fn summary(&self) -> String {
        match self.kept.len() {
            0 => "no port is attached".to_owned(),
            1 => "keeps 1 port alive".to_owned(),
            n => format!("keeps {n} ports alive"),
        }
    }

    fn try_follow(&mut self, config: &Config, all: bool) -> Result<()> {
        let links = link::all()?;
        let mut interfaces = self.pins.interfaces()?;
        interfaces.retain(|interface| {
            let here = links.iter().find(|link| link.name == *interface);
            all || here.is_none_or(|link| !self.settled.has(interface, link.index))
        });
        let located = location::all_of(&self.pins, interfaces, &links);
        let moves = location::renamed_of(&self.pins, &located, &links);
        let gone = self.gone(config, &located, &links);
        let resized = match all {
            true => self.settled.resized(config, &links),
            false => BTreeSet::new(),
        };
        let indexes: Indexes = links
            .into_iter()
            .map(|link| (link.name, link.index))
            .collect();
        self.forget_gone(config, &indexes);
        let to_attach = |ports: &Ports| -> Vec<(String, u32)> {
            let missing = indexes.iter().filter(|(name, index)| {
                let is_changed = !ports.settled.has(name, **index)
                    || resized.contains(*name)
                    || (all && !ports.is_on(name, **index));
                config.port_of(name).is_some() && is_changed
            });
            missing
                .map(|(name, index)| (name.clone(), *index))
                .collect()
        };
        // The lock is for changes alone: most often there are none.
        if moves.is_empty()
            && gone.is_empty()
            && to_attach(self).is_empty()
            && self.unconfigured(config).is_empty()
        {
            return Ok(());
        }
        let mut lock = self.pins.lock()?;
        if !moves.is_empty() {
            self.rename(&lock)?;
        }
        for (interface, inode) in gone {
            lock = self.give_way(lock)?;
            if self.pins.inode(&interface) != inode || !self.is_marked(&interface) {
                continue;
            }
            // Its name may never come back, and its slot is needed.
            let result = detach_locked(&self.pins, &lock, &interface);
            self.errors.log_once(&interface, result);
        }
        self.adopt();
        for (interface, index) in to_attach(self) {
            lock = self.give_way(lock)?;
            let Some((_, port)) = config.port_of(&interface) else {
                continue;
            };
            let speed_bps = speed_bps(&interface, port);
            let result = self.attach(config, &lock, &interface, port);
            let result = result.map(|buffer| {
                self.settled.insert(&interface, index, buffer, speed_bps);
                if let Some((_, is_outdated)) = &mut self.sockets_read {
                    *is_outdated = true;
                }
            });
            self.errors.log_once(&interface, result);
            self.adopt_port(&interface);
        }
        for interface in self.unconfigured(config) {
            lock = self.give_way(lock)?;
            if !self.is_marked(&interface) {
                continue;
            }
            let result = detach_locked(&self.pins, &lock, &interface);
            if result.is_ok() {
                self.settled.remove(&interface);
                note!("{interface}: detached, as it is no longer in the configuration");
            }
            self.errors.log_once(&interface, result);
        }
        Ok(())
    }

    /// Lets another process change ports that waits for it: in a round of hundreds of ports it would give
    /// up. It may rename ports, attach some that are to be kept alive from now on, and detach others.
    fn give_way(&mut self, lock: PinsLock) -> Result<PinsLock> {
        systemd::watchdog();
        if !self.pins.is_awaited() {
            return Ok(lock);
        }
        drop(lock);
        let mut lock = self.pins.lock();
        for _ in 0..RETRIES {
            if lock.is_ok() {
                break;
            }
            systemd::watchdog();
            lock = self.pins.lock();
        }
        let lock = lock?;
        self.rename(&lock)?;
        self.adopt();
        Ok(lock)
    }

    fn rename(&self, lock: &PinsLock) -> Result<()> {
        for (old, new) in location::follow(&self.pins, lock)? {
            note!("{old}: the interface is now called {new}; its scheme stays");
        }
        Ok(())
    }

    /// Whether the daemon attached it.
    fn is_marked(&self, interface: &str) -> bool {
        self.pins.of(interface).join(MARK).exists()
    }

    fn forget_gone(&mut self, config: &Config, indexes: &Indexes) {
        self.moved
            .retain(|interface, _| indexes.contains_key(interface));
        let pins = &self.pins;
        self.errors.retain(|name| {
            let is_no_interface = name.is_empty() || name == SOCKETS;
            is_no_interface || indexes.contains_key(name) || pins.has(name)
        });
        self.settled.retain(|interface| {
            let is_here = indexes.contains_key(interface);
            if !is_here && config.port_of(interface).is_some() {
                note!("{interface}: the interface is gone; it is attached when it returns");
            }
            is_here
        });
    }

    fn attach(
        &self,
        config: &Config,
        lock: &PinsLock,
        interface: &str,
        port: &Deployment,
    ) -> Result<Buffer> {
        let options = Options {
            flows: config.agent.flows,
            room: config.agent.room(),
            stale: config.agent.stale,
            hook: HookChoice::Auto,
            replace_qdisc: config.agent.may_replace_qdisc(interface),
            vxlan_ports: config.agent.vxlan_ports,
            ignores_vni: config.agent.ignore_vni,
        };
        let attached = attach_locked(&self.pins, lock, interface, port, &options)?;
        std::fs::create_dir_all(self.pins.of(interface).join(MARK))?;
        let summary = summary_line(interface, port, &attached, HookChoice::Auto);
        note!("{summary}");
        if let Some(warning) = queue_warning(interface, port) {
            note!("{warning}");
        }
        Ok(attached.buffer)
    }

    fn is_on(&self, interface: &str, index: u32) -> bool {
        let hooks = Hooks::of(&self.pins, interface);
        hooks.ifindex == index && hooks.are_ours()
    }

    /// Ports that the daemon attached, and whose interfaces are gone; and what their pins are, as a name may
    /// become another port's.
    fn gone(
        &self,
        config: &Config,
        located: &[(String, Location)],
        links: &[Link],
    ) -> Vec<(String, Option<u64>)> {
        let is_gone = |(interface, location): &&(String, Location)| {
            is_gone(config, interface, *location, links) && self.is_marked(interface)
        };
        let gone = located.iter().filter(is_gone);
        gone.map(|(interface, _)| (interface.clone(), self.pins.inode(interface)))
            .collect()
    }

    /// Ports that a configuration once had.
    fn unconfigured(&self, config: &Config) -> Vec<String> {
        let mut all = self.pins.interfaces().unwrap_or_default();
        all.retain(|interface| self.is_marked(interface) && config.port_of(interface).is_none());
        all
    }

    /// Removes what observers left that were killed.
    fn remove_abandoned(&mut self) {
        for interface in self.kept.keys() {
            let folder = self.pins.of(interface);
            let Some(abandoned) = Abandoned::find(&folder) else {
                continue;
            };
            let remove = |lock: PinsLock| match folder.join(BY_OBSERVER).exists() {
                true => detach_locked(&self.pins, &lock, interface),
                false => abandoned.remove(&lock, &self.pins.open(interface)?),
            };
            let removed = self.pins.lock().and_then(remove);
            self.errors.log_once(interface, removed);
        }
    }

    /// Puts our programs before those that other tools attached before them, as these may end the
    /// chain.
    fn keep_first(&mut self) {
        let links = link::all().unwrap_or_default();
        for interface in self.kept.keys() {
            let last = self.moved.get(interface);
            let is_recent = last.is_some_and(|(when, _)| when.elapsed() < MOVE_AGAIN);
            let here = links.iter().find(|link| link.name == *interface);
            let Some(link) = here.filter(|_| !is_recent) else {
                continue;
            };
            match keep_first(&self.pins, interface, link.index) {
                Err(error) => self.errors.log_once(interface, Err(error)),
                Ok(others) if others.is_empty() => (),
                Ok(others) => {
                    // Their names take CAP_SYS_ADMIN, which the service does not have.
                    let names = match others.join(" and ") {
                        _ if others.iter().any(String::is_empty) => "another program".into(),
                        names => names,
                    };
                    if last.is_none_or(|(_, before)| *before != names) {
                        note!("{interface}: moved before {names}, first on its hook again");
                    }
                    self.moved
                        .insert(interface.clone(), (Instant::now(), names));
                }
            }
        }
    }

    fn read_sockets(&mut self) {
        let is_recent = self.sockets_read.is_some_and(|(when, is_outdated)| {
            when.elapsed()
                < if is_outdated {
                    LOOK_AGAIN
                } else {
                    READ_SOCKETS
                }
        });
        if is_recent || self.kept.is_empty() {
            return;
        }
        self.sockets_read = Some((Instant::now(), false));
        self.errors
            .log_once(SOCKETS, sockets::read(&self.pins.shared()));
    }

    /// Keeps newly pinned ports alive and forgets those that are gone.
    fn adopt(&mut self) {
        let Ports {
            pins, keeper, kept, ..
        } = self;
        kept.retain(|interface, (inode, _)| {
            let is_same = pins.inode(interface) == Some(*inode);
            if !is_same {
                keeper.release(interface);
            }
            is_same
        });
        for interface in self.pins.interfaces().unwrap_or_default() {
            let kept = self.kept.get(&interface).copied();
            if kept.is_none() || kept != self.numbers(&interface) {
                self.adopt_port(&interface);
            }
        }
    }

    /// Keeps a port alive that was attached just now.
    fn adopt_port(&mut self, interface: &str) {
        let Some(numbers) = self.numbers(interface) else {
            return;
        };
        // It may be incomplete for now; the next call finds it complete.
        if self.keeper.keep(&self.pins, interface).is_ok() {
            self.kept.insert(interface.to_owned(), numbers);
        }
    }

    fn numbers(&self, interface: &str) -> Option<Numbers> {
        let timer = std::fs::metadata(self.pins.of(interface).join(TIMER));
        let timer = timer.ok().map(|about| about.ino());
        Some((self.pins.inode(interface)?, timer))
    }
}

/// Whether a port's interface is in another network namespace now, or no longer exists while no table waits
/// for it.
pub(super) fn is_gone(
    config: &Config,
    interface: &str,
    location: Location,
    links: &[Link],
) -> bool {
    let has_table = config.port.contains_key(interface);
    let has_successor = links.iter().any(|link| link.name == *interface);
    match location {
        Location::Here(_) => false,
        Location::Elsewhere(_) => true,
        Location::Nowhere => !has_table && !has_successor,
    }
}

fn interval(agent: &Agent) -> Duration {
    Duration::from_nanos(agent.heartbeat.as_nanos())
}
