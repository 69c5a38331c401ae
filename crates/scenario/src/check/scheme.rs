// SPDX-License-Identifier: Apache-2.0
//! Parameters of schemes that are out of range or contradict each other.

use super::Checker;
use crate::{Buffer, Controller, Fairq, Hcf, Hscc, Period, Pie, Queue, Red, Scheme, Sicc, Window};

impl Checker<'_> {
    pub(super) fn scheme(&mut self, scheme: &Scheme, key: &str) {
        self.queue(&scheme.queue, &format!("{key}.queue"));
        self.window(&scheme.window, &format!("{key}.window"));
        match &scheme.controller {
            Controller::None => {}
            Controller::Sicc(sicc) => self.sicc(sicc, &format!("{key}.controller")),
        }
    }

    pub(super) fn queue(&mut self, queue: &Queue, key: &str) {
        match queue {
            Queue::DropTail(_) => {}
            Queue::Red(red) => self.red(red, key),
            Queue::Threshold(threshold) => {
                self.not_empty(threshold.mark_at, &format!("{key}.mark_at"));
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
                self.at_least_one(sfq.bins, &format!("{key}.bins"));
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

    pub(super) fn window(&mut self, window: &Window, key: &str) {
        match window {
            Window::None => {}
            Window::Fairq(fairq) => self.fairq(fairq, key),
            Window::Hscc(hscc) => self.hscc(hscc, key),
        }
    }

    pub(super) fn not_empty(&mut self, size: Option<Buffer>, key: &str) {
        self.require(size.is_none_or(|size| size.bytes(1) > 0), key, || {
            "is 0; allowed: more than nothing".to_owned()
        });
    }

    fn range(&mut self, value: u32, low: u32, high: u32, key: &str) {
        self.require((low..=high).contains(&value), key, || {
            format!("is {value}; allowed: {low} to {high}")
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
    }

    fn pie(&mut self, pie: &Pie, key: &str) {
        self.positive(Some(pie.target), &format!("{key}.target"));
        self.positive(Some(pie.update), &format!("{key}.update"));
        for (name, weight) in [("alpha", pie.alpha), ("beta", pie.beta)] {
            let is_weight = weight.is_finite() && weight >= 0.0;
            self.require(is_weight, &format!("{key}.{name}"), || {
                format!("is {weight}; allowed: 0 or more")
            });
        }
    }

    fn hcf(&mut self, hcf: &Hcf, key: &str) {
        self.range(hcf.bins, 1, 256, &format!("{key}.bins"));
        self.range(hcf.hashes.into(), 1, 4, &format!("{key}.hashes"));
        self.not_empty(Some(hcf.credits), &format!("{key}.credits"));
        let share = hcf.high_share.0;
        self.require(
            share > 0.0 && share < 1.0,
            &format!("{key}.high_share"),
            || format!("is {share}; allowed: above 0, below 1"),
        );
        let every = format!("{key}.every");
        self.positive(hcf.every, &every);
        match (hcf.period, hcf.every) {
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

    fn fairq(&mut self, fairq: &Fairq, key: &str) {
        self.fraction(fairq.alpha.0, &format!("{key}.alpha"));
        self.positive(fairq.interval, &format!("{key}.interval"));
        self.range(fairq.intervals, 1, 65535, &format!("{key}.intervals"));
        self.range(fairq.paths, 1, 65535, &format!("{key}.paths"));
        self.range(fairq.floor.into(), 1, 255, &format!("{key}.floor"));
        self.range(
            fairq.first_floor().into(),
            1,
            255,
            &format!("{key}.first_floor"),
        );
    }

    fn hscc(&mut self, hscc: &Hscc, key: &str) {
        let (low, high) = (hscc.alpha1().0, hscc.alpha2().0);
        self.fraction(high, &format!("{key}.alpha2"));
        self.require(low < high, &format!("{key}.alpha1"), || {
            format!("{low} is not below alpha2, {high}")
        });
        self.fraction(hscc.sigma().0, &format!("{key}.sigma"));
        self.range(hscc.floor.into(), 1, 255, &format!("{key}.floor"));
        self.positive(
            Some(hscc.release_interval),
            &format!("{key}.release_interval"),
        );
    }

    fn sicc(&mut self, sicc: &Sicc, key: &str) {
        let (low, high) = (sicc.alpha1.0, sicc.alpha2.0);
        self.require(
            high > 0.0 && high <= 256.0,
            &format!("{key}.alpha2"),
            || format!("is {high}; allowed: above 0, at most 256"),
        );
        self.require(low < high && low <= 1.0, &format!("{key}.alpha1"), || {
            format!("is {low}; allowed: below alpha2, {high}, and at most 1")
        });
        self.positive(sicc.interval, &format!("{key}.interval"));
        self.positive(Some(sicc.duration), &format!("{key}.duration"));
        self.range(
            sicc.initial_window,
            1,
            65535,
            &format!("{key}.initial_window"),
        );
        self.range(sicc.floor.into(), 1, 255, &format!("{key}.floor"));
        self.require(sicc.loss.0 <= 1.0, &format!("{key}.loss"), || {
            format!("is {}; allowed: 0 to 1 (100 %)", sicc.loss.0)
        });
    }
}
