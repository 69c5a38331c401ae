// SPDX-License-Identifier: Apache-2.0
//! The network namespaces of all hosts, and the one this thread is in.

use std::path::Path;

use penstock_linux::Result;
use penstock_linux::netns::NetNs;

/// Open namespaces, by number.
pub struct Namespaces {
    all: Vec<NetNs>,
    /// Inode of the one that the process was started in.
    own: u64,
    current: Option<usize>,
}

impl Namespaces {
    /// None yet.
    pub fn new() -> Result<Namespaces> {
        Ok(Namespaces {
            all: Vec::new(),
            own: NetNs::current()?.inode(),
            current: None,
        })
    }

    /// Opens the namespace at `path`; returns its number, the same for every path to it.
    pub fn open(&mut self, path: &Path) -> Result<usize> {
        let netns = NetNs::open(path)?;
        let known = self.all.iter().position(|n| n.inode() == netns.inode());
        Ok(known.unwrap_or_else(|| {
            self.all.push(netns);
            self.all.len() - 1
        }))
    }

    /// How many different ones there are.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether this is the namespace that the process was started in.
    pub fn is_own(&self, number: usize) -> bool {
        self.all[number].inode() == self.own
    }

    /// Moves this thread into the namespace of that number.
    pub fn enter(&mut self, number: usize) -> Result<()> {
        if self.current != Some(number) {
            self.all[number].join()?;
            self.current = Some(number);
        }
        Ok(())
    }
}
