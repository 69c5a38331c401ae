// SPDX-License-Identifier: Apache-2.0
//! The live view in a terminal.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::frame::{Choice, frame};
use super::ports::Ports;
use super::{TICK, view::View};
use crate::host::signals::{Signal, Signals};

/// Shows ports until q, Esc, Ctrl-C or SIGTERM; the terminal is left as it was.
///
/// # Errors
/// The terminal refuses, or the pins cannot be read.
pub fn show(ports: &mut Ports) -> Result<()> {
    let signals = Signals::hold();
    let mut terminal = ratatui::try_init().context("the terminal")?;
    let shown = run(&mut terminal, ports, &signals);
    ratatui::restore();
    shown
}

fn run(terminal: &mut DefaultTerminal, ports: &mut Ports, signals: &Signals) -> Result<()> {
    let mut choice = Choice {
        has_colour: std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()),
        ..Choice::default()
    };
    let mut views = ports.views();
    loop {
        let next = Instant::now() + TICK;
        terminal.draw(|screen| {
            let area = screen.area();
            screen.render_widget(frame(&views, choice, area.height.into()), area);
        })?;
        while event::poll(next.saturating_duration_since(Instant::now()))? {
            if let Event::Key(key) = event::read()?
                && key.kind == KeyEventKind::Press
                && !obey(&mut choice, key, &views)
            {
                return Ok(());
            }
        }
        if signals.wait(Duration::ZERO) == Some(Signal::End) {
            return Ok(());
        }
        ports.read()?;
        if !choice.is_paused {
            views = ports.views();
        }
        choice.selected = choice.selected.min(views.len().saturating_sub(1));
    }
}

/// Handles a key; false to end.
fn obey(choice: &mut Choice, key: KeyEvent, views: &[View]) -> bool {
    let last = views.len().saturating_sub(1);
    match key.code {
        KeyCode::Char('q') | KeyCode::Esc => return false,
        KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => return false,
        KeyCode::Char('p') => choice.is_paused = !choice.is_paused,
        KeyCode::Up => choice.selected = choice.selected.saturating_sub(1),
        KeyCode::Down => choice.selected = (choice.selected + 1).min(last),
        _ => (),
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_do_what_the_header_lists() {
        let mut choice = Choice::default();
        let mut press = |code| obey(&mut choice, KeyEvent::from(code), &[]);
        assert!(!press(KeyCode::Char('q')));
        assert!(press(KeyCode::Down) && press(KeyCode::Up) && press(KeyCode::Char('p')));
        assert!(choice.is_paused);
        assert_eq!(choice.selected, 0);
        let interrupt = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert!(!obey(&mut choice, interrupt, &[]));
        assert!(obey(&mut choice, KeyEvent::from(KeyCode::Char('c')), &[]));
    }
}
