// SPDX-License-Identifier: Apache-2.0
//! Locks between processes, as files of a folder that only the superuser can enter. A folder of a
//! bpffs would be open to every user where it is mounted with mode 1777, and any user who can open
//! a file can lock it.

use std::fs::File;
use std::io::{Read, Seek, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use crate::format::shell_word;

/// Pause between two attempts.
const PAUSE: Duration = Duration::from_millis(20);

/// A lock, held until this is dropped or the process ends. Its file goes with it.
#[derive(Debug)]
pub struct Lock {
    file: File,
    path: PathBuf,
}

/// The process that holds a lock, as it wrote itself into the file.
#[derive(Debug)]
pub struct Holder(pub String);

impl Lock {
    /// Takes the lock `name` in `folder`, and writes `holder` into its file; who holds it instead if
    /// it is not free within `patience`.
    ///
    /// # Errors
    /// The folder belongs to another user, or cannot be created.
    pub fn take(
        folder: &Path,
        name: &str,
        holder: &str,
        patience: Duration,
    ) -> Result<std::result::Result<Lock, Holder>> {
        let opened = private_folder(folder)?;
        let path = folder.join(name);
        let end = Instant::now() + patience;
        loop {
            let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let file = rustix::fs::openat(&opened, name, flags, Mode::RUSR | Mode::WUSR)
                .with_context(|| path.display().to_string())?;
            match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
                // The process that held the lock removed the file.
                Ok(()) if !is_at(&file, &opened, name) => continue,
                Ok(()) => {
                    let mut file = File::from(file);
                    // On a full disk the holder has no name, but ports can be detached.
                    let _ = file
                        .set_len(0)
                        .and_then(|()| file.write_all(holder.as_bytes()));
                    return Ok(Ok(Lock { file, path }));
                }
                Err(Errno::WOULDBLOCK) if Instant::now() < end => std::thread::sleep(PAUSE),
                Err(Errno::WOULDBLOCK) => return Ok(Err(Holder::of(file, &path))),
                Err(error) => return Err(error).with_context(|| path.display().to_string()),
            }
        }
    }
}

/// The process that holds the lock `name` in `folder`; none if none does.
pub fn holder(folder: &Path, name: &str) -> Option<Holder> {
    let opened = private_folder(folder).ok()?;
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::openat(&opened, name, flags, Mode::empty()).ok()?;
    // Shared, so that two that look do not take each other for the holder.
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockShared) {
        Err(Errno::WOULDBLOCK) => Some(Holder::of(file, &folder.join(name))),
        _ => None,
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
        let _ = rustix::fs::flock(self.file.as_fd(), FlockOperation::Unlock);
    }
}

impl Holder {
    fn of(file: OwnedFd, path: &Path) -> Holder {
        let mut file = File::from(file);
        let mut text = String::new();
        let read = file.rewind().and_then(|()| file.read_to_string(&mut text));
        match read {
            Ok(length) if length > 0 => Holder(text),
            _ => Holder(format!("unknown; do: fuser {}", shell_word(path))),
        }
    }
}

/// Whether `file` is the one called `name` in `folder`.
fn is_at(file: &OwnedFd, folder: &OwnedFd, name: &str) -> bool {
    let named = rustix::fs::statat(folder, name, rustix::fs::AtFlags::SYMLINK_NOFOLLOW);
    let opened = rustix::fs::fstat(file);
    matches!((named, opened), (Ok(named), Ok(opened)) if named.st_ino == opened.st_ino)
}

/// Opens a folder that belongs to this user and that no one else can enter; creates it if missing.
///
/// # Errors
/// It belongs to another user, is no folder but a link, or the file system refuses.
pub fn private_folder(path: &Path) -> Result<OwnedFd> {
    let name = || path.display().to_string();
    match rustix::fs::mkdir(path, Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => (),
        Err(error) => return Err(error).with_context(name),
    }
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = rustix::fs::open(path, flags, Mode::empty()).with_context(name)?;
    let about = rustix::fs::fstat(&folder).with_context(name)?;
    let user = rustix::process::geteuid().as_raw();
    if about.st_uid != user {
        bail!(
            "{} belongs to user {}, not to user {user}: another user could change what is in it; remove it, or choose another folder",
            path.display(),
            about.st_uid
        );
    }
    if about.st_mode & 0o077 != 0 {
        rustix::fs::fchmod(&folder, Mode::RWXU).with_context(name)?;
    }
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn take(folder: &Path, holder: &str) -> std::result::Result<Lock, Holder> {
        Lock::take(folder, "pins", holder, Duration::from_millis(1)).unwrap()
    }

    #[test]
    fn the_second_is_refused_with_the_name_of_the_first_and_no_file_stays() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("run");
        let first = take(&folder, "pid 7: penstockd attach eth1").unwrap();
        let mode = std::fs::metadata(&folder).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        let second = take(&folder, "pid 8").unwrap_err();
        for found in [Some(second), holder(&folder, "pins")] {
            assert_eq!(found.unwrap().0, "pid 7: penstockd attach eth1");
        }
        drop(first);
        assert!(holder(&folder, "pins").is_none());
        drop(take(&folder, "pid 8").unwrap());
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
    }

    #[test]
    fn one_that_looks_is_no_holder() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pins");
        let file = File::create(&path).unwrap();
        file.lock_shared().unwrap();
        assert!(holder(folder.path(), "pins").is_none());
        drop(file);
        assert!(path.exists(), "a process that was killed left it");
        drop(take(folder.path(), "pid 7").unwrap());
    }

    #[test]
    fn links_are_not_followed_and_modes_are_narrowed() {
        let root = tempfile::tempdir().unwrap();
        let (folder, target) = (root.path().join("run"), root.path().join("target"));
        std::fs::write(&target, "precious").unwrap();
        std::fs::create_dir(&folder).unwrap();
        std::fs::set_permissions(&folder, PermissionsExt::from_mode(0o777)).unwrap();
        symlink(&target, folder.join("pins")).unwrap();
        let refused = Lock::take(&folder, "pins", "pid 7", Duration::ZERO);
        assert!(refused.is_err());
        assert_eq!(std::fs::read_to_string(&target).unwrap(), "precious");
        let mode = std::fs::metadata(&folder).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        let link = root.path().join("link");
        symlink(&folder, &link).unwrap();
        assert!(private_folder(&link).is_err());
    }
}
