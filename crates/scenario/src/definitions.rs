// SPDX-License-Identifier: Apache-2.0
//! All definitions of `core/` as JSON: for the docs' tables, for reports, for other languages.

use penstock_core::definitions::{self, Definition, Param, Preset, Unit, Variant, Word};
use serde::Serialize;

use super::params::{preset_text, range_text};

/// All parameters, counters and reasons to pass a packet, as `core/` defines them.
#[derive(Serialize)]
struct Definitions {
    /// By the stem of their header; `window` is what is common to all window schemes.
    schemes: Vec<Scheme>,
    counters: Vec<Named>,
    /// Of each side of a canary.
    canary_counters: Vec<Named>,
    pass_reasons: Vec<Named>,
}

#[derive(Serialize)]
struct Scheme {
    name: &'static str,
    title: &'static str,
    is_window: bool,
    /// Besides the columns `default` and `paper`.
    variants: Vec<&'static str>,
    params: Vec<ParamJson>,
    /// Pairs of keys of which the first must be below the second.
    orders: Vec<[&'static str; 2]>,
    /// Memory of its state at a port; 0 if it has none.
    state_bytes: usize,
}

#[derive(Serialize)]
struct ParamJson {
    key: &'static str,
    /// As the field is called in C; null if it is for the caller.
    field: Option<&'static str>,
    unit: &'static str,
    meaning: &'static str,
    /// Times in nanoseconds; a default below `min` is none.
    min: f64,
    max: f64,
    default: f64,
    /// Times: the default in round trips of the network, where these are known; else 0.
    default_rtts: u32,
    paper: f64,
    /// The same as people write them.
    range_text: String,
    default_text: String,
    paper_text: String,
    /// The same of each variant.
    variant_texts: Vec<String>,
    words: Vec<Named>,
}

#[derive(Serialize)]
struct Named {
    name: &'static str,
    meaning: &'static str,
}

impl Named {
    fn list(words: &[Word]) -> Vec<Named> {
        let named = |word: &Word| Named {
            name: word.word,
            meaning: word.meaning,
        };
        words.iter().map(named).collect()
    }
}

fn unit(unit: Unit) -> &'static str {
    match unit {
        Unit::Time => "time",
        Unit::Share => "share",
        Unit::Rate => "rate",
        Unit::BufferShare | Unit::BufferLimit => "share of the buffer",
        Unit::Segments | Unit::SegmentBytes => "segments",
        Unit::Count => "number",
        Unit::Amount => "packets or bytes",
        Unit::Flag => "true or false",
        Unit::Enum => "one of",
    }
}

impl ParamJson {
    fn of(param: &Param, variants: &[Variant]) -> ParamJson {
        let text = |preset: Preset| preset_text(param, preset);
        ParamJson {
            key: param.key,
            field: param.field.map(|field| field.name),
            unit: unit(param.unit),
            meaning: param.meaning,
            min: param.min,
            max: param.max,
            default: param.default.value,
            default_rtts: param.default.rtts,
            paper: param.paper.value,
            range_text: range_text(param),
            default_text: text(param.default),
            paper_text: text(param.paper),
            variant_texts: variants
                .iter()
                .map(|variant| text(variant.preset(param)))
                .collect(),
            words: Named::list(&param.words),
        }
    }
}

/// All definitions of `core/` as a JSON object.
pub fn definitions() -> String {
    let scheme = |definition: &Definition| Scheme {
        name: definition.name,
        title: definition.title,
        is_window: definition.scheme > 0,
        state_bytes: definition.state_bytes,
        variants: definition.variants.iter().map(|each| each.name).collect(),
        params: definition
            .params
            .iter()
            .map(|param| ParamJson::of(param, &definition.variants))
            .collect(),
        orders: definition.orders.clone(),
    };
    let all = Definitions {
        schemes: definitions::all().iter().map(scheme).collect(),
        counters: Named::list(definitions::counters()),
        canary_counters: Named::list(definitions::canary_counters()),
        pass_reasons: Named::list(definitions::pass_reasons()),
    };
    serde_json::to_string(&all).unwrap_or_else(|error| unreachable!("{error}"))
}
