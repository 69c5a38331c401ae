// SPDX-License-Identifier: Apache-2.0
//! Sizes and clocks of segments' options.

use crate::packet::{Packet, SynOptions, flag};
use penstock_scenario::units::Time;

/// Bytes of the timestamps option with its padding.
pub(super) const TIMESTAMPS_LEN: u8 = 12;

/// The timestamp clock: milliseconds (RFC 7323 §5.4 allows 1 ms to 1 s).
pub(super) fn timestamp(now: Time) -> u32 {
    (now.0 / Time::from_millis(1).0) as u32
}

/// When left what `segment` acknowledges, by the timestamp that it echoes, if it has one (RFC 7323
/// §4.1): a millisecond ago at least, as Linux takes it.
pub(super) fn echoed(now: Time, segment: &Packet) -> Option<Time> {
    if !segment.has(flag::TIMESTAMPS) || segment.ts_ecr == 0 {
        return None;
    }
    let span = timestamp(now).wrapping_sub(segment.ts_ecr).max(1);
    (span < 1 << 30).then(|| now.saturating_sub(Time::from_millis(span as u64)))
}

/// Bytes of options in a SYN, padded as Linux pads them.
pub(super) fn syn_options_len(offer: SynOptions) -> u8 {
    let stamps = match (offer.timestamps, offer.sack) {
        (true, _) => TIMESTAMPS_LEN,
        (false, true) => 4,
        (false, false) => 0,
    };
    4 + stamps + if offer.window_scale.is_some() { 4 } else { 0 }
}
