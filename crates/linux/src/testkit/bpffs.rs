// SPDX-License-Identifier: Apache-2.0
//! A BPF file system for one test.

use std::path::Path;

use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use tempfile::TempDir;

/// A mounted BPF file system, in which objects can be pinned. Unmounted when dropped, which frees
/// them.
#[derive(Debug)]
pub struct Bpffs(TempDir);

impl Bpffs {
    /// Mounts one in a temporary folder.
    ///
    /// # Panics
    /// The test does not run as root.
    #[track_caller]
    pub fn mount() -> Bpffs {
        let folder = tempfile::Builder::new().prefix("penstock-bpffs-").tempdir();
        let folder = folder.unwrap_or_else(|error| panic!("a temporary folder: {error}"));
        if let Err(error) = mount("bpf", folder.path(), "bpf", MountFlags::empty(), None) {
            panic!(
                "cannot mount a bpffs at {}: {error}: run this test as root",
                folder.path().display()
            );
        }
        Bpffs(folder)
    }

    /// Where it is mounted.
    pub fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Bpffs {
    fn drop(&mut self) {
        let _ = unmount(self.path(), UnmountFlags::DETACH);
    }
}
