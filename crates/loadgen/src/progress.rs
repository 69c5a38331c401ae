// SPDX-License-Identifier: Apache-2.0
//! Tells on stderr how far the run is.

use crate::cli;
use crate::player::Player;
use std::io::{IsTerminal, Write};

/// Tells how far a run is.
pub struct Progress {
    how: cli::Progress,
    told: bool,
}

impl Progress {
    /// One that tells as `how` says.
    pub fn new(how: cli::Progress) -> Progress {
        let how = match how {
            cli::Progress::Auto if !std::io::stderr().is_terminal() => cli::Progress::None,
            how => how,
        };
        Progress { how, told: false }
    }

    /// Share `fraction` of the run is over.
    pub fn tell(&mut self, fraction: f64, player: &Player) {
        let mut stderr = std::io::stderr().lock();
        let (begun, finished) = (player.records.len(), player.finished());
        // Whoever reads it may have gone; the run goes on.
        let _ = match self.how {
            cli::Progress::None => Ok(()),
            cli::Progress::Auto => write!(
                stderr,
                "\r{:3.0} %  {finished} of {begun} flows finished ",
                fraction * 100.0
            ),
            cli::Progress::Json => writeln!(
                stderr,
                r#"{{"fraction":{fraction:.4},"flows":{begun},"finished":{finished}}}"#
            ),
        };
        self.told = true;
    }

    /// The run is over.
    pub fn end(&self) {
        if self.told && self.how == cli::Progress::Auto {
            eprintln!();
        }
    }
}
