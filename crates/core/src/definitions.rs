// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//! The definitions of `core/`: each scheme's parameters, what a port counts, why a packet passes.
//!
//! They stand in the headers, in one table each (`core/params.h`, `core/counters.h`), and are read
//! from what the C compiler made of these. Nothing that depends on them is written a second time.

use std::ffi::c_void;
use std::sync::LazyLock;

mod tables;

/// What a parameter's values are, and how its field in C is named (`core/params.h`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Nanoseconds.
    Time,
    /// A fraction, 1/65536 in C.
    Share,
    /// Bits per second.
    Rate,
    /// A share of the buffer, bytes in C.
    BufferShare,
    /// The same; all of it is no limit, 0 in C.
    BufferLimit,
    /// TCP segments.
    Segments,
    /// TCP segments, bytes in C.
    SegmentBytes,
    /// A number of something.
    Count,
    /// Packets or bytes.
    Amount,
    /// 0 or 1.
    Flag,
    /// The place of a word in [`Param::words`].
    Enum,
}

/// A word with what it stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word {
    /// As in scenarios and reports.
    pub word: &'static str,
    /// One line.
    pub meaning: &'static str,
}

/// The value of a parameter that is not given.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Preset {
    /// In the parameter's unit; where `rtts` is not 0, only if the network's RTT is not known.
    pub value: f64,
    /// So many round trips of the network.
    pub rtts: u32,
}

/// Where a field lies in a struct of C.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name in C.
    pub name: &'static str,
    pub(crate) offset: usize,
    pub(crate) bytes: usize,
}

/// One parameter.
#[derive(Clone, Debug, PartialEq)]
pub struct Param {
    /// Its name in scenarios, options and reports.
    pub key: &'static str,
    /// What its values are.
    pub unit: Unit,
    /// Least value.
    pub min: f64,
    /// Greatest value.
    pub max: f64,
    /// What works on real TCP. Below `min`: nothing is set.
    pub default: Preset,
    /// As printed in the paper.
    pub paper: Preset,
    /// One line.
    pub meaning: &'static str,
    /// The words of [`Unit::Enum`], by value.
    pub words: Vec<Word>,
    /// Its field; `None` if it is for the caller, not for the algorithm.
    pub field: Option<Field>,
}

/// The least share that is not 0: it rounds up to 1/65536.
pub const ABOVE_0: f64 = 1.0 / (1 << 17) as f64;

impl Param {
    /// Whether nothing is set unless a value is given.
    pub fn is_optional(&self) -> bool {
        self.default.value < self.min
    }

    /// Whether a value is in the range.
    pub fn allows(&self, value: f64) -> bool {
        (self.min..=self.max).contains(&value)
    }
}

/// A variant of a scheme, besides its default and that of the column `paper`.
#[derive(Clone, Debug)]
pub struct Variant {
    /// As in scenarios.
    pub name: &'static str,
    /// The parameters in which it differs from [`Param::paper`], by their keys.
    pub changes: Vec<(&'static str, f64)>,
}

impl Variant {
    /// Its value of a parameter.
    pub fn preset(&self, param: &Param) -> Preset {
        let change = self.changes.iter().find(|(key, _)| *key == param.key);
        change.map_or(param.paper, |&(_, value)| Preset { value, rtts: 0 })
    }
}

/// The parameters of a scheme, or those common to all window schemes.
#[derive(Clone, Debug)]
pub struct Definition {
    /// Its stem: `fairq`, `hscc`, `sicc`, `hcf`; `window` is what is common to window schemes.
    pub name: &'static str,
    /// One line.
    pub title: &'static str,
    /// Its parameters.
    pub params: Vec<Param>,
    /// Pairs of keys of which the first must be below the second.
    pub orders: Vec<[&'static str; 2]>,
    /// What its paper prints elsewhere.
    pub variants: Vec<Variant>,
    /// What its struct in C has about the port: its buffer ...
    pub port: Vec<Field>,
    /// `enum window_scheme` of `core/schemes.h`; 0 if it is no window scheme.
    pub scheme: u32,
    /// Where its parameters are in `struct scheme_params` of `core/schemes.h`, bytes.
    pub offset: usize,
    pub(crate) params_bytes: usize,
    /// Memory of a port's state.
    pub state_bytes: usize,
    pub(crate) preset: Option<WritePreset>,
}

/// Writes a struct with its defaults (0) or as printed (1), for a port with a buffer.
pub(crate) type WritePreset = unsafe extern "C" fn(params: *mut c_void, buffer: u32, is_paper: u32);

impl Definition {
    /// The parameter with a key.
    pub fn param(&self, key: &str) -> Option<&Param> {
        self.params.iter().find(|param| param.key == key)
    }
}

/// All definitions.
pub fn all() -> &'static [Definition] {
    static ALL: LazyLock<Vec<Definition>> = LazyLock::new(tables::definitions);
    &ALL
}

/// The definition with a name.
///
/// # Panics
/// There is none: the name is not from [`all`].
pub fn of(name: &str) -> &'static Definition {
    let found = all().iter().find(|definition| definition.name == name);
    found.unwrap_or_else(|| panic!("core/ defines no {name}"))
}

/// The window schemes, in the order of `core/schemes.h`.
pub fn window_schemes() -> impl Iterator<Item = &'static Definition> {
    all().iter().filter(|definition| definition.scheme > 0)
}

/// What a port counts, in the order of `core/counters.h`.
pub fn counters() -> &'static [Word] {
    static COUNTERS: LazyLock<Vec<Word>> = LazyLock::new(tables::counters);
    &COUNTERS
}

/// What each side of a canary counts, in the order of `core/counters.h`.
pub fn canary_counters() -> &'static [Word] {
    static COUNTERS: LazyLock<Vec<Word>> = LazyLock::new(tables::canary_counters);
    &COUNTERS
}

/// What a port counts where windows are credit, in the order of `core/counters.h`.
pub fn credit_counters() -> &'static [Word] {
    static COUNTERS: LazyLock<Vec<Word>> = LazyLock::new(tables::credit_counters);
    &COUNTERS
}

/// Why a packet passes without being looked at further, in the order of `core/counters.h`.
pub fn pass_reasons() -> &'static [Word] {
    static REASONS: LazyLock<Vec<Word>> = LazyLock::new(tables::pass_reasons);
    &REASONS
}
