// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//! How large the segments of a port are (`core/segment.h`).

unsafe extern "C" {
    safe fn core_segment_heeds(port: &PortSegments, bytes: u32, is_full: bool, now_ns: u64)
    -> bool;
    safe fn core_segment_on_data(port: &mut PortSegments, bytes: u32, is_full: bool, now_ns: u64);
}

/// The segments that left by a port lately.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortSegments {
    /// When the present period of a second began, nanoseconds.
    pub since_ns: u64,
    /// The largest of this period and the one before it, bytes; 0: none has passed.
    pub bytes: u32,
    /// The largest of this period, bytes.
    pub latest: u32,
}

impl PortSegments {
    /// A segment leaves by the port. `is_full`: it is as large as its sender makes them, not
    /// shortened by what the application wrote.
    pub fn on_data(&mut self, bytes: u32, is_full: bool, now_ns: u64) {
        core_segment_on_data(self, bytes, is_full, now_ns);
    }

    /// Whether [`PortSegments::on_data`] would change anything.
    pub fn heeds(&self, bytes: u32, is_full: bool, now_ns: u64) -> bool {
        core_segment_heeds(self, bytes, is_full, now_ns)
    }
}
