// SPDX-License-Identifier: Apache-2.0
//! Lines on stderr.

/// Writes a line to stderr, as `eprintln!` does. If its reader has gone away, the line is lost, and
/// the program goes on.
#[macro_export]
macro_rules! note {
    ($($text:tt)*) => {{
        use ::std::io::Write as _;
        let _ = ::std::writeln!(::std::io::stderr(), $($text)*);
    }};
}
