// SPDX-License-Identifier: Apache-2.0
//! Network namespaces: a socket belongs for good to the one its thread was in when it was made.

use super::check;
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::linux::fs::MetadataExt;
use std::path::Path;

/// The namespaces of all hosts, and the one this thread is in.
pub struct Namespaces {
    files: Vec<File>,
    by_inode: HashMap<u64, usize>,
    /// The machine's own, as far as this process is concerned.
    own: u64,
    current: Option<usize>,
}

impl Namespaces {
    /// None yet.
    pub fn new() -> io::Result<Namespaces> {
        Ok(Namespaces {
            files: Vec::new(),
            by_inode: HashMap::new(),
            own: File::open("/proc/self/ns/net")?.metadata()?.st_ino(),
            current: None,
        })
    }

    /// Opens the namespace at `path`; returns its number, the same for every path to it.
    pub fn open(&mut self, path: &Path) -> io::Result<usize> {
        let file = File::open(path)?;
        let inode = file.metadata()?.st_ino();
        let number = *self.by_inode.entry(inode).or_insert(self.files.len());
        if number == self.files.len() {
            self.files.push(file);
        }
        Ok(number)
    }

    /// How many different ones there are.
    pub fn len(&self) -> usize {
        self.files.len()
    }

    /// Whether this is the namespace that the process was started in.
    pub fn is_own(&self, number: usize) -> bool {
        self.by_inode.get(&self.own) == Some(&number)
    }

    /// Moves this thread into the namespace of that number.
    pub fn enter(&mut self, number: usize) -> io::Result<()> {
        if self.current == Some(number) {
            return Ok(());
        }
        // SAFETY: no pointers; the descriptor is open as long as `self`.
        check(unsafe { libc::setns(self.files[number].as_raw_fd(), libc::CLONE_NEWNET) })?;
        self.current = Some(number);
        Ok(())
    }
}
