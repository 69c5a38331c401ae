// SPDX-License-Identifier: Apache-2.0
//! The parameters of schemes as text, from their definitions in `core/`: for `--help`, the packaged
//! configuration and the manual page. Nothing of it is written by hand.

use std::fmt::Write;

use penstock_core::definitions::{self, Definition, Param};
use penstock_scenario::deployable;
use penstock_scenario::params::{preset_text, range_text};

use crate::attach::{grant, hcf};
use crate::daemon::config::Agent;
use crate::port::sicc;

/// Columns of the packaged configuration.
const WIDTH: usize = 100;

/// The tables of a port's configuration that have parameters, with what they define: window schemes,
/// what these have in common, HCF's queue, and the controller whose shim can be attached.
fn tables() -> impl Iterator<Item = (&'static str, &'static Definition)> {
    let windows =
        definitions::window_schemes().chain([grant::definition(), definitions::of("window")]);
    let windows = windows.map(|definition| ("window", definition));
    windows.chain([
        ("queue", hcf::definition()),
        ("controller", sicc::definition()),
    ])
}

/// `window of fairq`, or `window` for what window schemes have in common.
fn heading(table: &str, definition: &Definition) -> String {
    match definition.name == table {
        true => table.to_owned(),
        false => format!("{table} of {}", definition.name),
    }
}

/// `alpha: Target queue, ... Range: above 0, at most 1. Default: 0.1; paper: 0.25.`
fn meaning(param: &Param) -> String {
    let range = range_text(param);
    let default = preset_text(param, param.default);
    let mut text = format!("{}. Range: {range}. Default: {default}", param.meaning);
    if param.default != param.paper {
        let _ = write!(text, "; paper: {}", preset_text(param, param.paper));
    }
    text + "."
}

/// The names of the schemes that can be attached, as in a sentence.
pub fn schemes() -> String {
    deployable().collect::<Vec<_>>().join(", ")
}

/// For the end of `penstockd attach --help`.
pub fn help() -> String {
    let mut text = "Parameters for --set:\n".to_owned();
    for (table, definition) in tables() {
        text.push('\n');
        let heading = heading(table, definition);
        text += &wrapped(&format!("{heading}: {}.", definition.title), "  ");
        for param in &definition.params {
            let _ = writeln!(text, "  {table}.{}", param.key);
            text += &wrapped(&meaning(param), "      ");
        }
    }
    text
}

/// Comments of the packaged configuration.
fn comments() -> String {
    let mut text = String::new();
    for (table, definition) in tables() {
        text += "#\n";
        let heading = heading(table, definition);
        text += &wrapped(&format!("{heading}: {}.", definition.title), "# ");
        for param in &definition.params {
            let first = format!("{}: {}", param.key, meaning(param));
            text += &wrapped(&first, "#   ");
        }
    }
    text
}

/// The packaged configuration, `/etc/penstock/penstockd.toml`.
pub fn configuration() -> String {
    let example = definitions::window_schemes().next();
    let params = example.iter().flat_map(|definition| &definition.params);
    // Times and words need quotes, which numbers and flags do not have.
    let quoted = |text: String| match text.parse::<f64>().is_ok() || text == "true" {
        true => text,
        false => format!("\"{text}\""),
    };
    let pairs: Vec<String> = params
        .filter(|param| !param.is_optional() && param.default.rtts == 0)
        .take(2)
        .map(|param| {
            let value = quoted(preset_text(param, param.default));
            format!("{} = {value}", param.key)
        })
        .collect();
    let template = include_str!("../../../packaging/penstockd.toml.in");
    let agent = Agent::default();
    let schemes = wrapped(&format!("Then a scheme: {}.", schemes()), "# ");
    template
        .replace("@HEARTBEAT@", &agent.heartbeat.to_string())
        .replace("@STALE@", &agent.stale.to_string())
        .replace("@FLOWS@", &agent.flows.to_string())
        .replace("@VXLAN_PORTS@", &agent.vxlan_ports.to_string())
        .replace("# Then a scheme: @SCHEMES@.\n", &schemes)
        .replace("@WINDOW@", &format!("{{ {} }}", pairs.join(", ")))
        .replace("@PARAMETERS@\n", &comments())
}

/// The manual page of the configuration, in roff.
pub fn manual() -> String {
    let escaped = |text: &str| text.replace('\\', "\\\\").replace('-', "\\-");
    let mut parameters = String::new();
    for (table, definition) in tables() {
        let _ = writeln!(parameters, ".SS {}", heading(table, definition));
        let _ = writeln!(parameters, "{}.", escaped(definition.title));
        for param in &definition.params {
            let _ = writeln!(parameters, ".TP\n.B {table}.{}", param.key);
            let _ = writeln!(parameters, "{}", escaped(&meaning(param)));
            for word in &param.words {
                let _ = writeln!(parameters, ".br\n.B {}:", escaped(word.word));
                let _ = writeln!(parameters, "{}", escaped(word.meaning));
            }
        }
    }
    let example: String = configuration()
        .lines()
        .map(|line| format!("\\&{}\n", escaped(line)))
        .collect();
    include_str!("../../../packaging/penstockd.toml.5.in")
        .replace("@VERSION@", env!("CARGO_PKG_VERSION"))
        .replace("@SCHEMES@", &schemes())
        .replace("@PARAMETERS@\n", &parameters)
        .replace("@EXAMPLE@\n", &example)
}

/// Lines of at most [`WIDTH`] columns, each behind `indent`.
fn wrapped(text: &str, indent: &str) -> String {
    let mut lines = String::new();
    let mut line = indent.to_owned();
    for word in text.split(' ') {
        let is_empty = line.len() == indent.len();
        if !is_empty && line.len() + 1 + word.len() > WIDTH {
            let _ = writeln!(lines, "{line}");
            line = indent.to_owned();
        } else if !is_empty {
            line.push(' ');
        }
        line += word;
    }
    let _ = writeln!(lines, "{line}");
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each parameter with its table, range and default, in each text.
    #[test]
    fn help_configuration_and_manual_have_every_parameter() {
        let flat = |text: &str| {
            let plain = text.replace("\\-", "-").replace("\n#", "\n");
            plain.split_whitespace().collect::<Vec<_>>().join(" ")
        };
        let [help, configuration, manual] = [help(), configuration(), manual()].map(|t| flat(&t));
        for (table, definition) in tables() {
            assert!(!definition.params.is_empty());
            for param in &definition.params {
                let meaning = flat(&meaning(param));
                assert!(meaning.contains(&preset_text(param, param.default)));
                let key = param.key;
                assert!(help.contains(&format!("{table}.{key} {meaning}")), "{key}");
                assert!(
                    configuration.contains(&format!("{key}: {meaning}")),
                    "{key}"
                );
                assert!(
                    manual.contains(&format!("{table}.{key} {meaning}")),
                    "{key}"
                );
            }
        }
        for text in [&help, &configuration, &manual] {
            assert!(!text.contains('@'), "{text}");
        }
        for scheme in deployable() {
            assert!(configuration.contains(scheme) && manual.contains(scheme));
        }
    }

    #[test]
    fn lines_are_within_the_width() {
        for text in [help(), configuration()] {
            let widest = text.lines().map(|line| line.chars().count()).max();
            assert!(widest <= Some(WIDTH), "{text}");
        }
    }
}
