// SPDX-License-Identifier: Apache-2.0
//! From what a scenario says of a scheme to the parameters of `core/`, for whoever runs it: the
//! simulator or a kernel.

use penstock_core::fairq::FairqParams;
use penstock_core::hcf::{HcfParams, HcfPeriod};
use penstock_core::hscc::HsccParams;

use super::{Buffer, Fairq, Hcf, Hscc, Period, Share, Variant};
use crate::units::Time;

/// A packet where buffers in packets and in bytes are converted, bytes.
pub const FULL_PACKET: u64 = 1500;

/// A share in 1/65536.
pub fn q16(share: Share) -> u32 {
    (share.0 * 65536.0 + 0.5) as u32
}

/// The nearest 32-bit number.
pub fn saturated(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

fn share_of(bytes: u32, share: Share) -> u32 {
    (f64::from(bytes) * share.0) as u32
}

impl Buffer {
    /// Bytes it holds, packets counted as [`FULL_PACKET`], at most 4 GiB.
    pub fn as_bytes(self) -> u32 {
        saturated(self.bytes(FULL_PACKET))
    }
}

impl Fairq {
    /// For a port with `buffer`; `interval` is T where none is given.
    pub fn params(&self, buffer: Buffer, interval: Time) -> FairqParams {
        let start = match self.variant {
            Variant::Default => FairqParams::new(buffer.as_bytes()),
            Variant::Paper => FairqParams::paper(buffer.as_bytes()),
        };
        FairqParams {
            interval_ns: self.interval.unwrap_or(interval).as_nanos().max(1),
            alpha_q16: q16(self.alpha),
            intervals: self.intervals,
            paths: self.paths,
            floor_segments: self.floor.into(),
            first_floor_segments: self.first_floor().into(),
            averaged: self.averaged.into(),
            ..start
        }
    }
}

impl Hscc {
    /// For a port with `buffer`.
    pub fn params(&self, buffer: Buffer) -> HsccParams {
        let bytes = buffer.as_bytes();
        let start = match self.variant {
            Variant::Default => HsccParams::new(bytes),
            Variant::Paper => HsccParams::paper(bytes),
        };
        let sigma = share_of(bytes, self.sigma());
        HsccParams {
            alpha1_bytes: share_of(bytes, self.alpha1()),
            alpha2_bytes: share_of(bytes, self.alpha2()),
            sigma_bytes: if sigma >= bytes { 0 } else { sigma },
            floor_segments: self.floor.into(),
            first_flight_segments: self.first_flight().into(),
            release_step_bytes: u32::from(self.release_step()) * start.mss_bytes,
            release_interval_ns: self.release_interval.as_nanos().max(1),
            ..start
        }
    }
}

impl Hcf {
    /// For a queue that may hold `limit` beside the packet in transmission.
    pub fn params(&self, limit: Buffer) -> HcfParams {
        let split = |all: u32| {
            let high = (f64::from(all) * self.high_share.0) as u32;
            [high.max(1), (all - high).max(1)]
        };
        let (packets, bytes) = match limit {
            Buffer::Packets(packets) => (split(packets), [0; 2]),
            Buffer::Bytes(bytes) => ([0; 2], split(saturated(bytes))),
        };
        let (credits, counts_bytes) = match self.credits {
            Buffer::Packets(packets) => (packets, false),
            Buffer::Bytes(bytes) => (saturated(bytes), true),
        };
        HcfParams {
            bins: self.bins,
            credits,
            capacity_packets: packets,
            capacity_bytes: bytes,
            hashes: self.hashes.into(),
            period: match self.period {
                Period::Dynamic => HcfPeriod::Dynamic,
                Period::Fixed => HcfPeriod::Fixed,
                Period::Ordered => HcfPeriod::Ordered,
            },
            swap: self.swap.into(),
            credits_in_bytes: counts_bytes.into(),
        }
    }
}
