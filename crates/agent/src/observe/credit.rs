// SPDX-License-Identifier: Apache-2.0
//! What Grant would have done to a recording: how many flows would have held credit at a time, and how long
//! the others would have waited. An estimate: transfers arrive as recorded, and are served one after another
//! at the port's rate, as Grant serves equal ones; those beyond [`LONG_BYTES`] take turns with what is left.

use penstock_core::Params;
use penstock_core::definitions;
use serde::Serialize;

use super::bursts::Line;
use super::fan_in::Transfer;

/// From here on flows take turns, with Grant's defaults.
const LONG_BYTES: u64 = 1 << 20;

/// What each segment of a transfer takes of the port in addition.
const HEADER_BYTES: u64 = 52;
const SEGMENT_BYTES: u64 = 1448;

/// What Grant would have done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Credit {
    /// What flows could have sent without an answer, bytes.
    pub target_bytes: u64,
    /// Flows with a whole grant at a time.
    pub flows_at_a_time: u64,
    /// Transfers that would have waited for more than a millisecond.
    pub waiting: u64,
    /// Mean time that transfers would have waited, nanoseconds.
    pub wait_mean_ns: u64,
    /// The longest.
    pub wait_max_ns: u64,
}

impl Credit {
    /// Of the transfers of a recording; none if the port's rate is not known, or nothing was recorded.
    pub fn of(transfers: &[Transfer], line: Line) -> Option<Credit> {
        let rate_bps = line.rate_bps.filter(|rate| *rate > 0)?;
        let params = Params::new(definitions::of("grant"), line.buffer_bytes);
        let grant = params.field("grant_segments").max(1) * SEGMENT_BYTES;
        let target = params.field("target_bytes");
        let is_long = |transfer: &&Transfer| transfer.bytes > LONG_BYTES;
        let has_long = transfers.iter().any(|transfer| is_long(&transfer));
        // Long flows get an eighth.
        let rate = if has_long { rate_bps / 8 * 7 } else { rate_bps }.max(1);
        let mut short: Vec<&Transfer> = transfers.iter().filter(|t| !is_long(t)).collect();
        short.sort_by_key(|transfer| transfer.begun_ns);
        let mut free_ns = 0;
        let mut waits = Vec::with_capacity(short.len());
        for transfer in short {
            let wire = transfer.bytes + transfer.bytes.div_ceil(SEGMENT_BYTES) * HEADER_BYTES;
            let served_ns = transfer.begun_ns.max(free_ns);
            waits.push(served_ns - transfer.begun_ns);
            free_ns = served_ns + (u128::from(wire) * 8_000_000_000 / u128::from(rate)) as u64;
        }
        let count = (!waits.is_empty()).then_some(waits.len() as u64)?;
        Some(Credit {
            target_bytes: target,
            flows_at_a_time: (target / grant.min(target / 2).max(1)).max(1),
            waiting: waits.iter().filter(|wait| **wait > 1_000_000).count() as u64,
            wait_mean_ns: waits.iter().sum::<u64>() / count,
            wait_max_ns: waits.iter().copied().max().unwrap_or(0),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::fan_in::tests::transfer;

    const LINE: Line = Line {
        buffer_bytes: 131_072,
        rate_bps: Some(200_000_000),
    };

    #[test]
    fn transfers_at_once_wait_for_those_before_them() {
        let transfers: Vec<Transfer> = (0..20).map(|i| transfer(i, 1, 9, 11_500)).collect();
        let credit = Credit::of(&transfers, LINE).unwrap();
        // Of 0.477 ms each.
        assert_eq!((credit.flows_at_a_time, credit.waiting), (2, 17));
        assert!(
            (4_500_000..4_600_000).contains(&credit.wait_mean_ns),
            "{credit:?}"
        );
        assert!(
            (9_000_000..9_100_000).contains(&credit.wait_max_ns),
            "{credit:?}"
        );
        assert_eq!(Credit::of(&[], LINE), None);
    }

    #[test]
    fn long_ones_take_an_eighth_and_block_no_others() {
        let mut transfers = vec![transfer(1, 0, 90, 50_000_000), transfer(2, 1, 2, 11_500)];
        assert_eq!(Credit::of(&transfers, LINE).unwrap().wait_max_ns, 0);
        transfers.extend([transfer(3, 1, 2, 11_500)]);
        let wait_ns = Credit::of(&transfers, LINE).unwrap().wait_max_ns;
        assert!((530_000..560_000).contains(&wait_ns), "{wait_ns}");
    }
}
