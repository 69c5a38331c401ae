// SPDX-License-Identifier: Apache-2.0
//! The event engine: what happens next, and when.
//!
//! - [`Calendar`]: the next event of each of a fixed number of sources, such as a link with packets on
//!   it.
//! - [`Ring`]: the packets on one link, first in, first out.
//! - [`Timers`]: wake-ups of the end points, which move far more often than they fire.
//! - [`prefetch`]: a hint that memory is about to be used.

mod calendar;
mod prefetch;
mod ring;
mod timers;

pub use calendar::Calendar;
pub use prefetch::prefetch;
pub use ring::Ring;
pub use timers::Timers;
