// SPDX-License-Identifier: Apache-2.0
//! Parameters of schemes that are out of range or contradict each other.

use penstock_core::definitions::{ABOVE_0, Param};
use penstock_core::scheme::WscaleSource;

use super::Checker;
use crate::params::{Params, Value, range_text};
use crate::units::Time;
use crate::{Buffer, Controller, Hcf, Level, Period, Pie, Queue, Red, Scheme, Window};

/// Of PIE's weights, 1/s: beyond it every microsecond of delay is a certain drop.
const MOST_WEIGHT: f64 = 1e6;

impl Checker<'_> {
    pub(super) fn scheme(&mut self, scheme: &Scheme, key: &str) {
        self.queue(&scheme.queue, &format!("{key}.queue"));
        self.window(&scheme.window, &format!("{key}.window"));
        match &scheme.controller {
            Controller::None => {}
            Controller::Sicc(sicc) => self.params(sicc, &format!("{key}.controller")),
            Controller::FlowCounts(counts) => {
                self.counted(&scheme.window, &format!("{key}.controller.kind"));
                let loss = counts.loss.0;
                self.require(loss <= 1.0, &format!("{key}.controller.loss"), || {
                    format!("is {loss}; allowed: 0 to 1 (100 %)")
                });
            }
        }
        if scheme.window.is_credit() {
            let has_shims = scheme.window.wscale_source().has_shims();
            self.require(!has_shims, &format!("{key}.window.wscale_source"), || {
                "needs shims; allowed with credit: tracked, stripped, lowered".to_owned()
            });
            self.require(scheme.sampled.is_none(), &format!("{key}.sampled"), || {
                "has no meaning with credit, which is written into every ACK".to_owned()
            });
        }
        if let Some(share) = scheme.sampled {
            self.sampled(share.0, &scheme.window, &format!("{key}.sampled"));
        }
    }

    /// A controller that counts flows is for windows that depend on their number.
    pub(super) fn counted(&mut self, window: &Window, key: &str) {
        self.require(window.counts_flows(), key, || {
            let kind = window.kind().name;
            format!("flow-counts has no meaning with this window \"{kind}\", which needs no count")
        });
    }

    fn sampled(&mut self, share: f64, window: &Window, key: &str) {
        self.fraction(share, key);
        self.require(window.scheme().is_some(), key, || {
            "has no meaning without a window policy".to_owned()
        });
        let uses_bits = window.wscale_source() == WscaleSource::ReservedBits;
        self.require(!uses_bits, key, || {
            "needs one of the reserved bits, in which wscale_source puts the scale".to_owned()
        });
    }

    pub(super) fn queue(&mut self, queue: &Queue, key: &str) {
        match queue {
            Queue::DropTail(_) => {}
            Queue::Red(red) => self.red(red, key),
            Queue::Threshold(threshold) => {
                self.level(threshold.mark_at, &format!("{key}.mark_at"));
            }
            Queue::Codel(codel) => {
                self.positive(Some(codel.target), &format!("{key}.target"));
                self.require(
                    codel.target < codel.interval,
                    &format!("{key}.target"),
                    || format!("{} is not below interval, {}", codel.target, codel.interval),
                );
            }
            Queue::Pie(pie) => self.pie(pie, key),
            Queue::Sfq(sfq) => {
                self.not_empty(
                    Some(Buffer::Bytes(sfq.quantum.0)),
                    &format!("{key}.quantum"),
                );
                self.positive(sfq.perturb, &format!("{key}.perturb"));
            }
            Queue::Drr(drr) => {
                self.not_empty(
                    Some(Buffer::Bytes(drr.quantum.0)),
                    &format!("{key}.quantum"),
                );
            }
            Queue::Hcf(hcf) => self.hcf(hcf, key),
        }
    }

    pub(super) fn level(&mut self, level: Option<Level>, key: &str) {
        match level {
            Some(Level::Share(share)) => self.fraction(share.0, key),
            Some(Level::Size(size)) => self.not_empty(Some(size), key),
            None => {}
        }
    }

    pub(super) fn not_empty(&mut self, size: Option<Buffer>, key: &str) {
        self.require(size.is_none_or(|size| size.bytes(1) > 0), key, || {
            "is 0; allowed: more than nothing".to_owned()
        });
    }

    fn red(&mut self, red: &Red, key: &str) {
        self.fraction(red.probability.0, &format!("{key}.probability"));
        self.fraction(red.weight.0, &format!("{key}.weight"));
        let bytes = |threshold: Option<Buffer>| threshold.map(|size| size.bytes(1500));
        if let (Some(min), Some(max)) = (bytes(red.min), bytes(red.max)) {
            self.require(min < max, &format!("{key}.min"), || {
                "is not below max".to_owned()
            });
        }
        if red.max.is_some() && red.min.is_none() {
            self.refuse(&format!("{key}.max"), "is given without min");
        }
        if red.max.is_none() {
            // `max` is three times as much.
            self.not_empty(red.min, &format!("{key}.min"));
        }
    }

    fn pie(&mut self, pie: &Pie, key: &str) {
        self.positive(Some(pie.target), &format!("{key}.target"));
        self.positive(Some(pie.update), &format!("{key}.update"));
        for (name, weight) in [("alpha", pie.alpha), ("beta", pie.beta)] {
            let is_weight = (0.0..=MOST_WEIGHT).contains(&weight);
            self.require(is_weight, &format!("{key}.{name}"), || {
                format!("is {weight}; allowed: 0 to {MOST_WEIGHT}")
            });
        }
    }

    /// The window policy of a scenario; that of a port may be none and have the common parameters.
    fn window(&mut self, window: &Window, key: &str) {
        self.params(window, key);
        let given = window.given().find(|(_, value)| value.is_some());
        if let (None, Some((param, _))) = (window.scheme(), given) {
            let key = format!("{key}.{}", param.key);
            self.refuse(&key, "has no meaning with kind = \"none\"");
        }
    }

    fn hcf(&mut self, hcf: &Hcf, key: &str) {
        self.params(hcf, key);
        let share = hcf.share("high_share").0;
        self.require(share < 1.0, &format!("{key}.high_share"), || {
            format!("is {share}; allowed: above 0, below 1")
        });
        let every = format!("{key}.every");
        match (hcf.period(), hcf.time("every")) {
            (Period::Dynamic, Some(_)) => self.refuse(
                &every,
                "has no meaning with period = \"dynamic\"; allowed with: fixed, ordered",
            ),
            (Period::Fixed | Period::Ordered, None) => {
                self.refuse(&every, "is missing; a fixed period needs it")
            }
            _ => {}
        }
    }

    /// A scheme's parameters, by the ranges and the order that its definition has.
    pub(super) fn params(&mut self, params: &Params, key: &str) {
        for (param, value) in params.given() {
            let Some(value) = value else { continue };
            let within = format!("{key}.{}", param.key);
            self.require(param.allows(value.number()), &within, || {
                out_of_range(param, value)
            });
        }
        for [low, high] in params.kind().definition.iter().flat_map(|d| &d.orders) {
            let [less, more] = [low, high].map(|key| params.share(key).0);
            self.require(less < more, &format!("{key}.{low}"), || {
                format!("{less} is not below {high}, {more}")
            });
        }
    }
}

pub(super) fn out_of_range(param: &Param, value: Value) -> String {
    let percent = if param.max == 1.0 { " (100 %)" } else { "" };
    let max = param.max;
    match value {
        Value::Time(Time::ZERO) => "is 0; allowed: a time above 0 s".to_owned(),
        Value::Time(time) => format!("is {time}; allowed: {}", range_text(param)),
        Value::Share(share) if param.min == ABOVE_0 => {
            format!("is {}; allowed: above 0, at most {max}{percent}", share.0)
        }
        Value::Share(share) => format!("is {}; allowed: 0 to {max}{percent}", share.0),
        Value::Rate(rate) => format!("is {rate}; allowed: {}", range_text(param)),
        Value::Amount(_) => "is 0; allowed: more than nothing".to_owned(),
        Value::Count(_) | Value::Flag(_) | Value::Word(_) => {
            format!("is {}; allowed: {}", value.number(), range_text(param))
        }
    }
}
