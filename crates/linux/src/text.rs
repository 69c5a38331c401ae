// SPDX-License-Identifier: Apache-2.0
//! Texts that are read up to a bound, as configurations are.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

/// The longest text that is read, bytes: a device may give bytes without end.
const LONGEST: usize = 1 << 20;

/// The type of the file system of pipes that have no name (`linux/magic.h`).
const PIPEFS_MAGIC: u64 = 0x5049_5045;

/// Reads a text from a file, or from a pipe or a device, as `<(...)` and /dev/stdin are.
///
/// # Errors
/// What is there has no text: it is a folder, longer than 1 MiB, not UTF-8, or a FIFO, which may keep its
/// reader waiting.
pub fn read(path: &Path) -> io::Result<String> {
    let kind = std::fs::metadata(path)?.file_type();
    let is_unnamed = || rustix::fs::statfs(path).is_ok_and(|fs| fs.f_type as u64 == PIPEFS_MAGIC);
    let other = match kind {
        kind if kind.is_dir() => Some("folder"),
        kind if kind.is_fifo() && !is_unnamed() => Some("FIFO"),
        kind if kind.is_socket() => Some("socket"),
        _ => None,
    };
    if let Some(other) = other {
        return Err(no_text(format!("is a {other}; give a file")));
    }
    let mut bytes = Vec::new();
    let most = LONGEST as u64 + 1;
    File::open(path)?.take(most).read_to_end(&mut bytes)?;
    if bytes.len() > LONGEST {
        return Err(no_text(format!(
            "is longer than {LONGEST} bytes; give a text file"
        )));
    }
    String::from_utf8(bytes).map_err(|error| {
        let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = 1 + valid.iter().filter(|byte| **byte == b'\n').count();
        no_text(format!("line {line} is not UTF-8; give a text file"))
    })
}

fn no_text(reason: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixListener;

    use rustix::fs::{CWD, FileType, mknodat};

    #[test]
    fn a_text_is_read_from_a_file_a_pipe_or_a_device() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("text");
        for text in [String::new(), "é\n".to_owned(), "x".repeat(LONGEST)] {
            std::fs::write(&file, &text).unwrap();
            assert_eq!(read(&file).unwrap(), text);
        }
        let (reader, mut writer) = std::io::pipe().unwrap();
        writer.write_all(b"text").unwrap();
        drop(writer);
        let pipe = format!("/proc/self/fd/{}", reader.as_raw_fd());
        assert_eq!(read(Path::new(&pipe)).unwrap(), "text");
        assert_eq!(read(Path::new("/dev/null")).unwrap(), "");
    }

    #[test]
    fn what_has_no_text_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let [fifo, socket, long, binary] =
            ["fifo", "socket", "long", "binary"].map(|name| root.path().join(name));
        mknodat(CWD, &fifo, FileType::Fifo, 0o600.into(), 0).unwrap();
        let _socket = UnixListener::bind(&socket).unwrap();
        std::fs::write(&long, vec![b'x'; LONGEST + 1]).unwrap();
        std::fs::write(&binary, b"one\ntwo \xff\n").unwrap();
        for (path, reason) in [
            (root.path(), "is a folder; "),
            (fifo.as_path(), "is a FIFO; "),
            (socket.as_path(), "is a socket; "),
            (long.as_path(), "is longer than 1048576 bytes; "),
            (Path::new("/dev/zero"), "is longer than 1048576 bytes; "),
            (binary.as_path(), "line 2 is not UTF-8; "),
        ] {
            let refusal = read(path).unwrap_err().to_string();
            assert!(refusal.starts_with(reason), "{}: {refusal}", path.display());
        }
    }
}
