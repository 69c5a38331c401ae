// SPDX-License-Identifier: Apache-2.0
//! Reports the run's progress on stderr.

use crate::cli;
use crate::player::Player;
use std::io::{IsTerminal, Write};

use penstock_linux::note;

/// Prints progress in one format.
pub struct Progress {
    how: cli::Progress,
    has_printed: bool,
}

impl Progress {
    /// Prints in the format `how`; `Auto` prints nothing if stderr is no terminal.
    pub fn new(how: cli::Progress) -> Progress {
        let how = match how {
            cli::Progress::Auto if !std::io::stderr().is_terminal() => cli::Progress::None,
            how => how,
        };
        Progress {
            how,
            has_printed: false,
        }
    }

    /// Reports that the share `fraction` of the run is over.
    pub fn print(&mut self, fraction: f64, player: &Player) {
        let mut stderr = std::io::stderr().lock();
        let (begun, finished) = (player.records.len(), player.finished());
        // A reader that has gone away is no reason to stop.
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
        self.has_printed = true;
    }

    /// The run is over.
    pub fn end(&self) {
        if self.has_printed && self.how == cli::Progress::Auto {
            note!();
        }
    }
}
