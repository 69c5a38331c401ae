// SPDX-License-Identifier: Apache-2.0
//! Why the slow flows were slow: what they waited for.

use crate::simulation::{ENDLESS, Record, WaitsOf};
use crate::tcp::Waits;
use penstock_scenario::units::Time;
use serde::Serialize;

/// The slow flows of a group: of ten the one that took longest for its ideal time, at least one in
/// all. The shares of the time that they were under way add up to 1; what is not known is `None`, and
/// part of `queueing`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SlowFlows {
    /// How many.
    pub flows: usize,
    /// Mean time under way; of those without an end until they were stopped or the run ended.
    pub lasted_s: f64,
    /// Share before retransmission timeouts of data or FIN.
    pub rto: f64,
    /// Share before timeouts of a SYN or SYN-ACK.
    pub syn_timeout: f64,
    /// Share in which the receiver delayed an ACK while it waited for more.
    pub delayed_ack: Option<f64>,
    /// Share with data to send, none in flight and no window for it.
    pub zero_window: Option<f64>,
    /// Share in which the server had the request and no answer yet.
    pub server_think: f64,
    /// Share that the flow needs on the empty network.
    pub ideal: f64,
    /// The rest: in queues, at a share of a link's rate, below a window.
    pub queueing: f64,
}

/// Time a transfer was under way, of which `end` is the last instant of those without an end.
pub fn time_under_way(record: &Record, end: Time) -> Time {
    let until = record.end.or(record.stopped).unwrap_or(end);
    until.saturating_sub(record.start)
}

/// What a transfer waited for, of the time it was under way.
pub fn waits(record: &Record, end: Time) -> Waits {
    // A timer that fires soon after a transfer began was waited for before it.
    let mut left = time_under_way(record, end);
    let mut at_most = |wait: Time| {
        let wait = wait.min(left);
        left = left - wait;
        wait
    };
    let Waits {
        rto,
        syn,
        window,
        ack,
        server,
    } = record.total.waits;
    Waits {
        server: at_most(server),
        syn: at_most(syn),
        rto: at_most(rto),
        window: at_most(window),
        ack: at_most(ack),
    }
}

/// Of `records` those that are slow, and what they waited for until `end`. `None` where they are not
/// counted, or all are endless.
pub fn slow_flows(records: &[&Record], end: Time) -> Option<SlowFlows> {
    let mut all: Vec<(f64, &Record)> = records
        .iter()
        .filter(|record| record.bytes < ENDLESS && record.waits_of != WaitsOf::Uncounted)
        .map(|record| (slowness(record, end), *record))
        .collect();
    let count = all.len().div_ceil(10);
    all.sort_by(|one, other| other.0.total_cmp(&one.0));
    let slow: Vec<&Record> = all[..count].iter().map(|(_, record)| *record).collect();
    let is_simulated = slow.first()?.waits_of == WaitsOf::Simulator;
    let mut sums = Waits::default();
    let (mut time, mut ideal) = (Time::ZERO, Time::ZERO);
    for record in &slow {
        let (took, waited) = (time_under_way(record, end), waits(record, end));
        sums = sums.plus(&waited);
        time += took;
        let left = took - waited.sum();
        ideal += record.ideal.unwrap_or(Time::ZERO).min(left);
    }
    let share = |part: Time| part.as_secs_f64() / time.as_secs_f64().max(f64::MIN_POSITIVE);
    let rest = time - sums.sum() - ideal;
    Some(SlowFlows {
        flows: count,
        lasted_s: time.as_secs_f64() / count as f64,
        rto: share(sums.rto),
        syn_timeout: share(sums.syn),
        delayed_ack: is_simulated.then(|| share(sums.ack)),
        zero_window: is_simulated.then(|| share(sums.window)),
        server_think: share(sums.server),
        ideal: share(ideal),
        queueing: share(rest),
    })
}

/// The time it was under way for its ideal time; where that is not known, its time.
fn slowness(record: &Record, end: Time) -> f64 {
    let time = time_under_way(record, end).as_secs_f64();
    match record.ideal {
        Some(ideal) if ideal > Time::ZERO => time / ideal.as_secs_f64(),
        _ => time,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulation::TransferCounters;

    fn record(end_ms: Option<u64>, waits: Waits) -> Record {
        Record {
            traffic: 0,
            number: 0,
            source: 0,
            destination: 1,
            start: Time::from_millis(100),
            end: end_ms.map(Time::from_millis),
            stopped: None,
            bytes: 1000,
            total: TransferCounters {
                waits,
                ..TransferCounters::default()
            },
            before: TransferCounters::default(),
            silence: Time::ZERO,
            request: None,
            is_opening: true,
            ideal: Some(Time::from_millis(10)),
            waits_of: WaitsOf::Simulator,
        }
    }

    #[test]
    fn the_slowest_tenth_waited_for_its_timeouts() {
        let quick = record(Some(120), Waits::default());
        let rto = Time::from_millis(300);
        let slow = record(
            Some(500),
            Waits {
                rto,
                ..Waits::default()
            },
        );
        let mut all = vec![&quick; 9];
        all.push(&slow);
        let found = slow_flows(&all, Time::from_secs(1)).expect("flows");
        assert_eq!((found.flows, found.lasted_s), (1, 0.4));
        assert!((found.rto - 0.75).abs() < 1e-9 && (found.ideal - 0.025).abs() < 1e-9);
        let sum = found.rto + found.syn_timeout + found.ideal + found.queueing;
        assert!((sum - 1.0).abs() < 1e-12);
    }

    #[test]
    fn no_more_is_waited_than_a_flow_took() {
        let second = Time::from_secs(1);
        let all_four = Waits {
            rto: second,
            syn: second,
            window: second,
            ack: second,
            server: Time::ZERO,
        };
        let unfinished = record(None, all_four);
        let found = slow_flows(&[&unfinished], Time::from_millis(400)).expect("a flow");
        assert_eq!(
            (found.syn_timeout, found.rto, found.queueing),
            (1.0, 0.0, 0.0)
        );
    }
}
