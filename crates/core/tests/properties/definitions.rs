// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//! What must hold of every table of parameters.

use penstock_core::Params;
use penstock_core::definitions::{self, Param, Preset, Unit};
use proptest::prelude::*;
use std::collections::HashSet;

/// Takes one of the two presets.
type Column = fn(&Param) -> Preset;

proptest! {
    /// The two places that turn a value of a table into a field agree: the macros of
    /// `core/params.h`, and `Params::set`.
    #[test]
    fn values_are_fields_alike_in_c_and_here(buffer: u32) {
        for definition in definitions::all() {
            let presets: [(Params, Column); 2] = [
                (Params::new(definition, buffer), |param| param.default),
                (Params::paper(definition, buffer), |param| param.paper),
            ];
            for (by_c, preset) in presets {
                // From the other end of each range.
                let mut set = by_c.clone();
                let own = definition.params.iter().filter(|param| param.field.is_some());
                for param in own.clone() {
                    set.set(param.key, param.max).unwrap();
                    set.set(param.key, preset(param).value).unwrap();
                }
                prop_assert_eq!(set, by_c, "{}", definition.name);
            }
        }
    }
}

#[test]
fn every_table_is_sound() {
    for definition in definitions::all() {
        let mut keys = HashSet::new();
        let common = definitions::of("window");
        assert!(!definition.params.is_empty(), "{}", definition.name);
        assert!(!definition.title.is_empty(), "{}", definition.name);
        for param in &definition.params {
            let name = format!("{}.{}", definition.name, param.key);
            assert!(keys.insert(param.key), "{name} is defined twice");
            assert!(!["kind", "variant"].contains(&param.key), "{name}");
            assert!(
                definition.scheme == 0 || common.param(param.key).is_none(),
                "{name} is common to all schemes"
            );
            assert!(param.min < param.max, "{name}");
            for value in [param.default.value, param.paper.value] {
                assert!(
                    param.allows(value) || param.is_optional(),
                    "{name}: {value}"
                );
            }
            assert!(
                !param.meaning.is_empty() && !param.meaning.ends_with('.'),
                "{name}"
            );
            let words = if param.unit == Unit::Enum {
                param.max as usize + 1
            } else {
                0
            };
            assert_eq!(param.words.len(), words, "{name}");
            assert!(
                param.default.rtts == 0 || param.unit == Unit::Time,
                "{name}"
            );
        }
        for [low, high] in &definition.orders {
            let value = |key| definition.param(key).unwrap().default.value;
            assert!(
                value(low) < value(high),
                "{}: {low}, {high}",
                definition.name
            );
        }
    }
}

#[test]
fn lists_are_whole() {
    let names: Vec<&str> = definitions::window_schemes()
        .map(|scheme| scheme.name)
        .collect();
    assert_eq!(names[..2], ["fairq", "hscc"]);
    let counters = definitions::counters();
    assert_eq!(
        (counters[0].word, counters[4].word),
        ("egress_packets", "acks_rewritten")
    );
    let reasons = definitions::pass_reasons();
    assert_eq!((reasons[0].word, reasons[6].word), ("not_ip", "stale"));
    assert_eq!(
        definitions::of("window")
            .param("wscale_source")
            .unwrap()
            .words[1]
            .word,
        "reserved-bits"
    );
}
