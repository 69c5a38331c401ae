// SPDX-License-Identifier: Apache-2.0
//! The structs of `bpf/abi.h` as the bytes that are in maps and ring buffers. They are integers, valid for
//! any bytes, with their padding as explicit fields.

/// The bytes of a struct.
pub fn bytes_of<T: Copy>(plain: &T) -> &[u8] {
    // SAFETY: no padding, as above.
    unsafe { std::slice::from_raw_parts(std::ptr::from_ref(plain).cast(), size_of::<T>()) }
}

/// The same, to be changed.
pub fn bytes_of_mut<T: Copy>(plain: &mut T) -> &mut [u8] {
    // SAFETY: as above; any bytes are valid.
    unsafe { std::slice::from_raw_parts_mut(std::ptr::from_mut(plain).cast(), size_of::<T>()) }
}

/// The words of a struct that has u64 fields alone.
pub fn words_of<T: Copy>(plain: &T) -> impl Iterator<Item = u64> + use<T> {
    let (words, _) = bytes_of(plain).as_chunks();
    let words: Vec<u64> = words.iter().copied().map(u64::from_ne_bytes).collect();
    words.into_iter()
}

/// The struct that these bytes are; none if they are too few or too many.
pub fn of_bytes<T: Copy>(bytes: &[u8]) -> Option<T> {
    // SAFETY: any bytes are valid; the length is checked.
    (bytes.len() == size_of::<T>()).then(|| unsafe { bytes.as_ptr().cast::<T>().read_unaligned() })
}
