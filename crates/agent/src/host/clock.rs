// SPDX-License-Identifier: Apache-2.0
//! The clock of the programs.

use std::sync::LazyLock;

use rustix::time::{ClockId, clock_gettime};

const SECOND_NS: i64 = 1_000_000_000;

/// CLOCK_MONOTONIC of the machine, the clock of the programs, in nanoseconds: in a time namespace
/// (time_namespaces(7)), this process's own clock has an offset.
pub fn monotonic_ns() -> u64 {
    static OFFSET_NS: LazyLock<i64> = LazyLock::new(|| {
        let offsets = std::fs::read_to_string("/proc/self/timens_offsets");
        offset_ns(&offsets.unwrap_or_default()).unwrap_or(0)
    });
    let now = clock_gettime(ClockId::Monotonic);
    (now.tv_sec * SECOND_NS + now.tv_nsec - *OFFSET_NS) as u64
}

/// The offset of CLOCK_MONOTONIC: seconds, which may be negative, and nanoseconds.
fn offset_ns(offsets: &str) -> Option<i64> {
    let mut lines = offsets.lines();
    let words = lines.find_map(|line| line.strip_prefix("monotonic"))?;
    let mut numbers = words.split_whitespace().map(str::parse::<i64>);
    let (seconds, nanoseconds) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
    seconds.checked_mul(SECOND_NS)?.checked_add(nanoseconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_offset_of_a_time_namespace_is_read() {
        let offset = |line: &str| offset_ns(&format!("{line}\nboottime           7         8\n"));
        assert_eq!(offset("monotonic           0         0"), Some(0));
        assert_eq!(
            offset("monotonic      100000         5"),
            Some(100_000 * SECOND_NS + 5)
        );
        assert_eq!(
            offset("monotonic          -2 900000000"),
            Some(-1_100_000_000)
        );
        assert_eq!(offset("monotonic"), None);
        assert_eq!(offset_ns(""), None);
    }
}
