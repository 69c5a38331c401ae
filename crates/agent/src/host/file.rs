// SPDX-License-Identifier: Apache-2.0
//! Files that a superuser writes into folders where other users may write, too.

use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::clock::monotonic_ns;

/// Names tried for the new file: another user may have taken some.
const ATTEMPTS: u64 = 16;

/// Replaces `file` by `text`, atomically. It follows no link, and writes into no file that exists: a
/// link or a file that another user put there is replaced. `mode`: permissions, by default as the
/// umask leaves them.
///
/// # Errors
/// The file cannot be written, or what is there is a device or the like; the old one stays.
pub fn replace(file: &Path, text: &str, mode: Option<Mode>) -> Result<()> {
    try_replace(file, text, mode).with_context(|| format!("cannot write {}", file.display()))
}

/// Whether `file` could be replaced by some text: writes it under another name, and removes that.
///
/// # Errors
/// As [`replace`].
pub fn try_out(file: &Path) -> Result<()> {
    let try_out = || -> Result<()> {
        let (folder, name) = place(file)?;
        let (new_name, new) = create(&folder, name)?;
        let written = File::from(new).write_all(&[b'\n'; 4096]);
        rustix::fs::unlinkat(&folder, &new_name, AtFlags::empty())?;
        Ok(written?)
    };
    try_out().with_context(|| format!("cannot write {}", file.display()))
}

/// The folder of a file, and its name there.
fn place(file: &Path) -> Result<(OwnedFd, &std::ffi::OsStr)> {
    let name = file
        .file_name()
        .ok_or_else(|| anyhow!("it is not the name of a file"))?;
    let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = rustix::fs::open(parent(file), flags, Mode::empty())?;
    Ok((folder, name))
}

fn parent(file: &Path) -> &Path {
    match file.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

fn try_replace(file: &Path, text: &str, mode: Option<Mode>) -> Result<()> {
    let (folder, name) = place(file)?;
    let before = rustix::fs::statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW);
    let kind = before.map(|about| FileType::from_raw_mode(about.st_mode));
    let is_replaced = matches!(kind, Ok(FileType::RegularFile | FileType::Symlink) | Err(_));
    if !is_replaced || parent(file) == Path::new("/dev") {
        bail!("it is no file");
    }
    let (new_name, new) = create(&folder, name)?;
    let mut new = File::from(new);
    let written = (|| -> std::io::Result<()> {
        new.write_all(text.as_bytes())?;
        if let Some(mode) = mode {
            rustix::fs::fchmod(&new, mode)?;
        }
        rustix::fs::renameat(&folder, &new_name, &folder, name)?;
        Ok(())
    })();
    if written.is_err() {
        let _ = rustix::fs::unlinkat(&folder, &new_name, AtFlags::empty());
    }
    Ok(written?)
}

/// Creates a file next to `name`, under a name that does not exist.
fn create(folder: &OwnedFd, name: &std::ffi::OsStr) -> Result<(OsString, OwnedFd)> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let first = monotonic_ns();
    for number in first..first + ATTEMPTS {
        let mut new = name.to_owned();
        new.push(format!(".{}.{number:x}.new", std::process::id()));
        match rustix::fs::openat(folder, &new, flags, Mode::from_raw_mode(0o666)) {
            Ok(file) => return Ok((new, file)),
            Err(Errno::EXIST) => (),
            Err(error) => return Err(error.into()),
        }
    }
    Err(Errno::EXIST.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn links_are_replaced_not_followed() {
        let root = tempfile::tempdir().unwrap();
        let (file, precious) = (root.path().join("out.prom"), root.path().join("precious"));
        std::fs::write(&precious, "precious").unwrap();
        std::fs::set_permissions(&precious, PermissionsExt::from_mode(0o600)).unwrap();
        symlink(&precious, &file).unwrap();
        replace(&file, "new", Some(Mode::from_raw_mode(0o644))).unwrap();
        assert_eq!(std::fs::read_to_string(&precious).unwrap(), "precious");
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&precious), mode(&file)), (0o600, 0o644));
        assert!(!file.is_symlink());
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "new");
        assert_eq!(std::fs::read_dir(root.path()).unwrap().count(), 2);
    }

    fn create_fifo(path: &Path) {
        rustix::fs::mknodat(rustix::fs::CWD, path, FileType::Fifo, 0o600.into(), 0).unwrap();
    }

    #[test]
    fn what_cannot_be_written_stays_as_it_was() {
        let root = tempfile::tempdir().unwrap();
        let fifo = root.path().join("fifo");
        create_fifo(&fifo);
        for path in [
            root.path().join("no/file"),
            root.path().to_owned(),
            fifo.clone(),
            "/dev/stdout".into(),
            "/".into(),
        ] {
            let refusal = replace(&path, "x", None).unwrap_err().to_string();
            assert!(refusal.starts_with("cannot write /"), "{refusal}");
        }
        assert_eq!(std::fs::read_dir(root.path()).unwrap().count(), 1);
        assert!(!fifo.is_file());
    }
}
