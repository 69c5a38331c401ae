// SPDX-License-Identifier: Apache-2.0
//! Simulated time, link speed and buffers as integers, so that every machine computes the same run.

use std::ops::{Add, AddAssign, Sub};

/// An instant or a span of simulated time, in picoseconds (213 days fit).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub u64);

impl Time {
    /// The start of every run.
    pub const ZERO: Time = Time(0);
    /// Later than every event: "no deadline".
    pub const NEVER: Time = Time(u64::MAX);

    /// `n` nanoseconds.
    pub const fn from_nanos(n: u64) -> Time {
        Time(n * 1_000)
    }

    /// `n` microseconds.
    pub const fn from_micros(n: u64) -> Time {
        Time(n * 1_000_000)
    }

    /// `n` milliseconds.
    pub const fn from_millis(n: u64) -> Time {
        Time(n * 1_000_000_000)
    }

    /// `n` seconds.
    pub const fn from_secs(n: u64) -> Time {
        Time(n * 1_000_000_000_000)
    }

    /// Whole nanoseconds, rounded down: the unit of `core/`.
    pub const fn as_nanos(self) -> u64 {
        self.0 / 1_000
    }

    /// Whole microseconds, rounded down.
    pub const fn as_micros(self) -> u64 {
        self.0 / 1_000_000
    }

    /// Seconds, for output only.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e12
    }

    /// `self + other`, or [`Time::NEVER`] where that is out of range.
    pub const fn saturating_add(self, other: Time) -> Time {
        Time(self.0.saturating_add(other.0))
    }

    /// `self - other`, or zero where `other` is later.
    pub const fn saturating_sub(self, other: Time) -> Time {
        Time(self.0.saturating_sub(other.0))
    }
}

impl Add for Time {
    type Output = Time;
    fn add(self, other: Time) -> Time {
        Time(self.0 + other.0)
    }
}

impl AddAssign for Time {
    fn add_assign(&mut self, other: Time) {
        self.0 += other.0;
    }
}

impl Sub for Time {
    type Output = Time;
    fn sub(self, other: Time) -> Time {
        Time(self.0 - other.0)
    }
}

/// A link's or source's speed, in bits per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rate(pub u64);

impl Rate {
    /// Picoseconds a byte takes on the wire, in units of 2^-16 ps, so that any rate from 1 b/s to
    /// 10 Tb/s is held to better than 1e-4.
    pub const fn byte_time_q16(self) -> u64 {
        ((8_000_000_000_000u128 << 16) / self.0 as u128) as u64
    }

    /// How long `bytes` take on the wire; [`Time::NEVER`] where that is out of range.
    pub const fn transmission(self, bytes: u64) -> Time {
        let time = (bytes as u128 * self.byte_time_q16() as u128) >> 16;
        match time < u64::MAX as u128 {
            true => Time(time as u64),
            false => Time::NEVER,
        }
    }
}

/// How much an output port can hold, the packet in transmission included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Buffer {
    /// Bytes still to be sent.
    Bytes(u64),
    /// Packets not yet sent entirely, as ns-2 counts them.
    Packets(u32),
}
