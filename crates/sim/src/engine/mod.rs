// SPDX-License-Identifier: Apache-2.0
//! The event engine: who acts next, and when.

mod calendar;
mod ring;
mod timers;

pub use calendar::Calendar;
pub use ring::Ring;
pub use timers::Timers;
