// SPDX-License-Identifier: Apache-2.0
//! A frame of the screen, from the numbers alone.

use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span, Text};

use super::view::View;
use crate::port::config::OBSERVE;
use crate::status::Unreadable;

/// Lines that a port takes.
pub const PORT_LINES: usize = 4;

/// What the user has selected.
#[derive(Clone, Copy, Debug, Default)]
pub struct Choice {
    /// Index of the selected port.
    pub selected: usize,
    /// Whether updates are paused.
    pub is_paused: bool,
    /// Whether the terminal may show colours (no-color.org).
    pub has_colour: bool,
}

impl Choice {
    fn colour(&self, colour: Color) -> Style {
        match self.has_colour {
            true => Style::new().fg(colour),
            false => Style::new(),
        }
    }
}

/// The lines of a screen of this height, scrolled so that the selected port is on it.
pub fn frame(
    views: &[View],
    unreadable: &[Unreadable],
    choice: Choice,
    height: usize,
) -> Text<'static> {
    let mut text = Text::from(header(views.len(), choice));
    for port in unreadable {
        text.push_line(Line::styled(port.line(), choice.colour(Color::Red)));
    }
    let fit = (height.saturating_sub(1 + unreadable.len()) / PORT_LINES).max(1);
    let first = (choice.selected + 1).saturating_sub(fit);
    for (index, view) in views.iter().enumerate().skip(first).take(fit) {
        text.extend(port(view, index == choice.selected, choice));
    }
    if views.is_empty() && unreadable.is_empty() {
        text.push_line("No port is attached; do: penstockd attach IFACE --scheme observe");
    }
    text
}

fn header(ports: usize, choice: Choice) -> Line<'static> {
    let ports = crate::format::plural(ports as u64, "port");
    let state = if choice.is_paused { "PAUSED" } else { "" };
    Line::styled(
        format!("penstockd watch  {ports:<10} {state:<8} q quit  p pause  up/down choose"),
        Style::new().add_modifier(Modifier::BOLD),
    )
}

fn port(view: &View, is_selected: bool, choice: Choice) -> [Line<'static>; PORT_LINES] {
    let marker = if is_selected { "> " } else { "  " };
    let title = match is_selected {
        true => Style::new().add_modifier(Modifier::BOLD),
        false => Style::new(),
    };
    let standing = match (view.scheme.as_str(), view.acting) {
        (OBSERVE, _) => choice.colour(Color::Cyan),
        (_, true) => choice.colour(Color::Green),
        (_, false) => choice.colour(Color::Red).add_modifier(Modifier::BOLD),
    };
    let queue = match view.rate("drops") > 0.0 {
        true => choice.colour(Color::Red),
        false => Style::new(),
    };
    [
        Line::from(vec![
            Span::styled(
                format!("{marker}{:<15} {:<12} ", view.interface, view.scheme),
                title,
            ),
            Span::styled(view.standing(), standing),
        ]),
        Line::from(vec![
            Span::raw("  "),
            Span::styled(view.sparkline(), choice.colour(Color::Blue)),
            Span::raw(format!(" {:.0} s", view.peaks_span_s)),
        ]),
        Line::from(vec![Span::raw("  "), Span::styled(view.queue(), queue)]),
        Line::from(format!("  {}", view.flows())),
    ]
}

/// The same without a terminal.
pub fn plain(views: &[View]) -> String {
    let all = views
        .iter()
        .flat_map(|view| port(view, false, Choice::default()));
    all.map(|line| format!("{}\n", line.to_string().trim_end()))
        .collect()
}

#[cfg(test)]
#[path = "frame_tests.rs"]
mod tests;
