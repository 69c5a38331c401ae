// SPDX-License-Identifier: Apache-2.0
//! The program penstockd.

use std::process::ExitCode;

fn main() -> ExitCode {
    penstockd::cli::main()
}
