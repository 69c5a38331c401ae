// SPDX-License-Identifier: Apache-2.0
//! Keys from the bytes of a terminal. crossterm's reader never returns once the terminal is closed.

use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, read};

const ESCAPE: u8 = 0x1b;
const INTERRUPT: u8 = 0x03;

/// What a key stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// q, Esc or Ctrl-C.
    Quit,
    /// p.
    Pause,
    /// The arrow up.
    Up,
    /// The arrow down.
    Down,
}

/// The keys that were typed since the last call; none if the terminal is closed.
pub fn typed() -> Option<Vec<Key>> {
    let stdin = std::io::stdin();
    let mut polled = [PollFd::new(&stdin, PollFlags::IN)];
    let now = Timespec::try_from(Duration::ZERO).ok()?;
    if poll(&mut polled, Some(&now)) == Ok(0) {
        return Some(Vec::new());
    }
    let mut bytes = [0; 256];
    match read(&stdin, &mut bytes) {
        Ok(0) => None,
        Ok(length) => Some(decode(&bytes[..length])),
        Err(Errno::INTR | Errno::AGAIN) => Some(Vec::new()),
        Err(_) => None,
    }
}

fn decode(mut bytes: &[u8]) -> Vec<Key> {
    let mut keys = Vec::new();
    while let Some(first) = bytes.first() {
        let (key, length) = match (first, bytes.get(1)) {
            (&ESCAPE, Some(b'[' | b'O')) => sequence(bytes),
            // Alt and a key.
            (&ESCAPE, Some(_)) => (None, 2),
            (&ESCAPE, None) | (b'q' | &INTERRUPT, _) => (Some(Key::Quit), 1),
            (b'p', _) => (Some(Key::Pause), 1),
            _ => (None, 1),
        };
        keys.extend(key);
        bytes = bytes.get(length..).unwrap_or(&[]);
    }
    keys
}

/// A control sequence: two bytes, parameters, and a byte that ends it; and its length.
fn sequence(bytes: &[u8]) -> (Option<Key>, usize) {
    let is_last = |byte: &u8| (0x40..=0x7e).contains(byte);
    let Some(parameters) = bytes[2..].iter().position(is_last) else {
        return (None, bytes.len());
    };
    let key = match (parameters, bytes[2]) {
        (0, b'A') => Some(Key::Up),
        (0, b'B') => Some(Key::Down),
        _ => None,
    };
    (key, parameters + 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_found_among_what_else_a_terminal_sends() {
        let arrows = decode(b"\x1b[A\x1bOB\x1b[B");
        assert_eq!(arrows, [Key::Up, Key::Down, Key::Down]);
        assert_eq!(decode(b"\x1b[1;5Ap\xff\xfex"), [Key::Pause]);
        assert_eq!(decode(b"\x1bq"), [], "Alt and q");
        for quit in [&b"q"[..], b"\x1b", b"\x03"] {
            assert_eq!(decode(quit), [Key::Quit]);
        }
        for cut in [&b"\x1b["[..], b"\x1bO", b"\x1b[1;"] {
            assert_eq!(decode(cut), []);
        }
    }
}
