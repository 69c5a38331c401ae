// SPDX-License-Identifier: Apache-2.0
//! The live view in a terminal.

use std::mem::ManuallyDrop;
use std::os::fd::AsFd;
use std::time::Instant;

use anyhow::{Context, Result};
use ratatui::DefaultTerminal;

use super::frame::{Choice, frame};
use super::keys::{self, Key};
use super::ports::Ports;
use super::{TICK, view::View};
use crate::host::signals::Signals;

/// Shows ports until q, Esc, Ctrl-C, SIGTERM, or until the terminal is closed; it is left as it was.
///
/// # Errors
/// The terminal refuses, or the pins cannot be read.
pub fn show(ports: &mut Ports) -> Result<()> {
    let signals = Signals::hold();
    // Its drop panics where the terminal is closed.
    let mut terminal = ManuallyDrop::new(ratatui::try_init().context("the terminal")?);
    let shown = run(&mut terminal, ports, &signals);
    let _ = terminal.show_cursor();
    let _ = ratatui::try_restore();
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
            let text = frame(&views, ports.unreadable(), choice, area.height.into());
            screen.render_widget(text, area);
        })?;
        if !obey_until(next, &mut choice, &views, signals) {
            return Ok(());
        }
        ports.read()?;
        if !choice.is_paused {
            views = ports.views();
        }
        choice.selected = choice.selected.min(views.len().saturating_sub(1));
    }
}

/// Handles keys and signals until `next`; false to end.
fn obey_until(next: Instant, choice: &mut Choice, views: &[View], signals: &Signals) -> bool {
    loop {
        let left = next.saturating_duration_since(Instant::now());
        let signal = signals.wait_or(&[std::io::stdin().as_fd()], left);
        if signals.is_end(signal) {
            return false;
        }
        let Some(keys) = keys::typed() else {
            return false;
        };
        if !keys.into_iter().all(|key| obey(choice, key, views)) {
            return false;
        }
        if left.is_zero() {
            return true;
        }
    }
}

/// Handles a key; false to end.
fn obey(choice: &mut Choice, key: Key, views: &[View]) -> bool {
    let last = views.len().saturating_sub(1);
    match key {
        Key::Quit => return false,
        Key::Pause => choice.is_paused = !choice.is_paused,
        Key::Up => choice.selected = choice.selected.saturating_sub(1),
        Key::Down => choice.selected = (choice.selected + 1).min(last),
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_do_what_the_header_lists() {
        let mut choice = Choice::default();
        let mut press = |key| obey(&mut choice, key, &[]);
        assert!(!press(Key::Quit));
        assert!(press(Key::Down) && press(Key::Up) && press(Key::Pause));
        assert!(choice.is_paused);
        assert_eq!(choice.selected, 0);
    }
}
