// SPDX-License-Identifier: Apache-2.0
//! The event engine: what happens next, and when.
//!
//! - [`Calendar`]: the next event of each of a fixed number of sources, such as a link with packets on
//!   it.
//! - [`Ring`]: the packets on one link, first in, first out.
//! - [`Timers`]: wake-ups of the end points, which move far more often than they fire.
//! - [`prefetch`]: a hint that memory is about to be used. [`make_room`]: large tables in large pages.

mod calendar;
mod large_pages;
mod prefetch;
mod ring;
mod timers;

pub use calendar::Calendar;
pub use large_pages::make_room;
pub use prefetch::prefetch;
pub use ring::Ring;
pub use timers::Timers;
