// SPDX-License-Identifier: Apache-2.0
//! What a broken or hostile sender makes of a packet.

use super::random::Random;

/// An Ethernet header.
const SHORTEST: usize = 14;
/// More than any header stack, less than what a test run takes.
const LONGEST: usize = 2048;

const NUMBERS: [u8; 12] = [0, 1, 2, 3, 4, 5, 15, 0x40, 0x45, 0x7f, 0x80, 0xff];

/// Corrupts a packet in one to four ways.
pub fn mutate(packet: &mut Vec<u8>, random: &mut Random) {
    for _ in 0..=random.below(4) {
        corrupt(packet, random);
    }
    let length = packet.len().clamp(SHORTEST, LONGEST);
    packet.resize(length, 0);
}

fn corrupt(packet: &mut Vec<u8>, random: &mut Random) {
    // Headers are the interesting part.
    let reach = if random.percent(85) {
        packet.len().min(150)
    } else {
        packet.len()
    };
    let at = random
        .below(reach.max(1))
        .min(packet.len().saturating_sub(1));
    match random.below(9) {
        0 | 1 => packet[at] ^= 1 << random.below(8),
        2 => packet[at] = random.pick(&NUMBERS),
        3 => packet[at] = random.next() as u8,
        // A length, one too long or too short.
        4 => packet[at] = packet[at].wrapping_add(random.pick(&[1, 0xff, 4, 0xfc])),
        5 => packet.truncate(at.max(SHORTEST)),
        6 => drop(packet.splice(at..at, random_piece(random))),
        7 => drop(packet.drain(at..(at + 1 + random.below(40)).min(packet.len()))),
        _ => {
            let end = (at + 1 + random.below(60)).min(packet.len());
            random
                .bytes(end - at)
                .iter()
                .zip(&mut packet[at..end])
                .for_each(|(&new, old)| *old = new);
        }
    }
    if packet.len() < SHORTEST {
        packet.resize(SHORTEST, 0);
    }
}

fn random_piece(random: &mut Random) -> Vec<u8> {
    let count = 1 + random.below(40);
    if random.percent(50) {
        random.bytes(count)
    } else {
        vec![random.pick(&NUMBERS); count]
    }
}

/// Bytes without any sense.
pub fn noise(random: &mut Random) -> Vec<u8> {
    let count = SHORTEST + random.below(200);
    let mut packet = random.bytes(count);
    if random.percent(70) {
        packet[12..14].copy_from_slice(&random.pick(&[
            [8, 0],
            [0x86, 0xdd],
            [0x81, 0],
            [0x88, 0xa8],
        ]));
    }
    packet
}
