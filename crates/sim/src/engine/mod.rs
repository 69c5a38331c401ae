// SPDX-License-Identifier: Apache-2.0
//! The event engine: who acts next, and when.

mod calendar;
mod prefetch;
mod ring;
mod timers;

pub use calendar::Calendar;
pub use prefetch::prefetch;
pub use ring::Ring;
pub use timers::Timers;
