// SPDX-License-Identifier: Apache-2.0
//! Keys from files, and numbers drawn by chance.

use crate::message::Key;
use rustix::rand::{GetRandomFlags, getrandom};
use std::fs::File;
use std::io::{Error, ErrorKind, Read, Result};
use std::path::Path;

/// A key that is shorter can be guessed.
const LEAST_KEY_BYTES: usize = 16;

/// A file that is longer is not a key.
const MOST_KEY_BYTES: usize = 4096;

/// The key in a file: all its bytes.
///
/// # Errors
/// As [`secret`].
pub fn key(file: &Path) -> Result<Key> {
    Ok(Key::new(&secret(file)?))
}

/// The bytes of a file with a secret.
///
/// # Errors
/// It cannot be read, or is no regular file with 16 to 4096 bytes: a device may give bytes without end, and a
/// FIFO may keep its reader waiting.
pub fn secret(file: &Path) -> Result<Vec<u8>> {
    let read = || -> Result<Vec<u8>> {
        if !file.metadata()?.is_file() {
            return Err(invalid("is not a regular file"));
        }
        let mut secret = Vec::new();
        let most = MOST_KEY_BYTES as u64 + 1;
        File::open(file)?.take(most).read_to_end(&mut secret)?;
        match secret.len() {
            LEAST_KEY_BYTES..=MOST_KEY_BYTES => Ok(secret),
            0..LEAST_KEY_BYTES => Err(invalid(&format!("{} bytes", secret.len()))),
            _ => Err(invalid("is too long")),
        }
    };
    read().map_err(|error| Error::new(error.kind(), format!("{}: {error}", file.display())))
}

fn invalid(why: &str) -> Error {
    let allowed = format!("allowed: {LEAST_KEY_BYTES} to {MOST_KEY_BYTES} bytes in a file");
    let why = format!("{why}; {allowed}, as head -c 32 /dev/urandom > FILE writes");
    Error::new(ErrorKind::InvalidData, why)
}

/// Bytes drawn by chance.
///
/// # Errors
/// The kernel has none.
pub fn random<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    // Up to 256 bytes come whole.
    getrandom(&mut bytes, GetRandomFlags::empty())?;
    Ok(bytes)
}

/// The number of a switch as `ovs-vsctl get bridge BR datapath_id` prints it.
///
/// # Errors
/// It is no hexadecimal number of 64 bits.
pub fn datapath(text: &str) -> Result<u64> {
    let digits = text.trim_matches('"').trim_start_matches("0x");
    u64::from_str_radix(digits, 16).map_err(|_| {
        let why = format!("{text:?} is no datapath_id, as \"00000000000000a2\"");
        Error::new(ErrorKind::InvalidInput, why)
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_a_regular_file_of_some_length() {
        let folder = std::env::temp_dir().join(format!("penstock-keys-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join("key");
        let read = |bytes: usize| {
            std::fs::write(&file, vec![7; bytes]).unwrap();
            secret(&file).map(|secret| secret.len())
        };
        for bytes in [LEAST_KEY_BYTES, MOST_KEY_BYTES] {
            assert_eq!(read(bytes).unwrap(), bytes);
        }
        let refused = |path: &Path, reason: &str| {
            let line = secret(path).unwrap_err().to_string();
            let begin = format!("{}: {reason}; allowed: 16 to 4096 bytes", path.display());
            assert!(line.starts_with(&begin), "{line}");
        };
        for (bytes, reason) in [(0, "0 bytes"), (15, "15 bytes"), (4097, "is too long")] {
            assert!(read(bytes).is_err());
            refused(&file, reason);
        }
        refused(&folder, "is not a regular file");
        refused(Path::new("/dev/urandom"), "is not a regular file");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
