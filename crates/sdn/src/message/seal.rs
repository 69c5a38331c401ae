// SPDX-License-Identifier: Apache-2.0
//! Headers, codes and numbers of messages: who one is from, that it is whole and new.

use super::body::Body;
use crate::codec::{Input, Output};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use std::fmt;

const VERSION: u8 = 2;
/// Bytes before the body.
pub(super) const HEADER_BYTES: usize = 28;
/// Bytes behind it: HMAC-SHA-256, cut to half as RFC 2104 §5 allows.
pub(super) const CODE_BYTES: usize = 16;

/// A secret of the controller and one host.
#[derive(Clone)]
pub struct Key(Hmac<Sha256>);

impl Key {
    /// Of any number of bytes; fewer than 16 can be guessed.
    pub fn new(secret: &[u8]) -> Key {
        Key(Hmac::new_from_slice(secret).expect("HMAC takes a key of any length"))
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key")
    }
}

impl Key {
    /// The challenge of a session: the same each time, and another one with another secret.
    pub(super) fn challenge(&self, secret: u64, session: u64) -> u64 {
        let mut of = Vec::new();
        of.u64(secret);
        of.u64(session);
        // No message is as short, so that this is the code of none.
        let code = self.0.clone().chain_update(of).finalize().into_bytes();
        let (first, _) = code.split_first_chunk().expect("it is longer");
        u64::from_be_bytes(*first).max(1)
    }
}

/// Why a message is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// It is none, or of a version or kind that is not known here.
    Malformed,
    /// It is for or of another host.
    OtherHost,
    /// Its code is wrong.
    Forged,
    /// It is of another session.
    OtherSession,
    /// Its number was taken before, or is too old to know.
    Repeated,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Refused::Malformed => "malformed",
            Refused::OtherHost => "of another host",
            Refused::Forged => "forged",
            Refused::OtherSession => "of another session",
            Refused::Repeated => "repeated",
        })
    }
}

/// What a message begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub host: u16,
    pub session: u64,
    /// 0: none yet.
    pub challenge: u64,
    pub number: u64,
}

/// The host that a message names, not checked: which key to take.
pub fn host_of(message: &[u8]) -> Option<u16> {
    Input(message.get(2..4)?).u16()
}

/// The message as it is sent.
pub(super) fn seal(key: &Key, header: Header, body: &Body) -> Vec<u8> {
    let mut out = vec![VERSION, body.kind()];
    out.u16(header.host);
    out.u64(header.session);
    out.u64(header.challenge);
    out.u64(header.number);
    body.write(&mut out);
    let code = key.0.clone().chain_update(&out).finalize().into_bytes();
    out.extend(&code[..CODE_BYTES]);
    out
}

/// Checks who a message is from, and that it is whole.
pub(super) fn unseal(key: &Key, host: u16, message: &[u8]) -> Result<(Header, Body), Refused> {
    let split = message.split_last_chunk::<CODE_BYTES>();
    let (sealed, code) = split.ok_or(Refused::Malformed)?;
    let split = sealed.split_at_checked(HEADER_BYTES);
    let (header, body) = split.ok_or(Refused::Malformed)?;
    let (kind, header) = read(Input(header)).ok_or(Refused::Malformed)?;
    if header.host != host {
        return Err(Refused::OtherHost);
    }
    let own = key.0.clone().chain_update(sealed);
    own.verify_truncated_left(code)
        .map_err(|_| Refused::Forged)?;
    let body = Body::read(kind, body).ok_or(Refused::Malformed)?;
    Ok((header, body))
}

fn read(mut bytes: Input<'_>) -> Option<(u8, Header)> {
    let (version, kind) = (bytes.u8()?, bytes.u8()?);
    let header = Header {
        host: bytes.u16()?,
        session: bytes.u64()?,
        challenge: bytes.u64()?,
        number: bytes.u64()?,
    };
    (version == VERSION).then_some((kind, header))
}

/// The numbers taken in a session: the highest, and which of the 63 below it (RFC 4303 §3.4.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Numbers {
    highest: u64,
    taken: u64,
}

impl Numbers {
    /// Takes a number, once.
    pub fn take(&mut self, number: u64) -> Result<(), Refused> {
        if number > self.highest {
            let shift = u32::try_from(number - self.highest).unwrap_or(u32::MAX);
            self.taken = self.taken.checked_shl(shift).unwrap_or(0) | 1;
            self.highest = number;
            return Ok(());
        }
        let behind = u32::try_from(self.highest - number).unwrap_or(u32::MAX);
        let bit = 1u64.checked_shl(behind).ok_or(Refused::Repeated)?;
        if self.taken & bit != 0 {
            return Err(Refused::Repeated);
        }
        self.taken |= bit;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn each_number_is_taken_once(
            numbers in proptest::collection::vec(prop_oneof![0u64..200, any::<u64>()], 1..300),
        ) {
            let (mut window, mut taken) = (Numbers::default(), BTreeSet::new());
            for number in numbers {
                let highest = taken.last().copied().unwrap_or(0);
                let is_recent = number > highest || highest - number < 64;
                let expected = is_recent && !taken.contains(&number) && (number, highest) != (0, 0)
                    || (number, taken.is_empty()) == (0, true);
                prop_assert_eq!(window.take(number).is_ok(), expected, "{} of {:?}", number, &taken);
                if expected {
                    taken.insert(number);
                }
            }
        }
    }
}
