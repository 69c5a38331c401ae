// SPDX-License-Identifier: Apache-2.0
//! Lines about connections: few of each address, however often it connects.

use penstock_linux::note;
use std::collections::HashMap;
use std::fmt::Display;
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// Most lines about an address in a [`PERIOD`].
const MOST: u32 = 10;
const PERIOD: Duration = Duration::from_secs(60);
/// Most addresses with lines in a period.
const MOST_ADDRESSES: usize = 4096;

/// The lines of the present period.
pub(super) struct Lines {
    counts: HashMap<IpAddr, u32>,
    since: Instant,
}

impl Lines {
    /// None so far.
    pub fn new(now: Instant) -> Lines {
        Lines {
            counts: HashMap::new(),
            since: now,
        }
    }

    /// Prints a line about an address, unless there were too many.
    pub fn print(&mut self, address: IpAddr, line: impl Display) {
        match self.count(address, Instant::now()) {
            ..MOST => note!("penstock-controller: {line}"),
            MOST => note!(
                "penstock-controller: {line} (no further lines about this address for up to a minute)"
            ),
            _ => (),
        }
    }

    /// The number of a new line about an address.
    fn count(&mut self, address: IpAddr, now: Instant) -> u32 {
        if now.duration_since(self.since) >= PERIOD {
            self.counts.clear();
            self.since = now;
        }
        if self.counts.len() >= MOST_ADDRESSES && !self.counts.contains_key(&address) {
            return u32::MAX;
        }
        let count = self.counts.entry(address).or_default();
        *count = count.saturating_add(1);
        *count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_begins_again_after_a_period() {
        let now = Instant::now();
        let mut lines = Lines::new(now);
        let [one, other] = [1, 2].map(|last| IpAddr::from([10, 0, 0, last]));
        for number in 1..100 {
            assert_eq!(lines.count(one, now), number);
        }
        assert_eq!(lines.count(other, now), 1);
        assert_eq!(lines.count(one, now + PERIOD), 1);
    }
}
