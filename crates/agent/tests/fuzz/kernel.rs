// SPDX-License-Identifier: Apache-2.0
//! A packet through a program of the datapath, by BPF_PROG_TEST_RUN.

use libbpf_rs::{MapCore, MapFlags, Object, ProgramInput, ProgramMut};

/// What a program made of a packet.
pub struct Passed<'buffer> {
    pub verdict: i32,
    pub packet: &'buffer [u8],
}

/// Fields of `struct __sk_buff` that a test run takes, by their index in words.
const IFINDEX: usize = 10;
const GSO_SEGS: usize = 41;
const GSO_SIZE: usize = 44;

/// Runs packets as if they passed by the interface.
pub struct Runner {
    pub ifindex: u32,
    buffer: Vec<u8>,
}

impl Runner {
    pub fn new(ifindex: u32) -> Runner {
        Runner {
            ifindex,
            buffer: vec![0; 4096],
        }
    }

    /// Runs one packet, as one of several segments each of `segment` bytes if that is not 0.
    pub fn run(&mut self, program: &ProgramMut<'_>, packet: &[u8], segment: u32) -> Passed<'_> {
        let mut context = [0u32; 48];
        context[IFINDEX] = self.ifindex;
        if segment > 0 {
            context[GSO_SIZE] = segment;
            context[GSO_SEGS] = (packet.len() as u32).div_ceil(segment);
        }
        let mut bytes: Vec<u8> = context.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let input = ProgramInput {
            context_in: Some(&mut bytes),
            data_in: Some(packet),
            data_out: Some(&mut self.buffer),
            ..ProgramInput::default()
        };
        let output = program.test_run(input).expect("the kernel runs the packet");
        let verdict = output.return_value as i32;
        let length = output.data.map_or(0, |data| data.len());
        Passed {
            verdict,
            packet: &self.buffer[..length],
        }
    }
}

/// Pads a packet that the kernel would refuse to run: one that ends within its first IP header.
/// Such an end is met behind VLAN tags and in tunnels.
pub fn make_runnable(packet: &mut Vec<u8>) {
    let least = match packet.get(12..14) {
        Some([0x08, 0x00]) => 34,
        Some([0x86, 0xdd]) => 54,
        _ => 15,
    };
    packet.resize(packet.len().max(least), 0);
}

/// A program of an object by its name.
pub fn program<'obj>(object: &'obj Object, name: &str) -> ProgramMut<'obj> {
    let found = object.progs_mut().find(|program| program.name() == name);
    found.unwrap_or_else(|| panic!("no program {name}"))
}

/// Writes the one element of an array.
pub fn put<T: Copy>(object: &Object, map: &str, value: &T) {
    put_at(object, map, 0, value);
}

/// Writes one element of an array.
pub fn put_at<T: Copy>(object: &Object, map: &str, index: u32, value: &T) {
    let target = object
        .maps()
        .find(|m| m.name() == map)
        .unwrap_or_else(|| panic!("no map {map}"));
    // SAFETY: the types that BTF describes have no padding that matters; the kernel copies bytes.
    let bytes =
        unsafe { std::slice::from_raw_parts(std::ptr::from_ref(value).cast(), size_of::<T>()) };
    target
        .update(&index.to_ne_bytes(), bytes, MapFlags::ANY)
        .expect("the map takes it");
}
