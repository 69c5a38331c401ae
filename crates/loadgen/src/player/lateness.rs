// SPDX-License-Identifier: Apache-2.0
//! How late transfers began: what they waited before is in no time.

use penstock_scenario::units::Time;

/// From this on a begin is late; that of many at once takes milliseconds anyway.
const LATE: Time = Time::from_millis(10);

/// Of so many transfers, one may be late without a word.
const FEW: usize = 100;

/// Transfers that began late.
#[derive(Debug, Default)]
pub struct Lateness {
    late: usize,
    most: Time,
}

impl Lateness {
    /// A transfer begins.
    pub(super) fn note(&mut self, due: Time, now: Time) {
        let late = now.saturating_sub(due);
        self.late += usize::from(late >= LATE);
        self.most = self.most.max(late);
    }

    /// A line about it, if more than a few of `all` transfers were late.
    pub fn warning(&self, all: usize) -> Option<String> {
        let (late, most) = (self.late, self.most.as_secs_f64() * 1e3);
        (late * FEW > all).then(|| {
            format!(
                "{late} of {all} transfers began {LATE} or more after they were due, at most \
                 {most:.0} ms: this machine does not keep up, and their times leave that out"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_a_few_late_transfers_are_reported() {
        let mut lateness = Lateness::default();
        let ms = Time::from_millis;
        for (due, now) in [(ms(5), ms(5)), (ms(5), ms(14)), (ms(5), ms(4))] {
            lateness.note(due, now);
        }
        assert_eq!(lateness.warning(3), None);
        lateness.note(ms(5), ms(30));
        assert_eq!(lateness.warning(100), None);
        let line = lateness.warning(99).expect("one of 99");
        assert!(
            line.starts_with("1 of 99 transfers began 10 ms or more"),
            "{line}"
        );
        assert!(line.contains("at most 25 ms"), "{line}");
    }
}
