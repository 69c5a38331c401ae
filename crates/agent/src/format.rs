// SPDX-License-Identifier: Apache-2.0
//! Numbers and names as people read them.

use std::path::Path;

/// Text without control characters, which a terminal or a log would obey.
pub fn printable(text: &str) -> String {
    text.replace(|c: char| c.is_control(), "?")
}

/// The same of text that has lines.
pub fn printable_lines(text: &str) -> String {
    text.replace(|c: char| c.is_control() && c != '\n', "?")
}

/// A path as one word of a command line for a POSIX shell.
pub fn shell_word(path: &Path) -> String {
    let text = printable(&path.display().to_string());
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-+=:,@%".contains(&byte);
    match !text.is_empty() && text.bytes().all(is_plain) {
        true => text,
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

/// Three significant digits and a prefix of powers of 1000: `2.9 kB`, `200 Mb/s`.
pub fn scaled(value: f64, unit: &str) -> String {
    const PREFIXES: [&str; 5] = ["", "k", "M", "G", "T"];
    let mut scaled = value;
    let mut prefix = 0;
    while scaled >= 999.5 && prefix + 1 < PREFIXES.len() {
        scaled /= 1000.0;
        prefix += 1;
    }
    format!("{} {}{unit}", short(scaled), PREFIXES[prefix])
}

/// One decimal below a hundred, unless it is 0.
fn short(value: f64) -> String {
    let digits = usize::from(value < 99.95);
    let text = format!("{value:.digits$}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

/// Bytes, such as `128 kB`.
pub fn bytes(bytes: u64) -> String {
    scaled(bytes as f64, "B")
}

/// A rate, such as `200 Mb/s`.
pub fn rate(bits_per_second: u64) -> String {
    scaled(bits_per_second as f64, "b/s")
}

/// A number with its thousands apart: `12,430`.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number of things: `1 burst`, `14 bursts`.
pub fn plural(number: u64, thing: &str) -> String {
    let ending = if number == 1 { "" } else { "s" };
    format!("{} {thing}{ending}", count(number))
}

/// `part` of `whole` in percent, rounded; nothing of nothing is 0. A share that is neither none
/// nor all never reads as such.
pub fn percent(part: u64, whole: u64) -> String {
    let share = if whole == 0 {
        0.0
    } else {
        part as f64 * 100.0 / whole as f64
    };
    match share {
        s if s > 0.0 && s < 1.0 => "<1 %".to_owned(),
        s if s > 99.0 && s < 100.0 => ">99 %".to_owned(),
        s => format!("{s:.0} %"),
    }
}

/// A length of time with three digits at most: `850 us`, `12 ms`, `1.5 s`.
pub fn time(ns: u64) -> String {
    let (value, unit) = match ns {
        0..=999 => (ns as f64, "ns"),
        1_000..=999_999 => (ns as f64 / 1e3, "us"),
        1_000_000..=999_999_999 => (ns as f64 / 1e6, "ms"),
        _ => (ns as f64 / 1e9, "s"),
    };
    format!("{} {unit}", short(value))
}

/// One character for each value, its height the value's share of `full`.
pub fn sparkline(values: &[u32], full: u32) -> String {
    const HEIGHTS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let height = |value: u32| {
        let eighths = (u64::from(value) * 8).div_ceil(u64::from(full.max(1)));
        HEIGHTS[eighths.min(8) as usize]
    };
    values.iter().map(|value| height(*value)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn numbers_keep_two_or_three_digits() {
        assert_eq!(bytes(0), "0 B");
        assert_eq!(bytes(999), "999 B");
        assert_eq!(bytes(2_900), "2.9 kB");
        assert_eq!(bytes(128_000), "128 kB");
        assert_eq!(bytes(131_072), "131 kB");
        assert_eq!(bytes(999_999), "1 MB");
        assert_eq!(rate(200_000_000), "200 Mb/s");
        assert_eq!(count(12_430), "12,430");
        assert_eq!(count(1_000_000), "1,000,000");
        assert_eq!(count(7), "7");
        assert_eq!(plural(1, "burst"), "1 burst");
        assert_eq!(plural(0, "drop"), "0 drops");
        assert_eq!(time(12_000_000), "12 ms");
        assert_eq!(time(1_540_000_000), "1.5 s");
        assert_eq!(time(850_000), "850 us");
    }

    #[test]
    fn a_name_cannot_give_orders_to_a_terminal() {
        assert_eq!(printable("a\x1b[31m\n\u{9b}b"), "a?[31m??b");
        assert_eq!(printable_lines("eth\x1b0: x\né\n"), "eth?0: x\né\n");
    }

    #[test]
    fn a_path_is_one_word_for_a_shell() {
        for path in [
            "out/seen-1.toml",
            "my runs/seen.toml",
            "it's $HOME/`x`;*",
            "\"\\\"",
            "é",
        ] {
            let word = shell_word(Path::new(path));
            let script = format!("printf '<%s>' {word}");
            let output = Command::new("sh").args(["-c", &script]).output().unwrap();
            let read = String::from_utf8(output.stdout).unwrap();
            assert_eq!(read, format!("<{path}>"), "{word}");
        }
        assert_eq!(shell_word(Path::new("out/seen-1.toml")), "out/seen-1.toml");
    }

    #[test]
    fn a_share_reads_as_none_or_all_only_if_it_is() {
        assert_eq!(percent(0, 0), "0 %");
        assert_eq!(percent(1, 1000), "<1 %");
        assert_eq!(percent(999, 1000), ">99 %");
        assert_eq!(percent(83, 100), "83 %");
        assert_eq!(percent(5, 5), "100 %");
    }

    #[test]
    fn a_sparkline_shows_the_least_and_clips_the_most() {
        assert_eq!(sparkline(&[0, 1, 50, 100, 500], 100), " ▁▄██");
        assert_eq!(sparkline(&[0, 3], 0), " █");
    }
}
