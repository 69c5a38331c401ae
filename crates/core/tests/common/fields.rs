// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//! The fields of a struct by their names, read from the text of its header: to the library a state
//! is bytes.

use std::collections::HashMap;
use std::path::Path;

/// Where the fields of a C struct are: offset, bytes of an element, elements.
pub struct Fields(HashMap<String, (usize, usize, usize)>);

impl Fields {
    /// The struct `name` of `core/HEADER.h`; a struct within it ends what is known of it.
    pub fn of(header: &str, name: &str) -> Fields {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../core/{header}.h"));
        let text = std::fs::read_to_string(&file).expect("a header of core/");
        let body = text
            .split_once(&format!("\nstruct {name} {{\n"))
            .and_then(|(_, rest)| rest.split_once("\n};"))
            .unwrap_or_else(|| panic!("{header}.h has no struct {name}"))
            .0;
        let (mut fields, mut end) = (HashMap::new(), 0usize);
        for line in body.lines() {
            let declaration = line.split("/*").next().unwrap_or_default().trim();
            let Some((kind, names)) = declaration.split_once(' ') else {
                continue; // a comment goes on
            };
            if kind == "struct" || kind == "*" {
                break;
            }
            let bytes = match kind {
                "u8" => 1,
                "u16" => 2,
                "u32" | "s32" => 4,
                "u64" | "s64" => 8,
                _ => panic!("{header}.h: {line}"),
            };
            for name in names.trim_end_matches(';').split(',') {
                let (name, count) = match name.trim().trim_end_matches(']').split_once('[') {
                    None => (name.trim(), 1),
                    Some((name, count)) => (name, number(&text, count)),
                };
                end = end.next_multiple_of(bytes);
                fields.insert(name.to_owned(), (end, bytes, count));
                end += bytes * count;
            }
        }
        Fields(fields)
    }

    /// An element of a field.
    pub fn get(&self, state: &[u8], name: &str, index: usize) -> i64 {
        let Some(&(offset, bytes, count)) = self.0.get(name) else {
            panic!("no field {name}");
        };
        assert!(index < count, "{name}[{index}]");
        let mut word = [0; 8];
        word[..bytes].copy_from_slice(&state[offset + index * bytes..][..bytes]);
        i64::from_le_bytes(word)
    }
}

/// A sum of numbers, and of values of `#define`s of the header.
fn number(text: &str, sum: &str) -> usize {
    let plain = |word: &str| word.trim_end_matches('u').parse::<usize>().ok();
    let defined = |name: &str| {
        text.lines()
            .filter_map(|line| line.strip_prefix("#define "))
            .filter_map(|line| line.strip_prefix(name))
            .find_map(|value| plain(value.split_whitespace().next()?))
    };
    let term = |word: &str| plain(word).or_else(|| defined(word));
    sum.split(" + ")
        .map(|word| term(word).unwrap_or_else(|| panic!("the number {word}")))
        .sum()
}
