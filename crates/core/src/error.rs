// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//! What is wrong with a parameter.

use std::error::Error;
use std::fmt;

/// A parameter outside its range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParamError {
    /// The scheme: `fairq`, `hscc`, `sicc` or `hcf`.
    pub scheme: &'static str,
    /// The field of the scheme's parameters.
    pub field: &'static str,
    /// The value given.
    pub value: u64,
    /// Least value allowed.
    pub min: u64,
    /// Greatest value allowed.
    pub max: u64,
}

impl fmt::Display for ParamError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ParamError {
            scheme,
            field,
            value,
            min,
            max,
        } = self;
        write!(
            out,
            "{scheme}: {field} is {value}, allowed is {min} to {max}"
        )
    }
}

impl Error for ParamError {}

/// Checks the fields of one scheme.
pub(crate) struct Check(pub &'static str);

impl Check {
    pub(crate) fn range(
        &self,
        field: &'static str,
        value: impl Into<u64>,
        min: u64,
        max: u64,
    ) -> Result<(), ParamError> {
        let value = value.into();
        if (min..=max).contains(&value) {
            return Ok(());
        }
        Err(ParamError {
            scheme: self.0,
            field,
            value,
            min,
            max,
        })
    }
}
