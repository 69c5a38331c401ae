// SPDX-License-Identifier: Apache-2.0
//! Frames that find links between switches (IEEE 802.1AB): one leaves by each port, and where it
//! arrives is the other end. A code that only the controllers can compute keeps guests from forging
//! links. The frames are numbered, so that a controller sees that another one is there.

use crate::fabric::{Mac, Place};
use hmac::{Hmac, KeyInit, Mac as _};
use sha2::Sha256;

/// The type of Ethernet.
pub const ETHERTYPE: u16 = 0x88cc;

/// "Nearest bridge": switches that are not ours keep it to themselves.
const DESTINATION: Mac = Mac([0x01, 0x80, 0xc2, 0, 0, 0x0e]);
const CHASSIS: u8 = 1;
const PORT: u8 = 2;
const TIME_TO_LIVE: u8 = 3;
const ORGANIZATION: u8 = 127;
const LOCALLY_ASSIGNED: u8 = 7;
/// Not assigned to anyone: the bit for local addresses is set.
const OUI: [u8; 4] = [0x02, b'P', b's', 1];
const SECONDS: u16 = 10;
/// Who sent it, and its number.
const SIGNED_BYTES: usize = 16;
const CODE_BYTES: usize = 16;

/// Makes and reads the frames of controllers with one secret.
#[derive(Clone)]
pub struct Lldp {
    secret: Hmac<Sha256>,
    /// Whose frames are made.
    sender: u64,
}

/// What a frame shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The port that it left by.
    pub from: Place,
    /// Of another controller: which, and the frame's number.
    pub other: Option<(u64, u64)>,
}

impl Lldp {
    /// With a secret of at least 16 bytes, and the number of this controller, drawn by chance.
    pub fn new(secret: &[u8], sender: u64) -> Lldp {
        let secret = Hmac::new_from_slice(secret).expect("HMAC takes a key of any length");
        Lldp { secret, sender }
    }

    /// The number of this controller.
    pub fn sender(&self) -> u64 {
        self.sender
    }

    /// The frame that leaves by a port; `number` grows.
    pub fn frame(&self, place: Place, number: u64) -> Vec<u8> {
        let [_, _, _, a, b, c, d, e] = place.datapath.to_be_bytes();
        let mut out = DESTINATION.0.to_vec();
        out.extend([a & 0xfc | 2, b, c, d, e, place.port as u8]);
        out.extend(ETHERTYPE.to_be_bytes());
        let id = |text: String| [&[LOCALLY_ASSIGNED], text.as_bytes()].concat();
        element(&mut out, CHASSIS, &id(format!("{:016x}", place.datapath)));
        element(&mut out, PORT, &id(place.port.to_string()));
        element(&mut out, TIME_TO_LIVE, &SECONDS.to_be_bytes());
        let signed = signed(self.sender, number);
        let code = self.code(place, &signed).finalize().into_bytes();
        let own = [&OUI[..], &signed, &code[..CODE_BYTES]].concat();
        element(&mut out, ORGANIZATION, &own);
        element(&mut out, 0, &[]);
        out
    }

    /// What a frame of these controllers shows.
    pub fn read(&self, frame: &[u8]) -> Option<Seen> {
        let mut elements = frame.get(14..)?;
        let (mut datapath, mut port, mut own) = (None, None, None);
        while let Some((header, rest)) = elements.split_first_chunk::<2>() {
            let header = u16::from_be_bytes(*header);
            let (value, rest) = rest.split_at_checked(usize::from(header & 0x1ff))?;
            elements = rest;
            match ((header >> 9) as u8, value) {
                (0, _) => break,
                (CHASSIS, [LOCALLY_ASSIGNED, id @ ..]) => datapath = number(id, 16),
                (PORT, [LOCALLY_ASSIGNED, id @ ..]) => port = number(id, 10),
                (ORGANIZATION, _) => own = value.strip_prefix(&OUI),
                _ => (),
            }
        }
        let from = Place {
            datapath: datapath?,
            port: port?.try_into().ok()?,
        };
        let (signed, code) = own?.split_first_chunk::<SIGNED_BYTES>()?;
        let code: &[u8; CODE_BYTES] = code.try_into().ok()?;
        let whole = self.code(from, signed);
        whole.verify_truncated_left(code).ok()?;
        let (sender, number) = signed.split_first_chunk()?;
        let sender = u64::from_be_bytes(*sender);
        let number = u64::from_be_bytes(number.try_into().ok()?);
        let other = (sender != self.sender).then_some((sender, number));
        Some(Seen { from, other })
    }

    fn code(&self, from: Place, signed: &[u8; SIGNED_BYTES]) -> Hmac<Sha256> {
        let secret = self.secret.clone();
        secret
            .chain_update(from.datapath.to_be_bytes())
            .chain_update(from.port.to_be_bytes())
            .chain_update(signed)
    }
}

/// Of text, as an id that is locally assigned has to be.
fn number(id: &[u8], radix: u32) -> Option<u64> {
    u64::from_str_radix(str::from_utf8(id).ok()?, radix).ok()
}

fn signed(sender: u64, number: u64) -> [u8; SIGNED_BYTES] {
    let mut bytes = [0; SIGNED_BYTES];
    bytes[..8].copy_from_slice(&sender.to_be_bytes());
    bytes[8..].copy_from_slice(&number.to_be_bytes());
    bytes
}

fn element(out: &mut Vec<u8>, kind: u8, value: &[u8]) {
    out.extend((u16::from(kind) << 9 | value.len() as u16).to_be_bytes());
    out.extend(value);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_frames_with_the_secret_are_read() {
        let (own, other) = (Lldp::new(&[1; 32], 7), Lldp::new(&[1; 32], 8));
        let stranger = Lldp::new(&[2; 32], 7);
        let from = Place {
            datapath: 0x1122_3344_5566_7788,
            port: 77,
        };
        let frame = own.frame(from, 5);
        let seen = Seen { from, other: None };
        assert_eq!(own.read(&frame), Some(seen));
        let of_another = Seen {
            from,
            other: Some((7, 5)),
        };
        assert_eq!(other.read(&frame), Some(of_another));
        assert_eq!(stranger.read(&frame), None);
        for at in 14..frame.len() - 2 {
            let mut changed = frame.clone();
            changed[at] ^= 1;
            // The time to live is not signed, as it is not used.
            let read = own.read(&changed);
            assert!(read.is_none_or(|read| read == seen), "byte {at}");
        }
        for cut in 0..frame.len() - 2 {
            assert_eq!(own.read(&frame[..cut]), None);
        }
    }
}
