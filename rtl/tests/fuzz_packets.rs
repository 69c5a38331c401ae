// SPDX-License-Identifier: Apache-2.0
//! Prints packets of the datapath's fuzzer: sound, forged, broken and noise, each after its length
//! (2 bytes, little-endian).

#[allow(dead_code)]
#[path = "../../crates/agent/tests/fuzz/craft.rs"]
mod craft;
#[path = "../../crates/agent/tests/fuzz/mutate.rs"]
mod mutate;
#[path = "../../crates/agent/tests/fuzz/random.rs"]
mod random;

use std::io::Write;

const FLOWS: usize = 400;
const PACKETS: usize = 50; // of each flow

fn main() -> std::io::Result<()> {
    let mut random = random::Random(1);
    let mut out = std::io::stdout().lock();
    for _ in 0..FLOWS {
        let mut flow = craft::Flow::any(&mut random);
        for _ in 0..PACKETS {
            let packet = match random.below(10) {
                0 => mutate::noise(&mut random),
                1 => flow.forged(0, &mut random),
                2 => flow.forged(1, &mut random),
                3..6 => {
                    let mut packet = flow.packet(&mut random).0;
                    mutate::mutate(&mut packet, &mut random);
                    packet
                }
                _ => flow.packet(&mut random).0,
            };
            out.write_all(&(packet.len() as u16).to_le_bytes())?;
            out.write_all(&packet)?;
        }
    }
    Ok(())
}
