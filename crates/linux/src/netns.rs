// SPDX-License-Identifier: Apache-2.0
//! Network namespaces. A thread is in one; a socket belongs for good to the one its thread was in
//! when it was made.

use std::fs::File;
use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::linux::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};

use crate::{Error, Result};

/// The namespace of the thread that reads this path.
const OF_THIS_THREAD: &str = "/proc/thread-self/ns/net";

/// An open network namespace. One that was created here has no name, and ends with the last
/// descriptor, thread or socket in it: nothing is left behind, even by a killed process.
#[derive(Debug)]
pub struct NetNs {
    file: File,
    inode: u64,
}

impl NetNs {
    /// Creates a namespace with nothing but a loopback interface, which is down.
    ///
    /// # Errors
    /// The caller lacks CAP_SYS_ADMIN.
    pub fn create() -> Result<NetNs> {
        let create = || -> io::Result<NetNs> {
            // SAFETY: only the network namespace of this new thread changes, no descriptors.
            unsafe { unshare_unsafe(UnshareFlags::NEWNET) }?;
            NetNs::from_path(Path::new(OF_THIS_THREAD))
        };
        // The caller's thread stays where it is.
        let created = std::thread::spawn(create).join();
        let created = created.unwrap_or_else(|_| Err(io::Error::other("the thread panicked")));
        created.map_err(|reason| {
            Error::refused("create a network namespace (needs CAP_SYS_ADMIN)", reason)
        })
    }

    /// Opens the namespace at a path, as in `/run/netns/NAME` or `/proc/PID/ns/net`.
    ///
    /// # Errors
    /// There is nothing at the path, or the caller may not open it.
    pub fn open(path: &Path) -> Result<NetNs> {
        NetNs::from_path(path).map_err(|reason| {
            Error::refused(
                format!("open the network namespace {}", path.display()),
                reason,
            )
        })
    }

    /// The calling thread's namespace.
    ///
    /// # Errors
    /// No `/proc` is mounted.
    pub fn current() -> Result<NetNs> {
        NetNs::open(Path::new(OF_THIS_THREAD))
    }

    fn from_path(path: &Path) -> io::Result<NetNs> {
        let file = File::open(path)?;
        let inode = file.metadata()?.st_ino();
        Ok(NetNs { file, inode })
    }

    /// The kernel's number of it: two descriptors of one namespace have the same.
    pub fn inode(&self) -> u64 {
        self.inode
    }

    /// A path to it for other processes, valid as long as this value and process live.
    pub fn path(&self) -> PathBuf {
        let fd = self.file.as_raw_fd();
        PathBuf::from(format!("/proc/{}/fd/{fd}", std::process::id()))
    }

    /// Moves the calling thread into it for good.
    ///
    /// # Errors
    /// The caller lacks CAP_SYS_ADMIN, or the file is no network namespace.
    pub fn join(&self) -> Result<()> {
        move_into_link_name_space(self.file.as_fd(), Some(LinkNameSpaceType::Network)).map_err(
            |reason| Error::refused("enter a network namespace (needs CAP_SYS_ADMIN)", reason),
        )
    }

    /// Moves the calling thread into it until the returned guard is dropped.
    ///
    /// # Errors
    /// As [`NetNs::join`].
    pub fn enter(&self) -> Result<Entered> {
        let before = NetNs::current()?;
        self.join()?;
        Ok(Entered {
            before,
            not_send: PhantomData,
        })
    }

    /// Runs `work` in it on the calling thread; child processes that `work` starts are in it too.
    ///
    /// # Errors
    /// As [`NetNs::join`].
    pub fn run<T>(&self, work: impl FnOnce() -> T) -> Result<T> {
        let _entered = self.enter()?;
        Ok(work())
    }

    /// Runs `work` in it on a thread of its own.
    ///
    /// # Errors
    /// The descriptor cannot be copied. A failure to enter ends the thread by a panic.
    pub fn spawn<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<JoinHandle<T>> {
        let file = self.file.try_clone();
        let file = file.map_err(|reason| Error::refused("copy a descriptor", reason))?;
        let netns = NetNs { file, ..*self };
        Ok(std::thread::spawn(move || {
            if let Err(error) = netns.join() {
                panic!("{error}");
            }
            work()
        }))
    }
}

impl AsFd for NetNs {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// The calling thread is in another network namespace; dropping this takes it back.
#[derive(Debug)]
#[must_use = "the thread leaves the namespace at once if this is dropped"]
pub struct Entered {
    before: NetNs,
    /// The thread that entered must be the one that leaves.
    not_send: PhantomData<*const ()>,
}

impl Drop for Entered {
    /// # Panics
    /// The thread cannot go back: it would work in the wrong namespace from then on.
    fn drop(&mut self) {
        if let Err(error) = self.before.join() {
            panic!("{error}");
        }
    }
}
