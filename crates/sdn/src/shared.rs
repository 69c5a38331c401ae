// SPDX-License-Identifier: Apache-2.0
//! Keys from files, and numbers drawn by chance.

use crate::message::Key;
use rustix::rand::{GetRandomFlags, getrandom};
use std::io::{Error, ErrorKind, Result};
use std::path::Path;

/// A key that is shorter can be guessed.
const LEAST_KEY_BYTES: usize = 16;

/// The key in a file: all its bytes.
///
/// # Errors
/// It cannot be read, or is shorter than 16 bytes.
pub fn key(file: &Path) -> Result<Key> {
    Ok(Key::new(&secret(file)?))
}

/// The bytes of a file with a secret.
///
/// # Errors
/// It cannot be read, or is shorter than 16 bytes.
pub fn secret(file: &Path) -> Result<Vec<u8>> {
    let named = |why: String| format!("{}: {why}", file.display());
    let secret =
        std::fs::read(file).map_err(|error| Error::new(error.kind(), named(error.to_string())))?;
    if secret.len() < LEAST_KEY_BYTES {
        let why = format!(
            "{} bytes; at least {LEAST_KEY_BYTES}, as head -c 32 /dev/urandom gives",
            secret.len()
        );
        return Err(Error::new(ErrorKind::InvalidData, named(why)));
    }
    Ok(secret)
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
