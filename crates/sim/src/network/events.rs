// SPDX-License-Identifier: Apache-2.0
//! What happens next: the calendar's sources are ports with a departure ahead, then links with
//! packets on them, then those outside the network.

use crate::engine::Calendar;
use penstock_scenario::units::Time;

/// Sources of events that are not the network's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The end points' timers.
    Timers = 0,
    /// The schedule of everything rare.
    Schedule = 1,
    /// The controller.
    Controller = 2,
}

/// The next event.
pub enum Event {
    /// The transmitter of this scheduler's port may send again.
    Departure(u32),
    /// A packet comes out of this link.
    Arrival(u32),
    /// One of the other sources is due.
    Other(Source),
}

/// The next event of each source.
pub(super) struct Events {
    calendar: Calendar,
    /// Number of link 0 among the calendar's sources; even. The order of simultaneous events
    /// depends on it.
    first_link: usize,
    links: usize,
}

impl Events {
    /// No events; `schedulers`: ports whose departures are events. `salt` chooses the order of
    /// simultaneous events.
    pub fn new(schedulers: usize, links: usize, salt: u64) -> Events {
        let first_link = schedulers.next_multiple_of(2);
        Events {
            calendar: Calendar::new(first_link + links + 3, salt),
            first_link,
            links,
        }
    }

    /// The last instant a run can reach with this many links.
    pub fn horizon(&self) -> Time {
        self.calendar.horizon()
    }

    /// The earliest event's time, and the calendar's source that it is of.
    #[inline(always)]
    pub fn first(&self) -> (Time, usize) {
        self.calendar.first()
    }

    /// The event of a source.
    #[inline(always)]
    pub fn event(&self, source: usize) -> Event {
        let link = source.wrapping_sub(self.first_link);
        if link < self.links {
            Event::Arrival(link as u32)
        } else {
            self.other_event(source)
        }
    }

    /// The links of the events that are likely to follow the first. No such link exists where the
    /// event is of another kind.
    #[inline(always)]
    pub fn likely_links(&self) -> [usize; 3] {
        let likely = self.calendar.runners_up();
        likely.map(|source| source.wrapping_sub(self.first_link))
    }

    fn other_event(&self, source: usize) -> Event {
        match source.checked_sub(self.first_link + self.links) {
            None => Event::Departure(source as u32),
            Some(0) => Event::Other(Source::Timers),
            Some(1) => Event::Other(Source::Schedule),
            Some(_) => Event::Other(Source::Controller),
        }
    }

    /// Sets the next event of a source that is not the network's.
    #[inline(always)]
    pub fn set_source(&mut self, source: Source, time: Time) {
        let number = self.first_link + self.links + source as usize;
        self.calendar.set(number, time);
    }

    /// Sets the next departure of scheduler's port number `port`; [`Time::NEVER`] for none.
    pub fn set_departure(&mut self, port: u32, time: Time) {
        self.calendar.set(port as usize, time);
    }

    /// A packet was put on `link`, which was empty; it will arrive at `time`. Returns the link's leaf.
    #[inline(always)]
    pub fn set_first_arrival(&mut self, link: u32, time: Time) -> u32 {
        self.calendar.begin(self.first_link + link as usize, time)
    }

    /// A packet comes out of `link`, the next one at `time`; [`Time::NEVER`] for none.
    #[inline(always)]
    pub fn set_next_arrival(&mut self, link: u32, leaf: u32, time: Time) {
        self.calendar
            .advance(self.first_link + link as usize, leaf, time);
    }
}
