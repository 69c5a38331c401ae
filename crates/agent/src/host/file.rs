// SPDX-License-Identifier: Apache-2.0
//! Files that a superuser writes into folders where other users may write, too; texts that are read up to a
//! bound.

use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::clock::monotonic_ns;

/// Names tried for the new file: another user may have taken some.
const ATTEMPTS: u64 = 16;

/// The longest text that is read, bytes: a device may give bytes without end.
const LONGEST_TEXT: usize = 1 << 20;

/// The type of the file system of pipes that have no name (`linux/magic.h`).
const PIPEFS_MAGIC: u64 = 0x5049_5045;

/// Reads a text from a file, or from a pipe or a device, as `<(...)` and /dev/stdin are.
///
/// # Errors
/// What is there has no text: it is a folder, longer than 1 MiB, not UTF-8, or a FIFO, which may keep its
/// reader waiting.
pub fn read_text(path: &Path) -> Result<String> {
    let kind = std::fs::metadata(path)?.file_type();
    let is_unnamed = || rustix::fs::statfs(path).is_ok_and(|fs| fs.f_type as u64 == PIPEFS_MAGIC);
    let other = match kind {
        kind if kind.is_dir() => Some("folder"),
        kind if kind.is_fifo() && !is_unnamed() => Some("FIFO"),
        kind if kind.is_socket() => Some("socket"),
        _ => None,
    };
    if let Some(other) = other {
        bail!("is a {other}; give a file");
    }
    let mut bytes = Vec::new();
    let most = LONGEST_TEXT as u64 + 1;
    File::open(path)?.take(most).read_to_end(&mut bytes)?;
    if bytes.len() > LONGEST_TEXT {
        bail!("is longer than {LONGEST_TEXT} bytes; give a text file");
    }
    String::from_utf8(bytes).map_err(|error| {
        let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = 1 + valid.iter().filter(|byte| **byte == b'\n').count();
        anyhow!("line {line} is not UTF-8; give a text file")
    })
}

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
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::os::unix::net::UnixListener;

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
    fn a_text_is_read_from_a_file_a_pipe_or_a_device() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("text");
        for text in [String::new(), "é\n".to_owned(), "x".repeat(LONGEST_TEXT)] {
            std::fs::write(&file, &text).unwrap();
            assert_eq!(read_text(&file).unwrap(), text);
        }
        let (reader, mut writer) = std::io::pipe().unwrap();
        writer.write_all(b"text").unwrap();
        drop(writer);
        let pipe = format!("/proc/self/fd/{}", reader.as_raw_fd());
        assert_eq!(read_text(Path::new(&pipe)).unwrap(), "text");
        assert_eq!(read_text(Path::new("/dev/null")).unwrap(), "");
    }

    #[test]
    fn what_has_no_text_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let [fifo, socket, long, binary] =
            ["fifo", "socket", "long", "binary"].map(|name| root.path().join(name));
        create_fifo(&fifo);
        let _socket = UnixListener::bind(&socket).unwrap();
        std::fs::write(&long, vec![b'x'; LONGEST_TEXT + 1]).unwrap();
        std::fs::write(&binary, b"one\ntwo \xff\n").unwrap();
        for (path, reason) in [
            (root.path(), "is a folder; "),
            (fifo.as_path(), "is a FIFO; "),
            (socket.as_path(), "is a socket; "),
            (long.as_path(), "is longer than 1048576 bytes; "),
            (Path::new("/dev/zero"), "is longer than 1048576 bytes; "),
            (binary.as_path(), "line 2 is not UTF-8; "),
        ] {
            let refusal = read_text(path).unwrap_err().to_string();
            assert!(refusal.starts_with(reason), "{}: {refusal}", path.display());
        }
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
