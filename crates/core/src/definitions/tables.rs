// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//! Reads the tables of `c/definitions.c`, whose structs these are.

use std::ffi::{CStr, c_char};

use super::{Definition, Field, Param, Preset, Unit, Variant, Word, WritePreset};

/// All definitions.
pub(super) fn definitions() -> Vec<Definition> {
    // SAFETY: a list of c/definitions.c, which ends with a name that is null.
    unsafe { list(&raw const core_definitions, |raw| raw.name) }
        .map(Definition::of)
        .collect()
}

/// What a port counts.
pub(super) fn counters() -> Vec<Word> {
    words(&raw const core_counters)
}

/// What each side of a canary counts.
pub(super) fn canary_counters() -> Vec<Word> {
    words(&raw const core_canary_counters)
}

/// What a port with credit counts.
pub(super) fn credit_counters() -> Vec<Word> {
    words(&raw const core_credit_counters)
}

/// Why a packet passes.
pub(super) fn pass_reasons() -> Vec<Word> {
    words(&raw const core_pass_reasons)
}

#[repr(C)]
struct RawWord {
    word: *const c_char,
    meaning: *const c_char,
}

#[repr(C)]
struct RawParam {
    key: *const c_char,
    unit: *const c_char,
    field: *const c_char,
    meaning: *const c_char,
    words: *const RawWord,
    min: f64,
    max: f64,
    standard: f64,
    paper: f64,
    standard_rtts: u32,
    paper_rtts: u32,
    offset: u32,
    bytes: u32,
}

#[repr(C)]
struct RawField {
    name: *const c_char,
    offset: u32,
    bytes: u32,
}

impl RawField {
    /// # Safety
    /// `self.name` is a text of C that is never freed.
    unsafe fn field(&self) -> Field {
        Field {
            // SAFETY: as the caller promises.
            name: unsafe { text(self.name) },
            offset: self.offset as usize,
            bytes: self.bytes as usize,
        }
    }
}

#[repr(C)]
struct RawOrder {
    low: *const c_char,
    high: *const c_char,
}

#[repr(C)]
struct RawChange {
    variant: *const c_char,
    key: *const c_char,
    value: f64,
}

#[repr(C)]
struct RawDefinition {
    name: *const c_char,
    title: *const c_char,
    params: *const RawParam,
    orders: *const RawOrder,
    variants: *const RawChange,
    port: *const RawField,
    scheme: u32,
    params_bytes: u32,
    state_bytes: u32,
    offset: u32,
    preset: Option<WritePreset>,
}

unsafe extern "C" {
    static core_definitions: RawDefinition;
    static core_counters: RawWord;
    static core_canary_counters: RawWord;
    static core_credit_counters: RawWord;
    static core_pass_reasons: RawWord;
}

/// # Safety
/// `text` is a text of C that is never freed.
unsafe fn text(text: *const c_char) -> &'static str {
    // SAFETY: as the caller promises.
    unsafe { CStr::from_ptr(text) }
        .to_str()
        .unwrap_or_else(|error| unreachable!("c/definitions.c: {error}"))
}

/// The elements of a list of C.
///
/// # Safety
/// `first` begins a list that is never freed and ends with an element whose `name` is null.
unsafe fn list<T: 'static>(
    first: *const T,
    name: fn(&T) -> *const c_char,
) -> impl Iterator<Item = &'static T> {
    (0..)
        // SAFETY: not beyond the end, as the caller promises and `take_while` stops there.
        .map(move |index| unsafe { &*first.add(index) })
        .take_while(move |element| !name(element).is_null())
}

fn words(first: *const RawWord) -> Vec<Word> {
    // SAFETY: a list of c/definitions.c, of texts.
    unsafe { list(first, |raw| raw.word) }
        .map(|raw| Word {
            // SAFETY: as above.
            word: unsafe { text(raw.word) },
            // SAFETY: as above.
            meaning: unsafe { text(raw.meaning) },
        })
        .collect()
}

/// # Safety
/// As [`list`], of texts.
unsafe fn variants(first: *const RawChange) -> Vec<Variant> {
    let mut variants: Vec<Variant> = Vec::new();
    // SAFETY: as the caller promises.
    for raw in unsafe { list(first, |raw| raw.variant) } {
        // SAFETY: as above.
        let (name, key) = unsafe { (text(raw.variant), text(raw.key)) };
        if variants.last().is_none_or(|last| last.name != name) {
            variants.push(Variant {
                name,
                changes: Vec::new(),
            });
        }
        if let Some(last) = variants.last_mut() {
            last.changes.push((key, raw.value));
        }
    }
    variants
}

impl Definition {
    fn of(raw: &RawDefinition) -> Definition {
        // SAFETY: all pointers are to texts and lists of c/definitions.c.
        unsafe {
            Definition {
                name: text(raw.name),
                title: text(raw.title),
                params: list(raw.params, |raw| raw.key).map(Param::of).collect(),
                orders: list(raw.orders, |raw| raw.low)
                    .map(|raw| [text(raw.low), text(raw.high)])
                    .collect(),
                variants: match raw.variants.is_null() {
                    true => Vec::new(),
                    false => variants(raw.variants),
                },
                port: list(raw.port, |raw| raw.name)
                    .map(|raw| raw.field())
                    .collect(),
                scheme: raw.scheme,
                offset: raw.offset as usize,
                params_bytes: raw.params_bytes as usize,
                state_bytes: raw.state_bytes as usize,
                preset: raw.preset,
            }
        }
    }
}

impl Param {
    fn of(raw: &RawParam) -> Param {
        // SAFETY: all pointers are to texts and lists of c/definitions.c, or null where tested.
        unsafe {
            Param {
                key: text(raw.key),
                unit: Unit::of(text(raw.unit)),
                min: raw.min,
                max: raw.max,
                default: Preset {
                    value: raw.standard,
                    rtts: raw.standard_rtts,
                },
                paper: Preset {
                    value: raw.paper,
                    rtts: raw.paper_rtts,
                },
                meaning: text(raw.meaning),
                words: match raw.words.is_null() {
                    true => Vec::new(),
                    false => words(raw.words),
                },
                field: (!raw.field.is_null()).then(|| Field {
                    name: text(raw.field),
                    offset: raw.offset as usize,
                    bytes: raw.bytes as usize,
                }),
            }
        }
    }
}

impl Unit {
    const NAMES: [(&'static str, Unit); 11] = [
        ("TIME", Unit::Time),
        ("SHARE", Unit::Share),
        ("RATE", Unit::Rate),
        ("BUFFER_SHARE", Unit::BufferShare),
        ("BUFFER_LIMIT", Unit::BufferLimit),
        ("SEGMENTS", Unit::Segments),
        ("SEGMENT_BYTES", Unit::SegmentBytes),
        ("COUNT", Unit::Count),
        ("AMOUNT", Unit::Amount),
        ("FLAG", Unit::Flag),
        ("ENUM", Unit::Enum),
    ];

    fn of(name: &str) -> Unit {
        let found = Unit::NAMES.iter().find(|(known, _)| *known == name);
        found.map_or_else(
            || unreachable!("core/params.h: unit {name}"),
            |(_, unit)| *unit,
        )
    }
}
