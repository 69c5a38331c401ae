// SPDX-License-Identifier: Apache-2.0
//! Frames that find links between switches (IEEE 802.1AB): one leaves by each port, and where it
//! arrives is the other end. A code that only the controller can compute keeps guests from forging
//! links.

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
const CODE_BYTES: usize = 16;

/// Makes and reads the frames of one controller.
#[derive(Clone)]
pub struct Lldp(Hmac<Sha256>);

impl Lldp {
    /// With a secret drawn by chance.
    pub fn new(secret: [u8; 32]) -> Lldp {
        Lldp(Hmac::new_from_slice(&secret).expect("HMAC takes a key of any length"))
    }

    /// The frame that leaves by a port.
    pub fn frame(&self, place: Place) -> Vec<u8> {
        let [_, _, _, a, b, c, d, e] = place.datapath.to_be_bytes();
        let mut out = DESTINATION.0.to_vec();
        out.extend([a & 0xfc | 2, b, c, d, e, place.port as u8]);
        out.extend(ETHERTYPE.to_be_bytes());
        let id = |number: &[u8]| [&[LOCALLY_ASSIGNED], number].concat();
        element(&mut out, CHASSIS, &id(&place.datapath.to_be_bytes()));
        element(&mut out, PORT, &id(&place.port.to_be_bytes()));
        element(&mut out, TIME_TO_LIVE, &SECONDS.to_be_bytes());
        element(
            &mut out,
            ORGANIZATION,
            &[&OUI[..], &self.code(place)].concat(),
        );
        element(&mut out, 0, &[]);
        out
    }

    /// The port that a frame of this controller left by.
    pub fn read(&self, frame: &[u8]) -> Option<Place> {
        let mut elements = frame.get(14..)?;
        let (mut datapath, mut port, mut code) = (None, None, None);
        while let Some((header, rest)) = elements.split_first_chunk::<2>() {
            let header = u16::from_be_bytes(*header);
            let (value, rest) = rest.split_at_checked(usize::from(header & 0x1ff))?;
            elements = rest;
            match ((header >> 9) as u8, value) {
                (0, _) => break,
                (CHASSIS, [LOCALLY_ASSIGNED, id @ ..]) => datapath = id.try_into().ok(),
                (PORT, [LOCALLY_ASSIGNED, id @ ..]) => port = id.try_into().ok(),
                (ORGANIZATION, _) => code = value.strip_prefix(&OUI),
                _ => (),
            }
        }
        let place = Place {
            datapath: u64::from_be_bytes(datapath?),
            port: u32::from_be_bytes(port?),
        };
        let own = self.0.clone().chain_update(bytes_of(place));
        own.verify_truncated_left(code.filter(|code| code.len() == CODE_BYTES)?)
            .ok()?;
        Some(place)
    }

    fn code(&self, place: Place) -> [u8; CODE_BYTES] {
        let whole = self.0.clone().chain_update(bytes_of(place));
        let whole = whole.finalize().into_bytes();
        *whole.first_chunk().expect("SHA-256 is longer")
    }
}

fn bytes_of(place: Place) -> [u8; 12] {
    let mut bytes = [0; 12];
    bytes[..8].copy_from_slice(&place.datapath.to_be_bytes());
    bytes[8..].copy_from_slice(&place.port.to_be_bytes());
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
    fn only_the_own_frames_are_read() {
        let (own, other) = (Lldp::new([1; 32]), Lldp::new([2; 32]));
        let place = Place {
            datapath: 0x1122_3344_5566_7788,
            port: 77,
        };
        let frame = own.frame(place);
        assert_eq!(own.read(&frame), Some(place));
        assert_eq!(other.read(&frame), None);
        for at in 14..frame.len() - 2 {
            let mut changed = frame.clone();
            changed[at] ^= 1;
            // The time to live is not signed, as it is not used.
            assert!(
                own.read(&changed).is_none_or(|read| read == place),
                "byte {at}"
            );
        }
        for cut in 0..frame.len() - 2 {
            assert_eq!(own.read(&frame[..cut]), None);
        }
    }
}
